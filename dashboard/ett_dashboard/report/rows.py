"""What a report reads beside what the pages do, as immutable rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_dashboard.client import Question, in_path
from ett_dashboard.failures.rows import JobFailure
from ett_dashboard.rows import JobDetail


class ReportedJob(JobDetail, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/jobs/{job_id}`, its failures with their diagnoses."""

    failure_list: Sequence[JobFailure] = ()


class FleetTime(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of some jobs went, in accelerator-seconds that were held.

    `jobs` is None where nobody counted them.
    """

    key: str
    jobs: int | None = None
    total: float
    effective_ratio: float | None = None
    components: Mapping[str, float] = {}
    failures: int = 0


class FleetPart(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of some jobs went between two moments."""

    begin: float
    end: float
    all: FleetTime


class FleetWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/fleet`."""

    as_of: float
    begin: float
    end: float
    all: FleetTime
    fleet: Sequence[FleetTime] = ()
    over_time: Sequence[FleetPart] = ()


def job(job_id: str) -> Question[ReportedJob]:
    """One job in full."""
    return Question(f"/api/v1/jobs/{in_path(job_id)}", ReportedJob)


def fleet(begin: float, end: float, group_by: str) -> Question[FleetWindow]:
    """Where the time of all jobs went between two moments, and that of each group."""
    given = {"begin": f"{begin:.3f}", "end": f"{end:.3f}", "weight": "accelerator", "group_by": group_by}
    return Question("/api/v1/fleet", FleetWindow, tuple(given.items()))
