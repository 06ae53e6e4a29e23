"""What boards and rules are made with: one object holds every name of a site, threshold and window."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From which figure on something is bad, the same on boards and in alerts."""

    effective_good_ratio: float = 0.9
    """Effective share from which on a job or the fleet is well."""
    effective_low_ratio: float = 0.8
    """Effective share below which something should be done."""
    unsaved_exposure_s: float = 1800.0
    """Training that may be at risk before somebody should save."""
    start_s: float = 1200.0
    """Time to start that is long whatever the model."""
    recover_s: float = 900.0
    """Time to recover that is long whatever the model."""
    slower_factor: float = 1.5
    """Times a model's own history from which on its start counts as slow."""
    interval_factor: float = 2.0
    """Times the best interval of checkpoints, or its inverse, that is far from it."""
    cache_hit_ratio: float = 0.5
    """Hit rate below which a cache that should be warm is cold."""
    crash_loop_attempts: int = 3
    """Attempts that fail in a row from which on one speaks of a loop."""
    recurring_failures: int = 2
    """Failures of a class in an hour below which their number says nothing about what is usual."""
    node_failures: int = 2
    """Failures on one node that make it suspect."""
    restarts_an_hour: int = 5
    """Restarts of a job within an hour from which on one speaks of a storm."""
    checkpoint_failures: int = 2
    """Checkpoints that fail within an hour before somebody should look."""
    cache_requests: int = 10
    """Requests to a compile cache below which its hit rate says little."""
    struck_jobs: int = 3
    """Jobs that one class of failures strikes within an hour before it counts as a service's fault."""
    struck_teams: int = 2
    """Teams that they belong to, at least."""
    fleet_held_s: float = 86_400.0
    """Held accelerator time below which the effective share of a fleet says little."""
    store_write_s: float = 1.0
    """Time to make a segment durable that means a slow database."""
    view_age_s: float = 15.0
    """Age of the exporter's oldest figures that means overload."""
    scrape_s: float = 5.0
    """Time that an answer of the exporter may take."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """A site.

    Raises:
        ValueError: an address is no http(s) address; the message names the option.
    """

    app_url: str = "http://127.0.0.1:8501"
    """Where `ett dashboard` is reached by those who look at the boards."""
    scrape_job: str = "ettwatch"
    """The `job_name` under which Prometheus scrapes the exporters."""
    refresh: str = "30s"
    """How often an open board asks again."""
    fleet_window: str = "24h"
    """The trailing window that fleet figures show first: `1h`, `24h` or `7d`."""
    history: str = "7d"
    """How far back a model's own history reaches."""
    prometheus_url: str = "http://prometheus:9090"
    """Where Grafana reaches Prometheus, for provisioned data sources."""
    alertmanager_url: str = "http://alertmanager:9093"
    """Where Grafana reaches Alertmanager."""
    runbooks_url: str = "docs/runbooks.md"
    """Where the page of runbooks is reached; alerts link to its sections."""
    jobs_listed: int = 20
    """Rows of the tables that list the jobs with the largest figures."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """When something is bad."""

    def __post_init__(self) -> None:
        """Refuse addresses that cannot be linked to."""
        for name in ("app_url", "prometheus_url", "alertmanager_url"):
            address = urlsplit(getattr(self, name))
            if address.scheme not in ("http", "https") or not address.netloc:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} {getattr(self, name)!r} does not look like http://HOST:PORT")
