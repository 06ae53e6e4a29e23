"""The data source and the alert rules: what is wanted of them is compared, what else Grafana holds stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ett_grafana.managed import FOLDER_UID, INTERVAL_S
from ett_grafana.publishing.connection import Grafana
from ett_grafana.publishing.steps import (
    CHANGE,
    CREATE,
    KEEP,
    REFUSE,
    Step,
    differences,
    lacks,
    wanted_part,
)


def source_step(grafana: Grafana, source: Mapping[str, Any]) -> Step:
    """A data source by its uid; secrets that it has in Grafana stay there."""
    thing = f"data source {source['uid']}"
    path = f"/datasources/uid/{quote(source['uid'], safe='')}"
    there = grafana.find(path)
    if there is None:
        return Step(kind=CREATE, thing=thing, take=lambda: grafana.create("/datasources", source))
    if not lacks(there, source):
        return Step(kind=KEEP, thing=thing)
    if there.get("readOnly"):
        return Step(kind=REFUSE, thing=thing, why="Grafana reads it from a file; change that file instead")
    kept = ("basicAuth", "basicAuthUser", "user", "database", "isDefault", "withCredentials", "version")
    merged = {**{name: there[name] for name in kept if name in there}, **source}
    merged["jsonData"] = {**there.get("jsonData", {}), **source.get("jsonData", {})}
    return Step(
        kind=CHANGE,
        thing=thing,
        differences=differences(wanted_part(there, source), source),
        take=lambda: grafana.replace(path, merged),
    )


def rule_steps(grafana: Grafana, rules: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
    """One step a group of alert rules; a group is replaced whole, rules that are made no more go with it."""
    for group in dict.fromkeys(rule["ruleGroup"] for rule in rules):
        own = [dict(rule) for rule in rules if rule["ruleGroup"] == group]
        wanted = {"title": group, "folderUid": FOLDER_UID, "interval": INTERVAL_S, "rules": own}
        path = f"/v1/provisioning/folder/{FOLDER_UID}/rule-groups/{group}"
        there = grafana.find(path)
        take = _replacing(grafana, path, wanted)
        thing = f"alert rules {group}"
        if there is None or not there.get("rules"):
            yield Step(kind=CREATE, thing=thing, why=f"{len(own)} rules", take=take)
        elif lacks(there, compared := _without_organisation(wanted)):
            changed = differences(wanted_part(there, compared), compared)
            yield Step(kind=CHANGE, thing=thing, differences=changed, take=take)
        else:
            yield Step(kind=KEEP, thing=thing)


def _without_organisation(group: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rules belong to the organisation of the token, whatever is said."""
    rules = [{name: value for name, value in rule.items() if name != "orgID"} for rule in group["rules"]]
    return {**group, "rules": rules}


def _replacing(grafana: Grafana, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a function
    return lambda: grafana.replace(path, body)
