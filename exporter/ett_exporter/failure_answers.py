"""From the failures of a fleet to the answers of the query API: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict

import msgspec

from ett_core.fleet.rows import Failure, Run
from ett_core.fleet.tails import median
from ett_exporter.failure_types import FailureBucket, FailureGroup, FailureOfJob, RunRow
from ett_exporter.job_types import EvidenceRow
from ett_exporter.views import JobPage, JobView

HOUR_S = 3600.0


class Lost(TypedDict):
    """What failures cost together."""

    lost_accelerator_s: float
    cost: float | None


def failure_of_job(view: JobView, failure: Failure, place: int, prices: Mapping[str, float]) -> FailureOfJob:
    """One failure, the one at a place of its job, with what tells whose it is."""
    account, diagnosis = view.account.failures[place], view.diagnoses[place]
    return FailureOfJob(
        **msgspec.structs.asdict(account),
        id=failure.id,
        job_id=failure.job_id,
        job_name=failure.job_name,
        cluster=failure.cluster,
        team=failure.team,
        model=failure.model,
        accelerators=view.details.accelerators,
        accelerator_type=failure.accelerator_type,
        cause=view.cause(place, account, diagnosis),
        diagnosis=diagnosis,
        ending=failure.ending,
        retry=failure.retry,
        recurrence=failure.recurrence,
        losses=failure.losses,
        **lost([failure], prices),
    )


def lost(failures: Sequence[Failure], prices: Mapping[str, float]) -> Lost:
    """Held accelerator-seconds, and money where an accelerator has a price."""
    return Lost(lost_accelerator_s=sum(map(_lost_s, failures)), cost=_cost(failures, prices))


def _lost_s(failure: Failure) -> float:
    return failure.losses.accelerator_s


def _cost(failures: Sequence[Failure], prices: Mapping[str, float]) -> float | None:
    if not prices:
        return None
    return sum(_lost_s(f) / HOUR_S * prices.get(f.accelerator_type, 0.0) for f in failures)


def group_key(name: str, failure: Failure) -> str:
    """The group that a failure belongs to; empty where that is not known."""
    return str(getattr(failure, name))


def groups_of(
    failures: Sequence[Failure], name: str, order: str, prices: Mapping[str, float]
) -> list[FailureGroup]:
    """The failures by group, the largest first by their number (`count`) or their cost (`lost`).

    `cumulative_ratio` is the share of all that this group and those before it make up (Pareto).
    """
    members: dict[str, list[Failure]] = {}
    for failure in failures:
        members.setdefault(group_key(name, failure), []).append(failure)
    sizes = {
        key: float(len(group)) if order == "count" else sum(map(_lost_s, group))
        for key, group in members.items()
    }
    total = sum(sizes.values())
    whole = _Whole(len(failures), sum(map(_lost_s, failures)))
    found = []
    reached = 0.0
    for key in sorted(members, key=lambda key: (-sizes[key], key)):
        reached += sizes[key]
        found.append(_group(key, members[key], whole, prices, reached / total if total else None))
    return found


def over_time(
    failures: Sequence[Failure], name: str | None, span: tuple[float, float], parts: int
) -> list[FailureBucket]:
    """The failures by group in equal parts of the time from `span`; what lies outside counts at its edge."""
    begin, end = span
    width_s = (end - begin) / parts
    members: list[dict[str, list[Failure]]] = [{} for _ in range(parts)]
    for failure in failures:
        place = int((failure.time - begin) / width_s) if width_s > 0 else 0
        key = group_key(name, failure) if name else ""
        members[min(max(place, 0), parts - 1)].setdefault(key, []).append(failure)
    return [
        FailureBucket(
            begin=begin + place * width_s,
            end=begin + (place + 1) * width_s,
            counts={key: len(group) for key, group in groups.items()},
            lost_accelerator_s={key: sum(map(_lost_s, group)) for key, group in groups.items()},
        )
        for place, groups in enumerate(members)
    ]


class _Whole(NamedTuple):
    """All failures together."""

    number: int
    lost_s: float


def _group(
    key: str,
    members: Sequence[Failure],
    whole: _Whole,
    prices: Mapping[str, float],
    cumulative: float | None,
) -> FailureGroup:
    lost_s = sum(map(_lost_s, members))
    recovered = [failure.ttr_s for failure in members if failure.ttr_s is not None]
    return FailureGroup(
        key=key,
        count=len(members),
        jobs=len({failure.job_id for failure in members}),
        count_ratio=len(members) / whole.number,
        lost_ratio=lost_s / whole.lost_s if whole.lost_s else None,
        cumulative_ratio=cumulative,
        unsaved_s=sum(failure.losses.unsaved_s for failure in members),
        stalled_s=sum(failure.losses.stalled_s for failure in members),
        recovery_s=sum(failure.losses.recovery_s for failure in members),
        ttr_median_s=median(recovered) if recovered else None,
        first=min(failure.time for failure in members),
        last=max(failure.time for failure in members),
        **lost(members, prices),
    )


def evidence_of(page: JobPage, place: int) -> list[EvidenceRow]:
    """The lines and facts of the attempt of the failure at a place of its job, in order of time."""
    return [
        EvidenceRow(time=line.time, rank=line.rank, node=line.node, source=line.source, text=line.text)
        for line in page.evidence.get(place, ())
    ]


def alike(failures: Sequence[Failure], place: int) -> list[str]:
    """The names of the failures of the same job that came before it in its row of equal ones."""
    return [failure.id for failure in failures[place - failures[place].recurrence.count + 1 : place]]


def run_row(run: Run) -> RunRow:
    """A run as the API tells it; which nodes it ran on is left out."""
    return RunRow(
        job_id=run.job_id,
        attempt=run.attempt,
        start=run.start,
        family=run.family,
        cluster=run.cluster,
        owner=run.owner,
        accelerator_type=run.accelerator_type,
        world_size=run.world_size,
        config_hash=run.config_hash,
        versions=run.versions,
        figures=run.figures,
    )
