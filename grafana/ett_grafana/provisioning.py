"""Files with which a Grafana starts and shows everything, and objects for Kubernetes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ett_core.boards import BOARD_TAG
from ett_grafana.config import Config
from ett_grafana.managed import (
    ALERTMANAGER_UID,
    FOLDER_TITLE,
    FOLDER_UID,
    INTERVAL_S,
    PROMETHEUS_UID,
    managed_rules,
)
from ett_grafana.rules import as_yaml, rule_groups

BOARDS_PATH = "/etc/grafana/boards"
"""Where the files of the boards lie for Grafana."""
DATASOURCES_FILE = "provisioning/datasources/ettwatch.yaml"
PROVIDER_FILE = "provisioning/dashboards/ettwatch.yaml"
MANAGED_FILE = "provisioning/alerting/ettwatch.yaml"


def provisioning_files(config: Config, board_files: Iterable[str]) -> Mapping[str, str]:
    """Text by path within `grafana/`."""
    return {
        DATASOURCES_FILE: as_yaml({"apiVersion": 1, "datasources": datasources(config)}),
        PROVIDER_FILE: as_yaml({"apiVersion": 1, "providers": [_provider()]}),
        MANAGED_FILE: as_yaml({"apiVersion": 1, "groups": _managed_groups(config)}),
        "kustomization.yaml": as_yaml(_kustomization(board_files)),
        "kubernetes/prometheus-rules.yaml": as_yaml(_prometheus_rule(config)),
    }


def datasources(config: Config) -> Sequence[dict[str, Any]]:
    """Prometheus, whose rules Grafana shows among its alerts, and the Alertmanager that it tells."""
    prometheus = {
        "name": "ettwatch Prometheus",
        "uid": PROMETHEUS_UID,
        "type": "prometheus",
        "access": "proxy",
        "url": config.prometheus_url,
        "jsonData": {
            "httpMethod": "POST",
            "timeInterval": "15s",
            "manageAlerts": True,
            "alertmanagerUid": ALERTMANAGER_UID,
        },
    }
    alertmanager = {
        "name": "ettwatch Alertmanager",
        "uid": ALERTMANAGER_UID,
        "type": "alertmanager",
        "access": "proxy",
        "url": config.alertmanager_url,
        "jsonData": {"implementation": "prometheus", "handleGrafanaManagedAlerts": False},
    }
    return prometheus, alertmanager


def _provider() -> dict[str, Any]:
    return {
        "name": BOARD_TAG,
        "type": "file",
        "folder": FOLDER_TITLE,
        "folderUid": FOLDER_UID,
        "disableDeletion": True,
        "allowUiUpdates": False,
        "updateIntervalSeconds": 30,
        "options": {"path": BOARDS_PATH},
    }


def _managed_groups(config: Config) -> Sequence[dict[str, Any]]:
    rules = managed_rules(config)
    outside = ("ruleGroup", "folderUID", "orgID")
    return [
        {
            "orgId": 1,
            "name": group,
            "folder": FOLDER_TITLE,
            "interval": f"{INTERVAL_S}s",
            "rules": [
                {name: _literal(value) for name, value in rule.items() if name not in outside}
                for rule in rules
                if rule["ruleGroup"] == group
            ],
        }
        for group in dict.fromkeys(rule["ruleGroup"] for rule in rules)
    ]


def _literal(value: Any) -> Any:  # noqa: ANN401 - whatever a rule holds
    """A value in which Grafana, which expands variables in these files, finds none.

    >>> _literal({"summary": "{{ $labels.job_id }}"})
    {'summary': '{{ $$labels.job_id }}'}
    """
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {name: _literal(each) for name, each in value.items()}
    return [_literal(each) for each in value] if isinstance(value, list) else value


def _kustomization(board_files: Iterable[str]) -> dict[str, Any]:
    """`kubectl apply -k grafana`: config maps for the sidecars of Grafana's chart, and the rules."""

    def config_map(name: str, file: str, label: str) -> dict[str, Any]:
        options = {"labels": {label: "1"}, "annotations": {"grafana_folder": FOLDER_TITLE}}
        return {"name": name, "files": [file], "options": {**options, "disableNameSuffixHash": True}}

    boards = [
        config_map(
            f"{BOARD_TAG}-board-{file.removeprefix('boards/').removesuffix('.json')}",
            file,
            "grafana_dashboard",
        )
        for file in board_files
    ]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["kubernetes/prometheus-rules.yaml"],
        "configMapGenerator": [
            *boards,
            config_map(f"{BOARD_TAG}-datasources", DATASOURCES_FILE, "grafana_datasource"),
        ],
    }


def _prometheus_rule(config: Config) -> dict[str, Any]:
    """The rules for the Prometheus operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": BOARD_TAG, "labels": {"app.kubernetes.io/part-of": BOARD_TAG}},
        "spec": {"groups": [group for groups in rule_groups(config).values() for group in groups]},
    }
