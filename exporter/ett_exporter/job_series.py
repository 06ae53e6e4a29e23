"""From the view of one job to its samples on /metrics: pure.

A rich job has fewer than 50 series: components and cache results that are zero are left out,
and caches without a name here and compile stages beyond the first few are added up as `other`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ett_core.accounting.account import ett_percent
from ett_core.accounting.attempt_state import SUCCEEDED
from ett_core.components import UNSAVED_TRAINING
from ett_core.failures.classes import DOMAINS, UNKNOWN
from ett_core.fleet.recurrence import latest_row
from ett_exporter.intervals import best_interval_s, costs_of
from ett_exporter.text import LABELS_SHARED, Sample, Samples, summary
from ett_exporter.views import JobView, has_settled, held_seconds

LABEL_CHARACTERS = 200
STAGES_SHOWN = 4
CACHES = ("fx_graph", "aot_autograd", "triton_bundle", "pgo", "autotune", "mega_cache")
"""Caches with series of their own; any other is counted as `other`."""
JOB_WINDOWS = ("1h", "24h")
INFO_LABELS = ("team", "model", "cluster")


def job_samples(view: JobView) -> list[Sample]:
    """All samples of one job, their labels without its `job_id`."""
    return [*_time(view), *_progress(view), *_losses(view), *_checkpoints(view), *_compile(view)]


def clip(label: str) -> str:
    """A label value of bounded length."""
    return label[:LABEL_CHARACTERS]


def ratio(components: Mapping[str, float]) -> float | None:
    """ETT as a ratio, None where nothing was observed.

    >>> ratio({"training": 3.0, "stalled": 1.0})
    0.75
    """
    percent = ett_percent(components)
    return None if percent is None else percent / 100.0


def _time(view: JobView) -> Samples:
    account = view.account
    described = [view.label("job_name") or account.job_id, *(view.label(name) for name in INFO_LABELS)]
    described += [view.details.accelerator_type, view.label("scheduler"), view.purpose]
    yield ("ett_job_info", tuple(clip(text) for text in described), 1)
    yield ("ett_job_state", _label(account.state), 1)
    for component, seconds in account.components.items():
        yield ("ett_job_component_seconds", _label(component), seconds)
    yield ("ett_job_wall_seconds", (), account.wall_s)
    yield ("ett_job_held_seconds", (), held_seconds(account.components))
    for window, components in _windows(view):
        yield from _known("ett_job_effective_ratio", ratio(components), window)
    yield from _known("ett_job_time_to_start_seconds", account.tts_s)


def _windows(view: JobView) -> Iterator[tuple[str, Mapping[str, float]]]:
    yield "all", view.account.components
    for window in JOB_WINDOWS:
        yield window, view.windows[window]


def _progress(view: JobView) -> Samples:
    account, details = view.account, view.details
    yield from _known("ett_job_last_progress_timestamp_seconds", account.last_progress_at)
    yield from _known("ett_job_step", account.step)
    yield from _known("ett_job_attempt", account.attempts[-1].attempt if account.attempts else None)
    yield from _known("ett_job_accelerators", details.accelerators or details.world_size or None)
    yield ("ett_job_samples_total", (), details.samples)


def _losses(view: JobView) -> Samples:
    account = view.account
    counts = view.counts
    yield from summary("ett_job_time_to_recover_seconds", (), counts.recovered, counts.recovered_s)
    for domain in DOMAINS:
        if domain != UNKNOWN or domain in counts.failures:
            yield ("ett_job_failures_total", _label(domain), counts.failures.get(domain, 0))
    yield from _failures_in_a_row(view)
    yield from _known("ett_job_unsaved_exposure_seconds", account.unsaved_exposure_s)
    lost_s = account.components.get(UNSAVED_TRAINING, 0.0)
    yield ("ett_job_unsaved_training_seconds", (), lost_s)


def _failures_in_a_row(view: JobView) -> Samples:
    """How often the latest failure whose cause has settled has come by now, unless the job is past it."""
    account = view.account
    settled = sum(has_settled(failure, account.as_of) for failure in account.failures)
    row = latest_row(account, view.diagnoses, settled)
    if row is not None and not _is_past(view, settled):
        yield ("ett_job_failures_in_a_row", (row.failure_class,), row.length)


def _is_past(view: JobView, settled: int) -> bool:
    """Whether a job is over well, or has kept training since its last settled failure, as far as it can."""
    failures, durable = view.account.failures, view.details.last_durable
    failure = failures[settled - 1]
    goes_on = failure.ttr_s is not None and settled == len(failures)
    return view.account.state == SUCCEEDED or (goes_on and (durable is None or durable.time > failure.time))


def _checkpoints(view: JobView) -> Samples:
    details = view.details
    durable = details.last_durable
    blocking_s, count = details.checkpoint_blocking_s, details.checkpoint_count
    yield from summary("ett_job_checkpoint_blocking_seconds", (), count, blocking_s)
    yield ("ett_job_checkpoint_failures_total", (), view.counts.checkpoints_failed)
    if durable is not None:
        yield ("ett_job_checkpoint_last_durable_timestamp_seconds", (), durable.time)
        yield from _known("ett_job_checkpoint_bytes", durable.bytes)
    yield from _known("ett_job_checkpoint_interval_seconds", details.checkpoint_interval_s, "actual")
    yield from _known("ett_job_checkpoint_interval_seconds", best_interval_s(costs_of(view)), "optimal")
    yield from _known("ett_job_checkpoint_slowed_seconds", details.checkpoint_slowed_s)


def _compile(view: JobView) -> Samples:
    details = view.details
    for stage, seconds in _first_and_other(details.compile_s.items(), STAGES_SHOWN).items():
        yield ("ett_job_compile_seconds_total", (stage,), seconds)
    for result, field in (("hit", "hits"), ("miss", "misses"), ("bypass", "bypasses")):
        counts: Counter[str] = Counter()
        for name, total in details.caches.items():
            counts[name if name in CACHES else "other"] += getattr(total, field)
        for cache, count in (+counts).items():
            yield ("ett_job_compile_cache_requests_total", (cache, result), count)
    if details.remote_requests:
        yield ("ett_job_compile_remote_requests_total", (), details.remote_requests)
    if details.caches:
        saved_s = sum(total.saved_s for total in details.caches.values())
        yield ("ett_job_compile_cache_saved_seconds_total", (), saved_s)


@lru_cache(LABELS_SHARED)
def _label(value: str) -> tuple[str]:
    """A label that many jobs have, as one object: lines tell at once that it is as before."""
    return (value,)


def _known(family: str, value: float | None, *labels: str) -> Samples:
    if value is not None:
        yield (family, labels, value)


def _first_and_other(amounts: Iterable[tuple[str, float]], shown: int) -> dict[str, float]:
    """The first names with their amounts; what is beyond them is summed as `other`.

    >>> _first_and_other([("a", 1.0), ("b", 2.0), ("c", 4.0), ("d", 8.0)], 2)
    {'a': 1.0, 'b': 2.0, 'other': 12.0}
    """
    pairs: Sequence[tuple[str, float]] = list(amounts)
    totals: dict[str, float] = {}
    for place, (name, amount) in enumerate(pairs):
        key = clip(name) if place < shown else "other"
        totals[key] = totals.get(key, 0.0) + amount
    return totals
