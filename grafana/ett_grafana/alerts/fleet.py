"""Alerts about what jobs share: nodes, services, the fleet, the exporter. For whoever runs the platform."""

from __future__ import annotations

from collections.abc import Sequence

from ett_core.fleet.nodes import OF_THE_NODE
from ett_core.fleet.outbreaks import SMALLEST_FACTOR
from ett_grafana.alerts.alert import CRITICAL, WARNING, Alert, of_one_job, risen
from ett_grafana.config import Config, Thresholds
from ett_grafana.recording import Recorded

NODES = "ett:node_failures:increase1d"
STRUCK = "ett:job_struck:state"
JOBS_STRUCK = "ett:jobs_struck:last1h"
FAILED = "ett:failures:risen1h"


def recorded_of_fleet() -> Sequence[Recorded]:
    """What the alerts here are computed from."""
    of_nodes = f'ett_node_failures_total{{failure_class=~"{"|".join(sorted(OF_THE_NODE))}"}}'
    return (
        Recorded(
            NODES,
            f"sum by (node) ({risen(of_nodes, '1d')})",
            "Failures of the last day whose place is the node, on nodes that failed.",
        ),
        Recorded(
            FAILED,
            f"sum by (failure_class) ({risen('ett_fleet_failures_total', '1h')})",
            "Failed attempts whose cause settled in the last hour, first ones of a class included.",
        ),
        Recorded(
            STRUCK,
            of_one_job("ett_job_failures_in_a_row", "failure_class"),
            "Jobs that are not past their latest failure.",
        ),
        Recorded(
            JOBS_STRUCK,
            "count by (failure_class, team) (count by (failure_class, team, job_id) "
            f"(last_over_time({STRUCK}[1h]) unless on (job_id, failure_class) "
            f"last_over_time({STRUCK}[1h] offset 1h)))",
            "Jobs that a class of failures struck in the last hour, and not in the hour before.",
        ),
    )


def fleet_alerts(config: Config) -> Sequence[Alert]:
    """All alerts about the fleet and its exporters."""
    limits = config.thresholds
    return (
        _suspect_node(limits),
        _service_regression(limits),
        *_effective_low(limits),
        _exporter_down(config),
        _ingest_lagging(limits),
    )


def _suspect_node(limits: Thresholds) -> Alert:
    others = f"(scalar(sum({NODES})) - {NODES}) / scalar(clamp_min(count({NODES}) - 1, 1))"
    return Alert(
        name="EttSuspectNode",
        expr=f"{NODES} >= {limits.node_failures} and {NODES} > {SMALLEST_FACTOR:g} * {others}",
        after="5m",
        severity=WARNING,
        page="failures",
        summary="Node {{ $labels.node }} fails more than others",
        description="{{ $value | printf `%.0f` }} failures within a day point at node {{ $labels.node }}, "
        f"more than {SMALLEST_FACTOR:g} times as many as at any other node that failed, on average.",
    )


def _service_regression(limits: Thresholds) -> Alert:
    struck = f"sum by (failure_class) ({JOBS_STRUCK})"
    usual = f"avg_over_time({FAILED}[7d] offset 1h)"
    return Alert(
        name="EttServiceRegression",
        expr=f"{struck} >= {limits.struck_jobs}"
        f" and on (failure_class) count by (failure_class) ({JOBS_STRUCK}) >= {limits.struck_teams}"
        f" and on (failure_class) {FAILED} >= {limits.struck_jobs}"
        f" unless on (failure_class) {FAILED} < on (failure_class) {SMALLEST_FACTOR:g} * {usual}",
        after="2m",
        severity=CRITICAL,
        page="failures",
        summary="{{ $labels.failure_class }} strikes many jobs",
        description="Within an hour {{ $value }} jobs of several teams failed by "
        f"{{{{ $labels.failure_class }}}}, at least {SMALLEST_FACTOR:g} times as many "
        "as usual: look at what they share.",
    )


def _effective_low(limits: Thresholds) -> Sequence[Alert]:
    budget = 1.0 - limits.effective_low_ratio

    def burns(window: str, factor: float) -> str:
        return f'ett:effective:ratio{{window="{window}"}} < {1.0 - factor * budget:.4g}'

    held = 'sum by (cluster) (ett:component_accelerator_seconds:sum{window="24h"})'
    enough = f"and on (cluster) {held} >= {limits.fleet_held_s:g}"

    def alert(short: str, long: str, factor: float, severity: str) -> Alert:
        return Alert(
            name="EttFleetEffectiveLow",
            expr=f"{burns(short, factor)} and on (cluster) {burns(long, 1.0)} {enough}",
            after="15m",
            severity=severity,
            summary="Only {{ $value | humanizePercentage }} of {{ or $labels.cluster `the fleet` }} trains",
            page="/",
            description=f"Over {short} {{{{ $value | humanizePercentage }}}} of held accelerator time was "
            f"training that counts, and over {long} less than {limits.effective_low_ratio:.0%}.",
        )

    return alert("1h", "24h", 2.0, CRITICAL), alert("24h", "7d", 1.0, WARNING)


def _exporter_down(config: Config) -> Alert:
    up = f'up{{job="{config.scrape_job}"}}'
    return Alert(
        name="EttExporterDown",
        expr=f"{up} == 0 or absent({up})",
        after="2m",
        severity=CRITICAL,
        summary="An exporter does not answer",
        description="Prometheus cannot scrape the exporter{{ with $labels.instance }} {{ . }}{{ end }}. "
        "Jobs go on and keep what they have to tell, but no other alert about them can fire.",
    )


def _ingest_lagging(limits: Thresholds) -> Alert:
    write = (
        "rate(ett_exporter_store_write_seconds_sum[5m]) / rate(ett_exporter_store_write_seconds_count[5m])"
    )
    signs = {"figures": f"ett_exporter_view_age_seconds > {limits.view_age_s:g}"}
    signs["database"] = f"{write} > {limits.store_write_s:g}"
    return Alert(
        name="EttIngestLagging",
        expr=" or ".join(f'label_replace({expr}, "sign", "{sign}", "", "")' for sign, expr in signs.items()),
        after="5m",
        severity=WARNING,
        summary="Exporter {{ $labels.instance }} does not keep up",
        description="Its {{ $labels.sign }} lag by {{ $value | humanizeDuration }}: figures are older than "
        f"{limits.view_age_s:g} s, or the database takes more than {limits.store_write_s:g} s for a segment.",
    )
