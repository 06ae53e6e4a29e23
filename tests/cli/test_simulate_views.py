"""What else the product tells of a simulated fleet: slow ranks, the cost of saves, causes of failures."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from told import timed

from ett_cli.simulate.catalogue import ENDING
from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.settings import Scenario, scenario
from ett_cli.simulate.truth import JobTruth
from ett_core.accounting import JobFold
from ett_core.details import JobDetails
from ett_core.events import AnyEvent, Checkpoint, CheckpointDurable, CheckpointFailed, Progress
from ett_core.evidence_log import EvidenceLog
from ett_core.failures.attempt import diagnose
from ett_core.fleet.attempts import spans_of_failures
from ett_core.interference import AsyncSaves
from ett_core.save_costs import total
from ett_core.stragglers import RankPaces

END_MS = 1_764_000_000_000
QUIET = replace(
    scenario("small", jobs=12, ranks=64),
    smallest=8,
    stragglers=5.0,
    adoption=(1.0, 1.0),
    job_failures=0.0,
    preemptions=0.0,
)
AMBIGUOUS = {
    "compile_slow": "a wait that ends in a time-out, with no moment at which the compilation began",
    "checkpoint_stall": "the same, of a save",
    "node_failure": "the only node of a job takes its evidence with it",
}


def jobs(shape: Scenario) -> list[tuple[JobTruth, list[AnyEvent]]]:
    found = []
    for story in Fleet(shape, END_MS).stories():
        events = [event for _, event in story.events(shape.window_ms)]
        truth = story.truth(shape.window_ms)
        if truth is not None:
            found.append((truth, events))
    return found


def test_slow_ranks_are_named_with_their_cause():
    """Each that was slow for a while is found, and no other rank is."""
    seen = 0
    for truth, events in jobs(QUIET):
        paces = RankPaces()
        for event in events:
            if isinstance(event, Progress):
                paces.add(*timed(event))
        found = {(one.rank, one.cause): one.ratio for one in paces.stragglers()}
        for slow in truth.slow_ranks:
            assert found.pop((slow.rank, slow.cause)) == pytest.approx(slow.factor, rel=0.12)
            seen += 1
        assert found == {}
    assert seen >= 3


def test_the_cost_of_saves_in_flight_is_found():
    """Steps that take 6 % longer beside an asynchronous save are told as such."""
    saves, excess_s, within_s = 0, 0.0, 0.0
    truth_s, each_s = 0.0, []
    for truth, events in jobs(replace(QUIET, stragglers=0.0)):
        beside = AsyncSaves()
        for event in events:
            if isinstance(event, Progress):
                beside.add_reports(*timed(event))
            elif isinstance(event, (Checkpoint, CheckpointDurable, CheckpointFailed)):
                beside.add(event)
        found = total(beside.saves)
        if found.share:
            saves += found.known
            excess_s += found.excess_s
            within_s += found.excess_s / found.share
        truth_s += truth.saves.slowed_s
        if found.known > 9:
            each_s.append((beside.slowed_s, truth.saves.slowed_s / found.saves))
    assert saves > 30
    assert excess_s / within_s == pytest.approx(QUIET.interference, abs=0.012)
    assert excess_s == pytest.approx(truth_s, rel=0.1)
    assert len(each_s) > 4
    assert sum(found_s for found_s, _ in each_s) == pytest.approx(sum(s for _, s in each_s), rel=0.1)


def evidence_by_attempt(events: list[AnyEvent]) -> dict[int, EvidenceLog]:
    """The evidence of every number of an attempt, also of those beyond the latest that are kept of a job."""
    by_attempt: dict[int, list[AnyEvent]] = defaultdict(list)
    for event in events:
        by_attempt[event.attempt].append(event)
    found = {}
    for attempt, said in by_attempt.items():
        details = JobDetails()
        details.add(said)
        found[attempt] = details.evidence
    return found


def test_evidence_leads_to_the_cause_where_it_can():
    """Every class whose log lines tell it is diagnosed; of the others nothing is claimed here."""
    told: Counter[str] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for truth, events in jobs(scenario("failures", jobs=8)):
        fold = JobFold(truth.job_id)
        fold.add(events)
        account = fold.account(END_MS / 1000)
        assert account is not None
        evidence = evidence_by_attempt(events)
        spans = spans_of_failures(account.attempts)
        for meant, seen, span in zip(truth.failures, account.failures, spans, strict=True):
            found = diagnose(seen, evidence[seen.attempt].lines(seen.attempt, *span)).failure_class
            told[meant.failure_class] += 1
            if found != meant.failure_class and meant.failure_class not in AMBIGUOUS:
                wrong[meant.failure_class, found] += 1
    assert told.keys() >= {cause.failure_class for cause in ENDING}
    assert wrong == Counter()
