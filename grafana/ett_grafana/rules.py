"""Rule files for Prometheus (vmalert, Mimir and Thanos read them, too): from expressions to text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from ett_grafana.alerts.alert import Alert
from ett_grafana.alerts.fleet import fleet_alerts, recorded_of_fleet
from ett_grafana.alerts.jobs import job_alerts, recorded_of_jobs
from ett_grafana.config import Config
from ett_grafana.recording import Recorded, recorded

RECORDED_FILE, ALERTS_FILE = "rules/ett-recorded.yaml", "rules/ett-alerts.yaml"
JOBS_GROUP, FLEET_GROUP = "ett-jobs", "ett-fleet"
INTERVAL = "30s"
TRAILING_INTERVAL = "1m"
"""What is read over minutes and hours of every job costs most and changes least."""
_TRAILING = re.compile(r"\d[mhd]$")
_WRITTEN = "# Written by `ett grafana build`; what is edited here is lost.\n"


def alerts(config: Config) -> Sequence[Alert]:
    """Every alert, in the order of the file."""
    return (*job_alerts(config), *fleet_alerts(config))


def all_recorded(config: Config) -> Sequence[Recorded]:
    """Every recorded series: those that boards show and those that alerts are computed from."""
    return (*recorded(config), *recorded_of_jobs(config), *recorded_of_fleet())


def rule_files(config: Config) -> Mapping[str, str]:
    """Text by path within `grafana/`."""
    return {path: as_yaml({"groups": groups}) for path, groups in rule_groups(config).items()}


def rule_groups(config: Config) -> Mapping[str, Sequence[dict[str, Any]]]:
    """The groups of each file."""
    trailing = [each for each in all_recorded(config) if _TRAILING.search(each.record)]
    present = [each for each in all_recorded(config) if each not in trailing]
    by_group = {JOBS_GROUP: job_alerts(config), FLEET_GROUP: fleet_alerts(config)}
    groups = [_group(name, (_rule(each, config) for each in own)) for name, own in by_group.items()]
    recording = [_group("ett-recorded", map(_record, present))]
    recording.append(
        {**_group("ett-recorded-trailing", map(_record, trailing)), "interval": TRAILING_INTERVAL}
    )
    return {RECORDED_FILE: recording, ALERTS_FILE: groups}


def annotations_of(alert: Alert, config: Config) -> dict[str, str]:
    """What an alert says, with where to go."""
    annotations = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": f"{config.runbooks_url}#{alert.name.lower()}",
    }
    if alert.page:
        annotations["app_url"] = f"{config.app_url.rstrip('/')}/{alert.page.lstrip('/')}"
    return annotations


def _record(each: Recorded) -> dict[str, Any]:
    return {"record": each.record, "expr": folded(each.expr)}


def _group(name: str, rules: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {"name": name, "interval": INTERVAL, "rules": list(rules)}


def _rule(alert: Alert, config: Config) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": folded(alert.expr),
        "for": alert.after,
        "labels": {"severity": alert.severity},
        "annotations": annotations_of(alert, config),
    }


def folded(expr: str) -> str:
    """A long expression with its set operators at the beginning of lines.

    >>> print(folded("a" * 60 + " > 1 and on (job_id) " + "b" * 60))
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa > 1
    and on (job_id) bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    """
    return expr if len(expr) <= LINE else re.sub(r" (?=(?:and|or|unless|\* on) )", "\n", expr)


LINE = 100


class _Dumper(yaml.SafeDumper):
    """Text of several lines as a block, lists indented below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002, ARG002
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def as_yaml(content: object) -> str:
    """A generated file as text: keys in the order in which they are given."""
    return _WRITTEN + yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
