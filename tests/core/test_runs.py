"""Events that came together are folded as if each had come alone."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from plausible import plausible

from ett_core.details import JobDetails
from ett_core.events import Checkpoint, CheckpointDurable, Progress, StepSeconds
from ett_core.runs import rows_of, runs_of

T0 = 1_764_000_000.0
EXACT = st.integers(0, 64).map(lambda eighths: eighths / 8)
"""Durations whose sums are not rounded."""


@st.composite
def reports(draw, seq):
    about = {"job_id": "j", "seq": seq, "attempt": draw(st.integers(0, 1)), "rank": draw(st.integers(-1, 2))}
    about |= {
        "writer": f"w{about['attempt']}{about['rank']}",
        "node": draw(st.sampled_from(["", "n1", "n2"])),
    }
    about["time"] = T0 + draw(st.integers(0, 4000)) / 8
    kind = draw(st.sampled_from([Progress, Progress, Progress, Checkpoint, CheckpointDurable]))
    if kind is not Progress:
        return kind(**about, step=draw(st.integers(0, 5)), mode="async")
    count = draw(st.integers(0, 4))
    times = StepSeconds(count, draw(EXACT), draw(EXACT), draw(st.sampled_from([{}, {9: 2, 12: 1}])))
    told = {"step": 9, "steps": count, "samples": draw(EXACT), "data_wait_s": draw(EXACT)}
    return Progress(**about, **told, step_seconds=draw(st.sampled_from([None, times])))


@st.composite
def batches(draw):
    count = draw(st.integers(1, 40))
    return [draw(reports(seq)) for seq in range(count)]


def known(details):
    """What the details tell, but for the parts of time, whose sums are of fractions."""
    paces = details.rank_paces.state()
    return {
        "checkpoints": details.checkpoints.latest,
        "nodes": details.nodes.state(),
        "saves": details.async_saves.saves,
        "reports": {at: list(reports) for at, reports in details.async_saves._reports.items()},
        "steps": details.steps.state(),
        "samples": details.samples,
        "paces": paces._replace(halves=sorted(paces.halves)),
        "throughput": rounded(details.throughput.read()),
    }


def rounded(told):
    if told is None:
        return None
    amounts = ([round(each, 6) for each in column] for column in (told.steps, told.samples))
    return told.begin, told.width_s, *amounts


@given(batches())
def test_together_or_one_by_one(events):
    at_once, alone = JobDetails(), JobDetails()
    at_once.add(events)
    for event in events:
        alone.add([event])
    assert known(at_once) == known(alone)
    assert at_once.refusals.take() == alone.refusals.take() == []


def test_runs_are_all_events_in_their_order():
    """Each of one writer, attempt, rank and node, and as long as can be."""
    events, _ = plausible(random.Random(5))
    runs = list(runs_of(events))
    assert [event for run in runs for event in run] == events
    sources = [{(e.writer, e.attempt, e.rank, e.node) for e in run} for run in runs]
    assert {len(source) for source in sources} == {1}
    assert all(one != other for one, other in pairwise(sources))


def test_of_reports_without_numbers_none_counts():
    """A report whose wait for data is none is refused, the one beside it is not."""
    said = {"job_id": "j", "writer": "w", "attempt": 0, "rank": 0, "step": 1, "steps": 1}
    good, bad = (Progress(**said, seq=n, time=T0, data_wait_s=wait_s) for n, wait_s in ((0, 1.0), (1, None)))
    refused = []
    rows = rows_of([bad, good], lambda event, error: refused.append((event, type(error))))
    assert (len(rows), refused) == (1, [(bad, TypeError)])
