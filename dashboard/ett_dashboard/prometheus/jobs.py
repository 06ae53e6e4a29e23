"""Samples of jobs to the rows that the pages show. Pure.

A job may be known twice: to two exporters while it moves, or to two servers that scrape one. Its rows
are made from one source alone, the one that knows most of its wall time, so that its parts add up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ett_core.accounting.account import ett_percent
from ett_core.accounting.state import OVER
from ett_core.components import area_seconds
from ett_core.metrics import FAMILIES
from ett_core.purposes import purpose_of
from ett_dashboard.prometheus.answers import Sample
from ett_dashboard.rows import CacheRow, Job, JobDetail

WALL = "ett_job_wall_seconds"
REQUESTS = "ett_job_compile_cache_requests_total"
COMPILE = "ett_job_compile_seconds_total"
SAVED = "ett_job_compile_cache_saved_seconds_total"
OWN_LABELS = frozenset({"__name__", *(label for family in FAMILIES.values() for label in family.labels)})
RESULTS: Mapping[str, str] = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}


class Figures:
    """What one source knows of a job: values by the name of the series, and by its own label."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples: dict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            self._samples[sample.labels.get("__name__", "")].append(sample)

    def of(self, name: str) -> float | None:
        """The value of a series that a job has once; None without it."""
        found = self._samples.get(name)
        return found[0].value if found else None

    def by(self, name: str, label: str) -> dict[str, float]:
        """The values of a family by a label of it."""
        return {sample.labels.get(label, ""): sample.value for sample in self._samples.get(name, ())}

    def labels(self, name: str) -> Mapping[str, str]:
        """The labels of a series that a job has once; none without it."""
        found = self._samples.get(name)
        return found[0].labels if found else {}

    def each(self, name: str) -> Sequence[Sample]:
        """All series of a family."""
        return self._samples.get(name, ())


def figures_of_jobs(samples: Iterable[Sample]) -> dict[str, Figures]:
    """The figures of each job from the source that knows most of its wall time."""
    sources: dict[str, dict[frozenset[tuple[str, str]], list[Sample]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for sample in samples:
        job_id = sample.labels.get("job_id")
        if job_id:
            sources[job_id][_source(sample)].append(sample)
    return {job_id: _fullest(known.values()) for job_id, known in sources.items()}


def job(job_id: str, figures: Figures, as_of: float) -> Job | None:
    """The row of a job; None where its state is not known."""
    fields = _fields(job_id, figures, as_of)
    return None if fields is None else Job(**fields)


def detail(job_id: str, figures: Figures, as_of: float) -> JobDetail | None:
    """A job as far as its figures tell; None where its state is not known."""
    fields = _fields(job_id, figures, as_of)
    if fields is None:
        return None
    return JobDetail(
        **fields,
        as_of=as_of,
        ett_percent_within=_within(figures),
        compile=figures.by(COMPILE, "stage"),
        areas=area_seconds(fields["components"]),
    )


def requests(samples: Iterable[Sample]) -> dict[str, CacheRow]:
    """Requests to each cache by their result; caches that nobody asked are left out."""
    counts: dict[str, dict[str, int]] = {}
    for sample in samples:
        field, count = RESULTS.get(sample.labels.get("result", "")), round(sample.value)
        if field and count:
            counts.setdefault(sample.labels.get("cache", ""), {})[field] = count
    return {name: CacheRow(**found) for name, found in counts.items()}


def _fields(job_id: str, figures: Figures, as_of: float) -> dict[str, Any] | None:
    state = next(iter(figures.by("ett_job_state", "state")), None)
    wall_s = figures.of(WALL)
    if state is None or wall_s is None:
        return None
    info = figures.labels("ett_job_info")
    words = ("job_name", "team", "model", "cluster", "scheduler", "accelerator_type")
    components = figures.by("ett_job_component_seconds", "component")
    failures = round(sum(figures.by("ett_job_failures_total", "domain").values()))
    attempt = _whole(figures.of("ett_job_attempt"))
    return {
        **{name: info.get(name) or None for name in words},
        "purpose": purpose_of(info),
        "job_id": job_id,
        "state": state,
        "finished": state in OVER,
        "start": as_of - wall_s,
        "end": as_of,
        "wall_s": wall_s,
        "components": components,
        "ett_percent": ett_percent(components),
        "tts_s": figures.of("ett_job_time_to_start_seconds"),
        "ttr_s": _recoveries(figures, failures),
        "failures": failures,
        "attempts": 0 if attempt is None else attempt + 1,
        "attempt": attempt,
        "accelerators": _whole(figures.of("ett_job_accelerators")),
        "step": _whole(figures.of("ett_job_step")),
        "samples": figures.of("ett_job_samples_total"),
        "last_progress_at": figures.of("ett_job_last_progress_timestamp_seconds"),
        "unsaved_exposure_s": figures.of("ett_job_unsaved_exposure_seconds"),
        "checkpoint_blocking_s": figures.of("ett_job_checkpoint_blocking_seconds_sum"),
        "checkpoint_count": _whole(figures.of("ett_job_checkpoint_blocking_seconds_count")),
        "last_durable_at": figures.of("ett_job_checkpoint_last_durable_timestamp_seconds"),
        "caches": requests(figures.each(REQUESTS)),
    }


def _within(figures: Figures) -> dict[str, float | None]:
    """ETT of the trailing windows that have a series."""
    ratios = figures.by("ett_job_effective_ratio", "window")
    return {window: 100 * ratio for window, ratio in ratios.items() if window != "all"}


def _recoveries(figures: Figures, failures: int) -> list[float | None]:
    """Times to recover whose number and sum are known: each the mean; failures without one come last."""
    count = round(figures.of("ett_job_time_to_recover_seconds_count") or 0)
    mean_s = (figures.of("ett_job_time_to_recover_seconds_sum") or 0.0) / max(count, 1)
    return [*([mean_s] * count), *([None] * max(failures - count, 0))]


def _source(sample: Sample) -> frozenset[tuple[str, str]]:
    """Who tells of a job: the labels that no family has."""
    return frozenset((label, value) for label, value in sample.labels.items() if label not in OWN_LABELS)


def _fullest(sources: Iterable[Sequence[Sample]]) -> Figures:
    return max(map(Figures, sources), key=lambda figures: figures.of(WALL) or 0.0)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
