"""From runs, sums and levers to the answers of the query API: pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ett_core.components import RECOVER_QUEUE, group_seconds
from ett_core.fleet.cache_compare import colder, likely_reasons, side_by_side
from ett_core.fleet.caches import CacheRun, Verdict
from ett_core.fleet.what_if import (
    FleetTime,
    JobTime,
    Levers,
    Outcome,
    Window,
    all_keys,
    job_time,
    meaning_of_lever,
    saving_of,
    warm_shares,
)
from ett_exporter.cache_answers import cache_row
from ett_exporter.fleet import weight_of
from ett_exporter.fleet_sums import kind_of
from ett_exporter.lever_types import CacheComparison, CacheRunRow, LeverRow, Sum
from ett_exporter.views import WINDOWS_S, JobView


def run_row(run: CacheRun, verdict: Verdict) -> CacheRunRow:
    """One run with its verdict."""
    fields = msgspec.structs.asdict(run) | {
        "caches": {name: cache_row(total) for name, total in run.caches.items()}
    }
    return CacheRunRow(
        **fields,
        verdict=verdict.kind,
        expected_warm=verdict.expected_warm,
        because=verdict.because,
        alike=verdict.alike,
    )


def compared(as_of: float, one: CacheRun, two: CacheRun, verdicts: Mapping[str, Verdict]) -> CacheComparison:
    """Two runs side by side, and why the colder one was cold."""
    warm, cold = colder(one, two)
    return CacheComparison(
        as_of=as_of,
        one=run_row(one, verdicts[one.id]),
        two=run_row(two, verdicts[two.id]),
        cold=cold.id,
        differences=side_by_side(one, two),
        reasons=likely_reasons(warm, cold, verdicts[cold.id].kind),
    )


def weigher(weight: str, prices: Mapping[str, float]) -> Callable[[JobView], float]:
    """What a second of a job weighs."""
    return lambda view: weight_of(weight, kind_of(view), prices)


def left_out(weight: str) -> frozenset[str]:
    """Components that weigh nothing: in held time those in which nothing is held."""
    return frozenset() if weight == "job" else frozenset({RECOVER_QUEUE})


def job_time_of(
    view: JobView, window: str, family: str, levels: Mapping[str, float], weight: float
) -> JobTime:
    """A job in one of the windows of its view."""
    account, details = view.account, view.details
    return job_time(
        account,
        [diagnosis.failure_class for diagnosis in view.diagnoses],
        Window(view.windows[window], account.as_of - WINDOWS_S[window], weight),
        saving_of(
            account, details.checkpoint_count, details.checkpoint_upload_s, details.checkpoint_slowed_s
        ),
        warm_shares(account, family, levels),
    )


def alone(time: FleetTime) -> list[LeverRow]:
    """Each lever by itself, the one that saves most first."""
    rows = [_lever(time, key) for key in all_keys(time.classes)]
    return sorted(rows, key=lambda row: (-row.saved, row.key))


def overlap(rows: Sequence[LeverRow], levers: Levers, together: Outcome) -> float:
    """How much less some levers save together than each alone, added up."""
    return sum(row.saved for row in rows if row.key in levers.keys) - together.saved


def _lever(time: FleetTime, key: str) -> LeverRow:
    outcome, now = time.with_levers(Levers.of([key])), time.now.effective_ratio
    ratio = outcome.effective_ratio
    return LeverRow(
        key=key,
        supposes=meaning_of_lever(key),
        saved=outcome.saved,
        effective_ratio=ratio,
        gain_ratio=None if ratio is None or now is None else ratio - now,
    )


def sum_of(outcome: Outcome) -> Sum:
    """Weighted time with some levers."""
    return Sum(
        total=outcome.total,
        effective_ratio=outcome.effective_ratio,
        components=outcome.components,
        groups=group_seconds(outcome.components),
    )
