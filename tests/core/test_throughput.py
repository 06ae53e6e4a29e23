"""Steps and samples over the life of a job, however its reports come."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from told import refused

from ett_core.events import Progress, StepSeconds
from ett_core.runs import rows_of
from ett_core.throughput import FINEST_S, LONGEST_REPORT_S, PARTS, ThroughputFold


def report(time: float, steps: int = 1, samples: float = 0.0, rank: int = 0, took_s: float | None = None):
    timed = None if took_s is None else StepSeconds(count=steps, sum=took_s, max=took_s)
    return Progress(
        job_id="j", writer="w", seq=0, attempt=0, rank=rank, time=time, step=1, steps=steps, samples=samples,
        step_seconds=timed,
    )  # fmt: skip


def folded(*reports: Progress) -> ThroughputFold:
    fold = ThroughputFold()
    for each in reports:
        fold.add(each.rank, rows_of([each], refused))
    return fold


REPORTS = st.lists(
    st.builds(
        report,
        time=st.floats(1.0, 1e5),
        steps=st.integers(0, 50),
        samples=st.floats(0, 1e6),
        rank=st.integers(0, 3),
        took_s=st.none() | st.floats(0, 2 * LONGEST_REPORT_S),
    ),
    max_size=12,
)


def test_nothing_was_told():
    assert folded().read() is None
    assert folded(report(5.0, steps=0)).read() is None


def test_a_report_is_spread_over_the_time_that_its_steps_took():
    """Ten steps in 2.5 s: one in the half second that the first part has of them, four in each whole one."""
    told = folded(report(1003.0, steps=10, samples=80.0, took_s=2.5)).read()
    assert (told.begin, told.width_s) == (1000.0, FINEST_S)
    assert told.steps == pytest.approx((2.0, 4.0, 4.0, 0.0))
    assert told.samples == pytest.approx((16.0, 32.0, 32.0, 0.0))


def test_samples_are_of_all_ranks_and_steps_of_the_lowest():
    """Ranks step together; each consumes samples of its own, whichever rank speaks first."""
    told = folded(*(report(10.5, steps=3, samples=8.0, rank=rank) for rank in (2, 1, 3, 1))).read()
    assert (told.steps, told.samples) == ((6.0,), (32.0,))


def test_parts_grow_wider_with_the_life_of_the_job():
    """A day of reports fits into the parts that are kept, and nothing of them is lost."""
    day = [report(1e9 + 60.0 * minute, steps=60, samples=7.0) for minute in range(24 * 60)]
    told = folded(*day).read()
    assert PARTS // 2 <= len(told.steps) <= PARTS
    assert told.width_s == 1024.0
    assert (sum(told.steps), sum(told.samples)) == (60 * 24 * 60, 7 * 24 * 60)
    assert told.begin % told.width_s == 0
    assert told.begin <= 1e9 < told.begin + told.width_s


@given(REPORTS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(reports, chance):
    """The same parts, and the same amounts in them but for rounding."""
    shuffled = chance.sample(reports, len(reports))
    told, other = folded(*reports).read(), folded(*shuffled).read()
    if told is None:
        assert other is None
        return
    assert (told.begin, told.width_s) == (other.begin, other.width_s)
    assert other.steps == pytest.approx(told.steps)
    assert other.samples == pytest.approx(told.samples)


def test_reports_whose_steps_do_not_count_belong_to_the_life_all_the_same():
    """The parts are the same whether a rank without samples speaks before or after the lowest one."""
    early, late = report(1.0, rank=0), report(98.0, rank=1)
    assert folded(early, late).read() == folded(late, early).read()
    assert folded(early, late).read().width_s == 2.0


@given(REPORTS)
def test_nothing_is_lost_and_the_room_is_bounded(reports):
    told = folded(*reports).read()
    known = [each for each in reports if each.steps or each.samples]
    assert (told is None) == (not known)
    if told is None:
        return
    lowest = min((each.rank for each in known if each.steps), default=None)
    assert len(told.steps) == len(told.samples) <= PARTS
    assert sum(told.samples) == pytest.approx(math.fsum(each.samples for each in reports))
    assert sum(told.steps) == pytest.approx(sum(each.steps for each in known if each.rank == lowest))


@given(REPORTS, REPORTS)
def test_a_fold_goes_on_from_its_state(before, after):
    fold = folded(*before)
    restored = ThroughputFold(fold.state())
    for each in after:
        fold.add(each.rank, rows_of([each], refused))
        restored.add(each.rank, rows_of([each], refused))
    assert restored.state() == fold.state()
