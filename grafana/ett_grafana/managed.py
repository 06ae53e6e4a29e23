"""The alerts as rules that Grafana evaluates, where Prometheus takes no alerting rules. Pure.

The recorded series that they are computed from have to be there all the same. What is a series in
Prometheus is a firing alert; no series is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ett_core.boards import BOARD_TAG
from ett_grafana.alerts.alert import Alert
from ett_grafana.alerts.fleet import fleet_alerts
from ett_grafana.alerts.jobs import job_alerts
from ett_grafana.config import Config
from ett_grafana.rules import FLEET_GROUP, JOBS_GROUP, annotations_of

FOLDER_UID = FOLDER_TITLE = BOARD_TAG
PROMETHEUS_UID, ALERTMANAGER_UID = f"{BOARD_TAG}-prometheus", f"{BOARD_TAG}-alertmanager"
INTERVAL_S = 60
LOOK_BACK_S = 600
_EXPRESSIONS = "__expr__"


def managed_rules(config: Config, datasource_uid: str = PROMETHEUS_UID) -> Sequence[dict[str, Any]]:
    """Every alert as Grafana's provisioning API takes it."""
    by_group = {JOBS_GROUP: job_alerts(config), FLEET_GROUP: fleet_alerts(config)}
    return [_rule(alert, group, config, datasource_uid) for group, own in by_group.items() for alert in own]


def managed_uid(alert: Alert) -> str:
    """At most 40 characters, and another one for each severity of a name.

    >>> from ett_grafana.alerts.alert import INFO
    >>> alert = Alert(name="EttX", expr="x", severity=INFO, summary="", description="")
    >>> managed_uid(alert)
    'EttX-i'
    """
    return f"{alert.name}-{alert.severity[0]}"


def _rule(alert: Alert, group: str, config: Config, datasource_uid: str) -> dict[str, Any]:
    return {
        "uid": managed_uid(alert),
        "title": f"{alert.name} ({alert.severity})",
        "ruleGroup": group,
        "folderUID": FOLDER_UID,
        "orgID": 1,
        "condition": "fires",
        "data": [_query("found", alert.expr, datasource_uid), _is_there("fires", "found")],
        "noDataState": "OK",
        "execErrState": "Error",
        "for": alert.after,
        "labels": {"severity": alert.severity, "source": BOARD_TAG},
        "annotations": {name: _in_grafana(text) for name, text in annotations_of(alert, config).items()},
        "isPaused": False,
    }


def _query(ref: str, expr: str, datasource_uid: str) -> dict[str, Any]:
    model = {"refId": ref, "expr": expr, "instant": True, "range": False, "editorMode": "code"}
    return {
        "refId": ref,
        "queryType": "",
        "relativeTimeRange": {"from": LOOK_BACK_S, "to": 0},
        "datasourceUid": datasource_uid,
        "model": model,
    }


def _is_there(ref: str, of: str) -> dict[str, Any]:
    """A condition that holds for each series that there is, whatever its value, 0 included."""
    model = {
        "refId": ref,
        "type": "math",
        "expression": f"is_number(${of})",
        "datasource": {"type": _EXPRESSIONS, "uid": _EXPRESSIONS},
    }
    return {
        "refId": ref,
        "queryType": "",
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": _EXPRESSIONS,
        "model": model,
    }


def _in_grafana(template: str) -> str:
    """A template of Prometheus as Grafana reads it: `$value` is a text there.

    >>> _in_grafana("{{ $value | humanizePercentage }} of {{ $labels.node }}")
    '{{ $values.found.Value | humanizePercentage }} of {{ $labels.node }}'
    """
    return template.replace("$value ", "$values.found.Value ")
