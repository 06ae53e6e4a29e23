"""Queries of the board of the exporters' own health."""

from __future__ import annotations

from ett_grafana.config import Config
from ett_grafana.queries.parts import RATE

OURS = 'instance=~"$instance"'


def _of(name: str) -> str:
    return f"{name}{{{OURS}}}"


def _rate(name: str) -> str:
    return f"sum by (instance) (rate({_of(name)}[{RATE}]))"


VERSIONS = f"max by (instance, version) ({_of('ett_exporter_build_info')})"
JOBS = f"sum by (instance, shown) ({_of('ett_exporter_jobs')})"
JOBS_SHOWN = f'sum (ett_exporter_jobs{{{OURS}, shown="true"}})'
SERIES = _of("ett_exporter_series")
LEFT_OUT = f"sum ({_of('ett_exporter_jobs_left_out')})"
BROKEN = f"sum ({_of('ett_exporter_broken_jobs')})"
VIEW_AGE = _of("ett_exporter_view_age_seconds")
SCRAPE = _of("ett_exporter_scrape_seconds")
EVENTS = _rate("ett_exporter_ingested_events_total")
SEGMENTS = _rate("ett_exporter_ingested_segments_total")
REJECTED = _rate("ett_exporter_rejected_lines_total")
REFUSED = _rate("ett_exporter_refused_requests_total")
DUPLICATES = _rate("ett_exporter_duplicate_events_total")
WRITE_MEAN = (
    f"{_rate('ett_exporter_store_write_seconds_sum')}"
    f" / ({_rate('ett_exporter_store_write_seconds_count')} > 0)"
)


def up(config: Config) -> str:
    """1 for each exporter that answers, else 0."""
    return f'up{{job="{config.scrape_job}", {OURS}}}'


def scrape_took(config: Config) -> str:
    """Seconds of a scrape as Prometheus saw it."""
    return f'scrape_duration_seconds{{job="{config.scrape_job}", {OURS}}}'
