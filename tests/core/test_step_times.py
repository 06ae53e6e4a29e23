"""Durations of steps by bucket: the error that is stated, the bounds, the merging."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core import step_times
from ett_core.details import JobDetails
from ett_core.events import Progress, StepSeconds, decode, encode
from ett_core.step_times import FINEST_S, LAST_BUCKET, LONGEST_S, bounds_s, bucket_of, merged, quantile

durations = st.floats(FINEST_S, LONGEST_S, exclude_max=True)


@given(seconds=durations)
def test_a_duration_lies_within_the_bounds_of_its_bucket(seconds):
    """Also at the bounds themselves."""
    low, high = bounds_s(bucket_of(seconds))
    assert low <= seconds < high


def test_bounds_are_exact_and_join_up():
    """A bucket begins where the one before ends, and its first duration is its own."""
    for bucket in range(1, LAST_BUCKET + 1):
        assert bounds_s(bucket - 1)[1] == bounds_s(bucket)[0]
        assert bucket_of(bounds_s(bucket)[0]) == bucket
    assert bounds_s(1)[0] == FINEST_S
    assert bounds_s(LAST_BUCKET)[0] == LONGEST_S


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (-1.0, 0), (float("nan"), 0), (float("inf"), LAST_BUCKET)]
)
def test_whatever_is_no_duration_has_a_bucket_too(seconds, bucket):
    """No reading of a clock can make the counting fail."""
    assert bucket_of(seconds) == bucket


@given(st.lists(durations, min_size=1, max_size=200), st.floats(0.0, 1.0))
def test_a_quantile_is_as_exact_as_stated(seconds, share):
    """Within the relative error of the step of that rank."""
    exact = sorted(seconds)[max(ceil(share * len(seconds)), 1) - 1]
    found = quantile(merged({bucket_of(each): 1} for each in seconds), share)
    assert abs(found - exact) <= step_times.RELATIVE_ERROR * exact * (1 + 1e-9)


@given(st.lists(st.dictionaries(st.integers(0, LAST_BUCKET), st.integers(0, 10**9)), max_size=6), st.data())
def test_merging_loses_nothing_in_any_order(histograms, data):
    """Counts add up bucket by bucket, however the histograms come."""
    total = merged(histograms)
    assert merged(data.draw(st.permutations(histograms))) == total
    assert sum(total.values()) == sum(sum(each.values()) for each in histograms)


def test_without_steps_there_is_no_quantile():
    """Nothing is made up."""
    assert quantile({}, 0.5) is None


def report(rank=0, seq=0, **seconds):
    steps = StepSeconds(**seconds)
    return Progress(
        job_id="j",
        writer=f"w{rank}",
        seq=seq,
        attempt=0,
        rank=rank,
        time=1e9,
        step=1,
        steps=1,
        step_seconds=steps,
    )


def test_a_report_without_buckets_reads_and_writes_as_before():
    """The field is left out where there is nothing in it."""
    old = report(count=1, sum=1.0, max=1.0)
    assert b"buckets" not in encode(old)
    assert decode(encode(old)) == old


@pytest.mark.parametrize("bucket", [b"-1", b"298", b"x"])
def test_a_bucket_that_does_not_exist_is_no_event(bucket):
    """A wrong number cannot grow the state of a reader."""
    line = encode(report(count=1, sum=1.0, max=1.0, buckets={161: 1}))
    with pytest.raises(ValueError, match=r"step_seconds\.buckets"):
        decode(line.replace(b"161", bucket))


def test_the_details_of_a_job_tell_how_long_its_steps_took():
    """Over all ranks; reports without a histogram say nothing; none exceeds the longest step."""
    details = JobDetails()
    details.add([report(count=5, sum=50.0, max=10.0)])
    assert details.steps.read() is None
    for rank, longest in ((0, 0.2), (1, 7.0)):
        buckets = {bucket_of(0.1): 98, bucket_of(longest): 1}
        details.add([report(rank, seq=1, count=99, sum=10.0, max=longest, buckets=buckets)])
    times = details.steps.read()
    assert (times.timed, times.max_s) == (198, 7.0)
    assert times.p50_s == pytest.approx(0.1, rel=step_times.RELATIVE_ERROR)
    assert times.p99_s == pytest.approx(0.2, rel=step_times.RELATIVE_ERROR)
