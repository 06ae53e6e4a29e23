"""Event soups: anything that could arrive for one job, sensible or not."""

from __future__ import annotations

from hypothesis import strategies as st

from ett_core import events as ev
from ett_core.events import AnyEvent, decode, encode

EPOCH = 1_764_000_000.0

FAR = (2.0 - EPOCH, -7200.0, 86_400.0, 3.9e9 - EPOCH)
"""As a clock says that is not set, is hours off, or belongs to somebody who means harm."""
OFFSETS = (0.5, 7.25, -30.0, 3.9e9, -3.9e9)
times = st.one_of(
    st.integers(0, 60).map(float),
    st.floats(0, 900, allow_nan=False),
    st.floats(0, 900, allow_nan=False),
    st.sampled_from(FAR),
)
steps = st.integers(0, 12)
phases = st.sampled_from(["model_init", "compile", "checkpoint", "evaluation", "checkpoint_load", "mine"])
tracks = st.sampled_from(["main", "main", "side"])
maybe_step = st.none() | steps


def _kinds() -> st.SearchStrategy:
    step_seconds = st.none() | st.builds(
        ev.StepSeconds, count=st.integers(0, 5), sum=st.floats(0, 200), max=st.floats(0, 200)
    )
    moment = st.none() | times.map(lambda t: EPOCH + t)
    return st.one_of(
        st.tuples(
            st.just(ev.AttemptStart),
            st.fixed_dictionaries(
                {"process_started_at": moment, "allocated_at": moment, "resumed_step": maybe_step}
            ),
        ),
        st.tuples(st.just(ev.PhaseBegin), st.fixed_dictionaries({"phase": phases, "track": tracks})),
        st.tuples(
            st.just(ev.PhaseEnd),
            st.fixed_dictionaries({"phase": phases, "track": tracks, "resumed_step": st.none() | steps}),
        ),
        st.tuples(st.just(ev.FirstBatch), st.fixed_dictionaries({"step": maybe_step})),
        st.tuples(
            st.just(ev.Progress),
            st.fixed_dictionaries(
                {
                    "step": steps,
                    "steps": steps,
                    "data_wait_s": st.floats(-1, 40),
                    "step_seconds": step_seconds,
                }
            ),
        ),
        st.tuples(st.just(ev.CheckpointDurable), st.fixed_dictionaries({"step": steps})),
        st.tuples(st.just(ev.Failure), st.just({})),
        st.tuples(st.just(ev.Heartbeat), st.just({})),
        st.tuples(
            st.just(ev.AttemptEnd),
            st.fixed_dictionaries({"status": st.sampled_from(["succeeded", "failed", "cancelled"])}),
        ),
        st.tuples(
            st.just(ev.JobEnd),
            st.fixed_dictionaries({"status": st.sampled_from(["succeeded", "failed"])}),
        ),
        st.tuples(
            st.just(ev.Clock),
            st.fixed_dictionaries(
                {
                    "of_writer": st.sampled_from(["w0", "w1"]),
                    "offset_s": st.sampled_from([0.5, 7.25, -30.0, 3.9e9, -3.9e9]),
                }
            ),
        ),
    )


@st.composite
def events(draw: st.DrawFn) -> AnyEvent:
    kind, fields = draw(_kinds())
    rank = draw(st.integers(-1, 2))
    event = kind(
        job_id="soup",
        writer=draw(st.sampled_from([f"w{rank}", f"w{rank}", "other"])),
        seq=draw(st.integers(0, 40)),
        attempt=draw(st.integers(0, 2)),
        rank=rank,
        node="n",
        time=EPOCH + draw(times),
        **fields,
    )
    return decode(encode(event))


soups = st.lists(events(), min_size=1, max_size=40)
