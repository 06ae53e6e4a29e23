"""Rows of simulated fleets: the events of `ett simulate`, folded as an exporter folds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.settings import Scenario
from ett_cli.simulate.truth import JobTruth
from ett_core.accounting import JobAccount, JobFold
from ett_core.details import JobDetails
from ett_core.failures import Diagnosis, diagnose
from ett_core.fleet.attempts import evidence_of_failures
from ett_core.fleet.rows import Rows, rows_of

END_MS = 1_764_000_000_000
END = END_MS / 1000


class Known(NamedTuple):
    """A job as an exporter knows it at `END`, and what is true of it."""

    fold: JobFold
    account: JobAccount
    details: JobDetails
    diagnoses: list[Diagnosis]
    rows: Rows
    truth: JobTruth


def known(shape: Scenario) -> Iterator[Known]:
    """Every job of a fleet."""
    for story in Fleet(shape, END_MS).stories():
        fold, details = JobFold(story.plan.job_id), JobDetails()
        events = [event for _, event in story.events(shape.window_ms)]
        fold.add(events)
        details.add(events)
        account, truth = fold.account(END), story.truth(shape.window_ms)
        if account is None or truth is None:
            continue
        diagnoses = list(map(diagnose, account.failures, evidence_of_failures(account, details.evidence)))
        starts = details.starts
        rows = rows_of(account, diagnoses, starts.labels, starts.by_attempt, starts.accelerator_type)
        yield Known(fold, account, details, diagnoses, rows, truth)


def simulated(shape: Scenario) -> list[tuple[Rows, JobTruth]]:
    """The rows of every job of a fleet, and what is true of it."""
    return [(each.rows, each.truth) for each in known(shape)]
