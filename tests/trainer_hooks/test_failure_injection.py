"""Everything under the hooks fails, at every hook: the training loop computes what it computes without them.

The tables below name every public hook; one that is added stands in them, or a test fails.
"""

from __future__ import annotations

import signal
import threading
from functools import partial

import pytest

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.auto.recorder import AutomaticRecorder
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.recording.spans import Entering, PhaseSpan, SaveSpan
from ett_trainer_hooks.shipping.shipper import Shipper

IDENTITY = Identity(job_id="job", writer="w")
DATA = [[1.5, 2.5], [3.0], [4.0, 5.0, 6.0], []]


class Broken:
    """Whatever it is asked for raises."""

    def __getattr__(self, name):
        raise RuntimeError(f"{name} is broken")


def with_phase(recorder):
    with recorder.phase("evaluation") as span:
        span.resumed_step = 3


def with_save(recorder):
    with recorder.checkpoint(7) as save:
        save.bytes = "many"


def entered():
    entering = Entering()
    entering.is_told = True
    return entering


HOOKS = {
    "active": lambda r: r.active,
    "batches": lambda r: list(r.batches(DATA, samples=len)),
    "begun": lambda r: r.begun,
    "cache": lambda r: r.cache("fx_graph", hits=1),
    "checkpoint": with_save,
    "checkpoint_failed": lambda r: r.checkpoint_failed(3, "quota"),
    "close": lambda r: r.close("failed"),
    "compile": lambda r: r.compile(graph="0", stage_seconds={"inductor": 1.0}),
    "counters": lambda r: r.counters({"collectives": 2.0}),
    "decision": lambda r: r.decision("interval", "cheaper"),
    "durable": lambda r: r.durable(3),
    "failure": lambda r: r.failure(ValueError("no")),
    "first_batch": lambda r: r.first_batch(),
    "flush": lambda r: r.flush(),
    "heartbeat": lambda r: r.heartbeat(),
    "leave": lambda r: r.leave(),
    "note_exit": lambda r: r.note_exit(3),
    "past_phase": lambda r: r.past_phase("evaluation", 1.0, 2.0),
    "phase": with_phase,
    "phase_began": lambda r: r.phase_began(PhaseSpan(r, "x"), Entering()),
    "phase_ended": lambda r: r.phase_ended(PhaseSpan(r, "x"), entered(), KeyError()),
    "resumed": lambda r: r.resumed(12),
    "save_ended": lambda r: r.save_ended(SaveSpan(r, 3, "sync")),
    "start": lambda r: r.start(accelerators=8),
    "step": lambda r: r.step,
    "step_done": lambda r: r.step_done(samples=3),
    "watch_compile": lambda r: r.watch_compile(Broken()),
}
AUTOMATIC = {
    "away_s": lambda r: r.away_s,
    "declare": lambda r: r.declare({"ETT_JOB_ID": "j"}),
    "forget": lambda r: r.forget(),
    "has_compiled": lambda r: r.has_compiled,
    "loaded": lambda r: r.loaded(Broken()),
    "loop_began": lambda r: r.loop_began(1.0, 0.5, 3),
    "note_save": lambda r: r.note_save(3, Broken()),
    "save_broke": lambda r: r.save_broke(Broken()),
    "saved": lambda r: r.saved(3, "state.pt"),
    "settle": lambda r: (r.saved(3, Broken()), r.settle()),
    "step_seen": lambda r: r.guard.call(r.step_seen, 0.1),  # the seams of torch call it so
}
MISUSED = {
    "batches": lambda r: list(r.batches(DATA, samples=object())),
    "batches counted": lambda r: list(r.batches(DATA, samples=lambda batch: batch["x"])),
    "cache": lambda r: r.cache("fx_graph", hits=None),
    "checkpoint": lambda r: r.checkpoint("last").__exit__(None, None, None),
    "checkpoint_failed": lambda r: r.checkpoint_failed("last", None),
    "compile": lambda r: r.compile(stage_seconds=3),
    "counters": lambda r: r.counters(7),
    "decision": lambda r: r.decision("x", values=7),
    "durable": lambda r: r.durable(None),
    "failure": lambda r: r.failure(message=3),
    "note_exit and leave": lambda r: (r.note_exit(object()), r.leave()),
    "phase": lambda r: r.phase("x").__exit__(None, None, None),
    "resumed": lambda r: r.resumed("latest"),
    "start": lambda r: r.start(accelerators="eight"),
    "step_done": lambda r: r.step_done(samples="three"),
    "step_done waits": lambda r: r.step_done(data_wait_s=None),
}
"""Wrong arguments, one at least of each hook that takes any."""


def public_names(kind):
    return {name for name in dir(kind) if not name.startswith("_")} - {"from_env"}


def train(recorder, use):
    """What a training loop computes, with a hook used before, in and after it."""
    losses = []
    use(recorder)
    for batch in recorder.batches(DATA):
        losses.append(sum(batch))
        use(recorder)
    use(recorder)
    return losses


def broken_recorder(kind=Recorder):
    warnings = []
    if kind is AutomaticRecorder:
        recorder = AutomaticRecorder()
        recorder.guard._warn = warnings.append
    else:
        recorder = kind(identity=IDENTITY, journal=Broken(), guard=Guard(warnings.append))
    recorder._journal = Broken()
    return recorder, warnings


def test_every_public_hook_is_tried():
    """A hook that is added to a recorder has to be added here."""
    assert set(HOOKS) == public_names(Recorder)
    extra = public_names(AutomaticRecorder) - public_names(Recorder)
    assert set(AUTOMATIC) == extra


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Recorder, name) for name in HOOKS] + [(AutomaticRecorder, name) for name in (*HOOKS, *AUTOMATIC)],
)
def test_a_hook_over_a_journal_that_raises_changes_nothing(kind, name):
    """The same losses, and one warning for all of it."""
    recorder, warnings = broken_recorder(kind)
    assert train(recorder, {**HOOKS, **AUTOMATIC}[name]) == [4.0, 3.0, 15.0, 0]
    assert recorder.guard.faults > 0
    assert len(warnings) == 1
    assert "the job goes on" in warnings[0]


@pytest.mark.parametrize("name", MISUSED)
def test_a_hook_that_is_given_nonsense_changes_nothing(name, bench):
    """A mistake in the instrumentation is a warning at most; what follows it is still recorded."""
    b = bench()
    assert train(b.recorder, MISUSED[name]) == [4.0, 3.0, 15.0, 0]
    assert len(b.warnings) <= 1
    b.recorder.durable(4)
    if name != "note_exit and leave":
        assert b.of("checkpoint_durable")[-1].step == 4


@pytest.mark.parametrize("part", ["_meter", "_clock", "identity"])
@pytest.mark.parametrize("name", sorted(set(HOOKS) - {"batches", "step", "flush"}))
def test_a_hook_whose_own_parts_fail_changes_nothing(name, part, bench):
    """Not only the journal may be at fault."""
    b = bench()
    losses = []
    for batch in DATA:
        losses.append(sum(batch))
        kept = getattr(b.recorder, part)
        setattr(b.recorder, part, Broken())
        HOOKS[name](b.recorder)
        setattr(b.recorder, part, kept)
    assert losses == [4.0, 3.0, 15.0, 0]
    assert len(b.warnings) <= 1


@pytest.mark.parametrize("work", [with_phase, with_save])
def test_an_error_of_the_work_passes_through_a_broken_span(work):
    """The fault of a hook never hides what went wrong in the job."""
    recorder, _ = broken_recorder()
    span = recorder.checkpoint(1) if work is with_save else recorder.phase("x")
    with pytest.raises(ZeroDivisionError), span:
        1 / 0  # noqa: B018 - the error
    assert recorder.phase("model_init")(lambda: 7)() == 7


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("a bug")])
def test_a_disk_that_fails_in_any_way_costs_events_only(tmp_path, error):
    """The thread of the journal survives, does not spin, and says it once."""
    tries = []

    def write(_descriptor, _data):
        tries.append(1)
        raise error

    warnings = []
    guard = Guard(warnings.append)
    journal = Journal(tmp_path / "w-1.jsonl", IDENTITY, clock=Clock(), guard=guard, retry_s=0.05, write=write)
    recorder = Recorder(identity=IDENTITY, journal=journal, guard=guard)
    assert train(recorder, HOOKS["durable"]) == [4.0, 3.0, 15.0, 0]
    threading.Event().wait(0.3)
    assert 1 <= len(tries) < 20
    assert len(warnings) == 1
    journal.close(0.0)


def test_a_shipper_with_a_fault_of_its_own_tries_again_later(tmp_path):
    """A bug in the sending is said once, and the pauses grow as if nobody answered."""
    (tmp_path / "w-1.jsonl").write_bytes(b"{}\n")
    warnings = []

    def post(_lines, _sent_at):
        raise RuntimeError("a bug")

    shipper = Shipper(tmp_path, post, "http://x:1", chance=lambda: 1.0, guard=Guard(warnings.append))
    assert [shipper.ship() for _ in range(4)] == [0.5, 1.0, 2.0, 4.0]
    assert len(warnings) == 1
    assert shipper.unsent_bytes() == 3


def limit(*_):
    raise TimeoutError("of the program")


class Limit:
    """A signal handler in the forms that programs use."""

    def __call__(self, *_):
        limit()

    def method(self, *_):
        limit()


HANDLERS = {"function": limit, "object": Limit(), "method": Limit().method, "partial": partial(limit)}


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS.keys())
def test_what_a_signal_handler_raises_within_a_hook_reaches_the_program(handler, bench):
    """A time limit that strikes while a hook runs is the program's, whatever its handler is."""
    made = bench()
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        put = made.journal.put

        def struck(*args, **fields):
            signal.raise_signal(signal.SIGUSR1)
            put(*args, **fields)

        made.journal.put = struck
        with pytest.raises(TimeoutError, match="of the program"):
            made.recorder.durable(1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (made.recorder.guard.faults, made.warnings) == (0, [])
