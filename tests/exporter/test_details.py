"""Details of a job beside its time: what is latest, what is summed, what is bounded."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core import checkpoint_log, details, evidence_log, process_totals
from ett_core import events as ev
from ett_core.causes import Facts, words
from ett_core.checkpoint_log import CheckpointLog
from ett_core.details import JobDetails
from ett_core.named_sums import LARGEST_VALUE, NAMES_KEPT
from ett_core.process_totals import CacheTotals
from ett_core.starts import STARTS_KEPT, Start
from ett_exporter.views import details_view


def event(kind, seq=0, **fields):
    envelope = {"job_id": "j", "writer": "w", "seq": seq, "attempt": 0, "rank": 0, "time": 1e9, "node": "n"}
    return kind(**(envelope | fields))


def folded(*events):
    fold = JobDetails()
    fold.add(events)
    return fold


def everything(fold):
    attempts = range(3)
    return (
        details_view(fold),
        fold.starts.by_attempt,
        fold.checkpoints.latest,
        fold.nodes.by_rank,
        [fold.evidence.lines(a) for a in attempts],
        fold.compilations.read(),
        fold.decisions.latest,
    )


def test_the_order_of_arrival_changes_nothing(story):
    """Any order of the events of a real job gives the same details."""
    events = story("j").events
    plain = everything(folded(*events))

    @given(st.permutations(events))
    def check(shuffled):
        assert everything(folded(*shuffled)) == plain

    check()


def test_labels_are_the_latest_that_were_said():
    """A label is as its latest attempt said it; one that was left unsaid stays."""
    fold = folded(
        event(ev.AttemptStart, 1, attempt=1, labels={"team": "b"}, world_size=4),
        event(
            ev.AttemptStart, 0, attempt=0, labels={"team": "a", "model": "m"}, world_size=2, accelerators=2
        ),
    )
    assert fold.starts.labels == {"model": "m", "team": "b"}
    assert (fold.starts.world_size, fold.starts.accelerators) == (4, 2)


def test_cache_totals_are_the_latest_of_each_process():
    """Totals so far replace earlier ones of the process, and processes add up."""
    fold = folded(
        event(ev.Cache, 5, cache="c", hits=7, misses=1, saved_s=2.0),
        event(ev.Cache, 2, cache="c", hits=3, misses=1),
        event(ev.Cache, 0, writer="x", cache="c", hits=1, bypasses=1),
    )
    assert fold.processes.caches["c"] == CacheTotals(hits=8, misses=1, bypasses=1, saved_s=2.0)


def test_samples_are_those_of_all_ranks_and_attempts():
    """Each rank counts its own; the sum never falls, whichever rank speaks first."""
    fold = folded(
        *(event(ev.Progress, n, rank=1, writer="b", step=n, steps=1, samples=5) for n in range(3)),
        *(event(ev.Progress, n, rank=0, step=n, steps=1, samples=5) for n in range(2)),
        event(ev.Progress, 0, rank=1, writer="c", attempt=1, step=9, steps=1, samples=7),
    )
    assert fold.samples == 3 * 5 + 2 * 5 + 7


def test_a_checkpoint_is_joined_from_its_reports():
    """Save, durability and failure of one step are one checkpoint; blocking is the slowest rank's."""
    fold = folded(
        event(ev.CheckpointDurable, 3, step=10, time=1e9 + 9, bytes=50, mode="async"),
        event(ev.Checkpoint, 1, step=10, time=1e9 + 2, blocking_s=0.5, mode="async", bytes=20),
        event(ev.Checkpoint, 1, writer="x", rank=1, step=10, time=1e9 + 1, blocking_s=1.5, mode="async"),
        event(ev.CheckpointFailed, 4, step=20, time=1e9 + 20),
    )
    first, second = fold.checkpoints.latest
    assert (first.time, first.blocking_s, first.bytes, first.durable_at) == (1e9 + 1, 1.5, 50, 1e9 + 9)
    assert (second.failed, second.durable_at) == (True, None)
    log = fold.checkpoints
    assert (log.count, log.blocking_s, log.durable_count, log.failed_count) == (1, 1.5, 1, 1)


def test_a_checkpoint_that_one_rank_calls_durable_is_not_counted_as_failed():
    """A rank that is ended while the others finish cannot know how it goes on, whichever they tell first."""
    reports = [
        event(ev.CheckpointDurable, 3, step=10),
        event(ev.CheckpointFailed, 4, step=10, rank=1, writer="x"),
    ]
    for told in (reports, reports[::-1]):
        log = folded(*told).checkpoints
        assert (log.durable_count, log.failed_count) == (1, 0)


@pytest.mark.parametrize(("durable_s", "lasting"), [(None, 1), (-5, 0), (120, 0), (121, 1)])
@pytest.mark.parametrize("later", [0, 3 * checkpoint_log.CHECKPOINTS_KEPT])
def test_a_failure_has_lasted_where_no_rank_calls_it_durable_soon_after(durable_s, lasting, later):
    """Also of a checkpoint that later ones have let go of."""
    reports = [event(ev.CheckpointFailed, 4, step=10, rank=1, writer="x", time=1e9 + 20)]
    if durable_s is not None:
        reports.append(event(ev.CheckpointDurable, 3, step=10, time=1e9 + 20 + durable_s))
    saves = [event(ev.Checkpoint, n, step=n, time=1e9 + n) for n in range(11, 11 + later)]
    for order in (reports, reports[::-1]):
        log = folded(*order, *saves).checkpoints
        assert log.failures(1e9 + 20 + 120) == lasting
        assert later or log.failures(1e9 + 20 + 119) == 0
        assert CheckpointLog.of_state(log.state()).failures(math.inf) == lasting


def test_many_checkpoints_are_counted_and_the_latest_kept():
    """Beyond the bound, counts and sums stay exact while only the latest are listed."""
    many = 3 * checkpoint_log.CHECKPOINTS_KEPT
    saves = [event(ev.Checkpoint, n, step=n, blocking_s=0.5) for n in range(many)]
    log = folded(*saves).checkpoints
    assert (log.count, log.blocking_s) == (many, many * 0.5)
    assert [c.step for c in log.latest] == list(range(many - checkpoint_log.CHECKPOINTS_SHOWN, many))
    log.add(saves[0])
    assert log.count == many


def test_reports_of_ranks_far_apart_are_joined_however_they_come():
    """Ranks that tell of the same checkpoints one after the other: all at once, or report by report."""
    saves = [
        event(ev.Checkpoint, n, rank=rank, writer=f"w{rank}", step=n, blocking_s=0.5 + rank)
        for rank in range(3)
        for n in range(5 * checkpoint_log.CHECKPOINTS_AT_HAND)
    ]
    at_once, one_by_one = folded(*saves), JobDetails()
    for save in saves:
        one_by_one.add([save])
    assert everything(at_once) == everything(one_by_one)
    assert {checkpoint.blocking_s for checkpoint in at_once.checkpoints.latest} == {2.5}


def test_evidence_is_kept_by_attempt_and_bounded():
    """The latest lines of the latest attempts are kept, in order of time, and cut to length."""
    kept = evidence_log.EVIDENCE_KEPT
    lines = [
        event(ev.Evidence, n, source="stderr", text=f"{n}" * 9000, time=1e9 + n) for n in range(kept + 5)
    ]
    fold = folded(*reversed(lines))
    assert [line.seq for line in fold.evidence.lines(0)] == list(range(5, kept + 5))
    assert {len(line.text) for line in fold.evidence.lines(0)} == {evidence_log.EVIDENCE_CHARACTERS}
    fold.add(event(ev.Evidence, 0, attempt=a, source="s", text="t") for a in range(1, 100))
    assert fold.evidence.lines(0) == []
    assert len(fold.evidence.everything()) == evidence_log.EVIDENCE_ATTEMPTS_KEPT


def test_stalls_are_what_launchers_told_of_them_in_order_of_time():
    """Sentences and stacks of all attempts, without other evidence."""
    fold = folded(
        event(ev.Evidence, 3, rank=-1, source="stack", text="rank 0 in the loop", time=1e9 + 301),
        event(ev.Evidence, 2, rank=-1, source="stall", text="no progress", time=1e9 + 300, observed_at=1e9),
        event(ev.Evidence, 1, rank=-1, source="stderr", text="Error"),
        event(ev.Evidence, 4, rank=-1, source="stall", text="no progress", attempt=1),
    )
    assert [
        (each["attempt"], each["time"], each["source"], each["node"]) for each in fold.evidence.stalls()
    ] == [
        (0, 1e9, "stall", "n"),
        (0, 1e9 + 301, "stack", "n"),
        (1, 1e9, "stall", "n"),
    ]


def test_garbage_cannot_spoil_the_sums():
    """Negative and enormous values are bounded, free names are limited in number."""
    fold = folded(
        event(ev.Progress, 0, step=1, steps=1, samples=-5.0),
        event(ev.Compile, 1, stage_seconds={"s": -1.0, "t": 1.7e308}),
        event(ev.Compile, 2, stage_seconds={"t": 1.7e308}),
        *(event(ev.Compile, 3 + n, stage_seconds={f"x{n}": 1.0}) for n in range(1000)),
        *(event(ev.AttemptStart, 2000 + n, labels={f"x{n}": "y"}) for n in range(1000)),
    )
    assert fold.samples == 0
    assert fold.compile_s["t"] == 2 * LARGEST_VALUE
    assert len(fold.compile_s) == len(fold.starts.labels) == NAMES_KEPT


def test_a_total_stands_until_its_process_reports_it_again():
    """Counters of different names come in different reports; the latest of each name counts."""
    fold = folded(
        event(ev.Counters, 1, values={"groups": 3.0, "collectives": 5.0}),
        event(ev.Counters, 2, values={"hooks.dropped_events": 1.0}),
        event(ev.Counters, 3, values={"groups": 4.0}),
        event(ev.Counters, 1, writer="other", values={"groups": 2.0}),
    )
    assert fold.processes.counters == {"groups": 6.0, "collectives": 5.0, "hooks.dropped_events": 1.0}


def test_totals_of_processes_are_bounded(monkeypatch):
    """Beyond the bound further processes are left out; those that are known go on."""
    monkeypatch.setattr(process_totals, "REPORTS_KEPT", 3)
    fold = folded(*(event(ev.Cache, 0, writer=f"w{n}", cache="pgo", hits=1) for n in range(9)))
    fold.add([event(ev.Cache, 1, writer="w0", cache="pgo", hits=5), event(ev.Cache, 1, cache="pgo", hits=7)])
    assert fold.processes.caches["pgo"].hits == 5 + 1 + 1


CAUSES = {
    "unknown": Facts(),
    "fell silent": Facts(silent=True),
    "ValueError: bad shape": Facts(exception="ValueError", message="bad shape\nin layer 3", exit_code=1),
    "ValueError: again": Facts(exception="ValueError", message="ValueError: again"),
    "KeyError": Facts(exception="KeyError"),
    "rank 1 was killed by SIGKILL (sender unknown)": Facts(rank=1, signal=9),
    "rank 0 was stopped by SIGTERM (sender unknown)": Facts(rank=0, exit_code=-15),
    "rank 2 crashed with SIGSEGV": Facts(rank=2, signal=11),
    "a process exited with code 1": Facts(rank=-1, exit_code=1),
    "rank 0 exited with code 137 (as after SIGKILL)": Facts(rank=0, exit_code=137),
    "preempted": Facts(status="preempted", signal=15),
    "out of quota": Facts(message="out of quota", exit_code=1),
}


@pytest.mark.parametrize(("cause", "facts"), CAUSES.items(), ids=CAUSES.keys())
def test_a_cause_says_what_is_known_and_no_more(cause, facts):
    """The words of a failure follow from what was reported; nothing reported is unknown."""
    assert words(facts) == cause


@given(
    st.builds(Facts, exception=st.text(), message=st.text(), signal=st.integers(), exit_code=st.integers())
)
def test_a_cause_is_always_short_and_never_empty(facts):
    """Any report gives one line of bounded length."""
    assert 0 < len(words(facts)) <= 300


def test_details_are_the_same_after_a_restart(story):
    """Details that are dumped and loaded between any two events end as those of all events at once."""
    events = story("j").events
    fold = JobDetails()
    for each in events:
        fold.add([each])
        fold = details.load(details.dump(fold))
    whole = folded(*events)
    assert everything(fold) == everything(whole)
    assert fold.state() == whole.state()
    assert (fold.stragglers(), fold.async_saves.saves) == (whole.stragglers(), whole.async_saves.saves)


def test_damaged_details_are_refused(story):
    """Bytes of details that are cut, changed or of something else are a ValueError."""
    data = details.dump(folded(*story("j").events))
    for bad in (b"", data[:-1], data[:30] + bytes([data[30] ^ 1]) + data[31:], b"ettfold\x01" + data[8:]):
        with pytest.raises(ValueError, match="snapshot"):
            details.load(bad)


def test_each_attempt_keeps_what_it_ran_on():
    """Versions and configuration go by attempt, its latest word counts; nodes are all that spoke."""
    said = {"versions": {"torch": "2.12"}, "config_hash": "a"}
    events = [
        event(ev.AttemptStart, 0, node="n0", **said),
        event(ev.AttemptStart, 1, node="n1", rank=-1),
        event(ev.AttemptStart, 2, attempt=1, versions={"torch": "2.13"}, config_hash="b"),
    ]
    expected = {
        0: Start({"torch": "2.12"}, "a", ("n0", "n1")),
        1: Start({"torch": "2.13"}, "b", ("n",)),
    }
    assert folded(*events).starts.by_attempt == expected
    assert folded(*reversed(events)).starts.by_attempt == expected


def test_what_ever_so_many_attempts_ran_on_is_bounded():
    fold = folded(*(event(ev.AttemptStart, n, attempt=n) for n in range(STARTS_KEPT + 10)))
    assert sorted(fold.starts.by_attempt) == list(range(10, STARTS_KEPT + 10))
