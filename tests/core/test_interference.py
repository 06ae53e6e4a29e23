"""What asynchronous saves cost the steps beside them, by worked examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from told import timed

from ett_core import interference
from ett_core.events import Checkpoint, CheckpointDurable, CheckpointFailed, Progress, StepSeconds
from ett_core.interference import AsyncSaves
from ett_core.save_costs import NO_END, NO_STEPS, NO_USUAL, SaveInterference, slowed_s, total
from ett_core.save_reports import FIELDS, REPORTS_AT_HAND, Report, Reports

T0 = 1_764_000_000.0


def event(kind, time, *, attempt=0, rank=0, **fields):
    seq = int(time * 1000) + 1_000_000 * (kind is not Progress)
    return kind(
        job_id="j", writer=f"w{rank}", seq=seq, attempt=attempt, rank=rank, time=T0 + time, **fields
    )  # fmt: skip


def report(end, step_s, *, steps=10, wait_s=0.0, **more):
    seconds = StepSeconds(steps, steps * step_s, step_s)
    return event(Progress, end, step=0, steps=steps, data_wait_s=wait_s, step_seconds=seconds, **more)


def save(began, ended=None, *, step=50, outcome=CheckpointDurable, **more):
    yield event(Checkpoint, began, step=step, mode="async", **more)
    if ended is not None:
        yield event(outcome, ended, step=step, mode="async", **more)


def take(fold, each):
    if isinstance(each, Progress):
        fold.add_reports(*timed(each))
    else:
        fold.add(each)


def folded(*events):
    fold = AsyncSaves()
    for each in events:
        take(fold, each)
    return fold


USUAL = [report(5.0 * n, 0.5) for n in range(1, 11)]
"""Fifty seconds of steps of half a second, reported every five seconds."""
AFTER = [report(58.0 + 5.0 * n, 0.5) for n in range(1, 5)]


def test_the_excess_is_what_the_steps_in_flight_took_beyond_usual_ones():
    """Ten steps took 8 s instead of 5: an excess of 3 s, a share of 0.6."""
    (found,) = folded(*USUAL, *save(50.0, 57.5), report(58.0, 0.8), *AFTER).saves
    assert (found.began, found.ended, found.outcome) == (T0 + 50.0, T0 + 57.5, "durable")
    assert (found.usual_step_s, found.steps, found.noise_s) == (0.5, pytest.approx(10 * 7.5 / 8), 0.0)
    assert found.excess_s == pytest.approx(3.0)
    assert found.share == pytest.approx(3.0 / (found.steps * 0.5))


def test_steps_that_are_as_usual_show_no_excess():
    (found,) = folded(*USUAL, *save(50.0, 54.0), report(55.0, 0.5), report(60.0, 0.5)).saves
    assert found.excess_s == pytest.approx(0.0)


def test_a_report_that_a_save_only_partly_covers_still_tells_its_excess():
    """Reports of a writer that does not split them: 4 of 5 s in flight, all of the excess is the save's."""
    (found,) = folded(*USUAL, *save(51.0, 57.5), report(57.0, 0.7), report(62.0, 0.5), *AFTER).saves
    assert found.excess_s == pytest.approx(2.0)
    assert found.steps == pytest.approx(10 * 6 / 7 + 10 * 0.5 / 5)


def test_a_report_beside_two_saves_is_shared_out_by_their_time_in_it():
    events = [*USUAL, *save(50.0, 52.0), *save(55.0, 59.0, step=60), report(60.0, 1.0)]
    first, second = folded(*events, *[report(60.0 + 5 * n, 0.5) for n in range(1, 4)]).saves
    assert first.excess_s + second.excess_s == pytest.approx(5.0)
    assert second.excess_s == pytest.approx(2 * first.excess_s)


def test_noise_says_what_may_be_chance():
    """With steps that differ from report to report, an excess of the same size says nothing."""
    noisy = [report(5.0 * n, 0.5 + 0.1 * (-1) ** n) for n in range(1, 11)]
    (found,) = folded(*noisy, *save(50.0, 54.9), report(55.0, 0.55)).saves
    assert 0.0 < found.excess_s < found.noise_s


def test_a_failed_save_costs_as_much():
    (found,) = folded(*USUAL, *save(50.0, 57.9, outcome=CheckpointFailed), report(58.0, 0.8)).saves
    assert (found.outcome, found.excess_s) == ("failed", pytest.approx(3.0))


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([*USUAL, *save(50.0), report(58.0, 0.8)], NO_END),
        ([*USUAL, *save(50.0, 57.0)], NO_STEPS),
        ([*USUAL[:2], *save(10.0, 17.0), report(18.0, 0.8)], NO_USUAL),
        ([*save(0.0, 24.0), *save(24.0, 60.0, step=60), *USUAL], NO_USUAL),
    ],
)
def test_what_cannot_be_known_is_unknown_and_says_why(events, why):
    found = folded(*events).saves[0]
    assert (found.excess_s, found.share, found.noise_s, found.unknown) == (None, None, None, why)


def test_steps_beside_a_save_whose_end_nobody_told_are_not_usual():
    """They may be slow: what is usual is taken from the others."""
    slow = [report(50.0 + 8.0 * n, 0.8) for n in range(1, 31)]
    later = [report(291.0 + 5.0 * n, 0.5) for n in range(1, 9)]
    events = [*USUAL, *save(50.0), *slow, *save(291.0, 299.0, step=60), report(299.0, 0.8), *later]
    first, second = folded(*events).saves
    assert first.unknown == NO_END
    assert (second.usual_step_s, second.excess_s) == (0.5, pytest.approx(3.0))


def test_the_lowest_rank_that_reports_speaks_for_the_job_and_the_first_end_counts():
    """Every rank tells of its part; one of them is enough to make the save durable for the job."""
    others = [report(5.0 * n, 9.0, rank=1) for n in range(1, 13)]
    ends = [event(CheckpointDurable, 90.0, rank=1, step=50, mode="async")]
    (found,) = folded(*others, *ends, *USUAL, *save(50.0, 57.9), report(58.0, 0.8)).saves
    assert (found.usual_step_s, found.ended) == (0.5, T0 + 57.9)
    assert found.excess_s == pytest.approx(3.0)


def test_synchronous_saves_are_none_of_these():
    assert folded(*USUAL, event(Checkpoint, 50.0, step=50, mode="sync")).saves == []


def test_the_sum_is_over_saves_with_figures():
    fold = folded(*USUAL, *save(50.0, 57.9), report(58.0, 0.8), *AFTER, *save(78.0, step=60))
    sums = total(fold.saves)
    assert (sums.saves, sums.known) == (2, 1)
    assert sums.excess_s == pytest.approx(3.0)
    assert total([]).excess_s is None


def of(*excesses_s, noise_s=0.5):
    return [
        SaveInterference(0, step, T0, T0 + 9.0, "durable", excess_s=excess_s, noise_s=noise_s)
        for step, excess_s in enumerate(excesses_s)
    ]


@pytest.mark.parametrize(
    ("saves", "slows_s"),
    [
        (of(3.0), 3.0),
        (of(3.0, 2.0, 4.0), 3.0),
        (of(3.0, 2.0, 300.0), 3.0),  # a step that stood still is no cost of the save beside it
        (of(0.4), 0.0),  # may be chance
        (of(*[0.4] * 9), 0.4),  # nine times the same is none
        (of(-0.4, -0.2, 0.1), 0.0),
        ([], None),
        ([SaveInterference(0, 1, T0, None, "unknown", unknown=NO_END)], None),
    ],
)
def test_one_save_slows_by_what_the_middle_one_does(saves, slows_s):
    assert slowed_s(saves) == slows_s


def many_saves(count):
    """Each beside ten steps of 0.8 s, with forty of half a second before it; told in order."""
    at = 0.0
    for step in range(count):
        yield from (report(at + 5.0 * n, 0.5) for n in range(1, 5))
        at += 20.0
        yield from save(at, at + 8.0, step=step)
        at += 8.0
        yield report(at, 0.8)


def test_what_a_save_slows_is_known_from_the_first_one_on_and_stays(monkeypatch):
    """Also once the reports beside them are gone; a fold that was kept as a value says the same."""
    monkeypatch.setattr(interference, "REPORTS_KEPT", 40)
    fold = AsyncSaves()
    known = set()
    for each in many_saves(30):
        take(fold, each)
        known.add(None if fold.slowed_s is None else round(fold.slowed_s, 9))
        assert AsyncSaves.of_state(fold.state()).slowed_s == fold.slowed_s
    assert known == {None, 3.0}
    assert fold.slowed_s == pytest.approx(3.0)
    assert fold.state().settled


def test_attempts_are_apart():
    """A slow attempt is no excess of a save in it."""
    slow = [report(200.0 + 8.0 * n, 0.8, attempt=1) for n in range(12)]
    (found,) = folded(*USUAL, *slow, *save(250.0, 255.0, attempt=1)).saves
    assert (found.usual_step_s, found.excess_s) == (0.8, pytest.approx(0.0))


STORY = [*USUAL, *save(50.0, 57.9), report(58.0, 0.8), *AFTER, *save(78.0, 80.0, step=60), report(83.0, 0.6),
         report(60.0, 9.0, rank=1)]  # fmt: skip


@given(st.permutations(STORY))
def test_the_order_of_arrival_changes_nothing(events):
    assert folded(*events).saves == folded(*STORY).saves


def test_a_long_job_without_such_saves_costs_bounded_memory(monkeypatch):
    monkeypatch.setattr(interference, "REPORTS_KEPT", 100)
    fold = folded(*(report(5.0 * n, 0.5) for n in range(1, 1000)))
    assert (fold.saves, sum(map(len, fold._reports.values())) <= 100) == ([], True)


def long_run(saves):
    for n in range(saves):
        begin = 100.0 * n
        yield from (report(begin + 5.0 * k, 0.5) for k in range(1, 11))
        yield from save(begin + 50.0, begin + 57.9, step=n)
        yield report(begin + 58.0, 0.8)


def test_memory_is_bounded_and_figures_outlive_their_reports(monkeypatch):
    """Saves whose reports are gone keep what was found."""
    monkeypatch.setattr(interference, "REPORTS_KEPT", 100)
    fold = AsyncSaves()
    for each in long_run(60):
        take(fold, each)
        assert sum(map(len, fold._reports.values())) <= 100
    assert len(fold.saves) == 60
    assert [save.excess_s for save in fold.saves] == pytest.approx([3.0] * 60)
    monkeypatch.setattr(interference, "SAVES_KEPT", 20)
    assert [save.step for save in fold.saves] == list(range(40, 60))
    for each in long_run(3):
        take(fold, each)
    assert [save.step for save in fold.saves] == list(range(40, 60))


def test_reports_of_a_state_lie_packed_like_those_that_came():
    """A job that is brought back takes no more memory than before."""
    reports = Reports(0, [Report(5.0 * n, 5.0 * n - 4.0, 10, 4.0) for n in range(1, 101)])
    assert (len(reports), len(reports._rows)) == (100, REPORTS_AT_HAND * FIELDS)
