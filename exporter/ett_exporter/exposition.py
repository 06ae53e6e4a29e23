"""/metrics: one snapshot of all jobs in, the bytes of one answer out.

A collector builds fresh families from the snapshot; there are no registered gauges that could
go stale. `render` is called in a worker thread, never in the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

from ett_core.metrics import COUNTER, FAMILIES, SUMMARY
from ett_exporter.fleet_series import fleet_samples
from ett_exporter.job_series import Sample, Samples, job_samples
from ett_exporter.live import JobView
from ett_exporter.service import IngestStats, Service

_OTHER_VERSION = re.compile(r"version\s*=(?!\s*(?:0\.0\.1|0\.0\.4|1\.0\.0)\s*(?:;|$))")


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that one answer of /metrics is made of."""

    views: Sequence[JobView]
    shown: Sequence[JobView]
    """Those of `views` whose own series are exposed."""
    stats: IngestStats


class SnapshotCollector:
    """A prometheus_client collector over one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        """The families that have samples, in the order of the contract."""
        samples = list(all_samples(self._snapshot))
        series = sum(1 if sample.count is None else 2 for sample in samples)
        return families([*samples, Sample("ett_exporter_series", (), series)])


def take_snapshot(service: Service) -> Snapshot:
    """All jobs as of now."""
    now = service.clock()
    views = service.views(now)
    return Snapshot(views, service.shown_views(views, now), service.stats)


def render(snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    """Body and content type of the answer that suits an Accept header: text or OpenMetrics."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(snapshot))
    encoder, content_type = choose_encoder(_understood(accept))
    return encoder(registry), content_type


def _understood(accept: str) -> str:
    """An Accept header without the media ranges of versions that are not spoken here.

    >>> _understood("application/openmetrics-text; version=7, text/plain; version=0.0.4")
    ' text/plain; version=0.0.4'
    """
    return ",".join(part for part in accept.split(",") if not _OTHER_VERSION.search(part))


def all_samples(snapshot: Snapshot) -> Samples:
    """Samples of the shown jobs, of the fleet and of the exporter itself."""
    for view in snapshot.shown:
        yield from job_samples(view)
    yield from fleet_samples(snapshot.views, snapshot.shown)
    yield from _exporter_samples(snapshot)


def families(samples: Iterable[Sample]) -> Iterator[Metric]:
    """Samples grouped into families, in the order of the contract; families without any are left out."""
    grouped: dict[str, list[Sample]] = {}
    for sample in samples:
        grouped.setdefault(sample.family, []).append(sample)
    for name in FAMILIES:
        if name in grouped:
            yield _family(name, grouped[name])


def _family(name: str, samples: Sequence[Sample]) -> Metric:
    described = FAMILIES[name]
    labels = list(described.labels)
    if described.kind == SUMMARY:
        summary = SummaryMetricFamily(name, described.help, labels=labels)
        for sample in samples:
            summary.add_metric(sample.labels, count_value=sample.count or 0, sum_value=sample.value)
        return summary
    family_class = CounterMetricFamily if described.kind == COUNTER else GaugeMetricFamily
    family = family_class(name, described.help, labels=labels)
    for sample in samples:
        family.add_metric(sample.labels, sample.value)
    return family


def _exporter_samples(snapshot: Snapshot) -> Samples:
    stats = snapshot.stats
    yield Sample("ett_exporter_build_info", (_version(),), 1)
    yield Sample("ett_exporter_jobs", ("true",), len(snapshot.shown))
    yield Sample("ett_exporter_jobs", ("false",), len(snapshot.views) - len(snapshot.shown))
    yield Sample("ett_exporter_ingested_events_total", (), stats.events)
    yield Sample("ett_exporter_ingested_segments_total", (), stats.segments)
    yield Sample("ett_exporter_duplicate_events_total", (), stats.duplicates)
    yield Sample("ett_exporter_rejected_lines_total", (), stats.rejected_lines)
    yield Sample("ett_exporter_refused_requests_total", (), stats.refused_requests)
    yield Sample("ett_exporter_store_write_seconds", (), stats.store_write_s, stats.store_writes)


@cache
def _version() -> str:
    return version("ettwatch")
