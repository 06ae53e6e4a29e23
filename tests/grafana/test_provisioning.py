"""Files with which a Grafana starts, objects for Kubernetes, and alerts that Grafana itself evaluates."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ett_grafana.config import Config
from ett_grafana.managed import FOLDER_UID, PROMETHEUS_UID, managed_rules
from ett_grafana.provisioning import DATASOURCES_FILE, MANAGED_FILE, datasources
from ett_grafana.rules import alerts

GRAFANA = Path(__file__).parents[2] / "grafana"
NAME_IN_KUBERNETES = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LARGEST_OBJECT = 1 << 20
UID_CHARACTERS = 40


def loaded(path):
    return yaml.safe_load((GRAFANA / path).read_text())


def test_data_sources_show_the_rules_of_prometheus_and_its_alertmanager():
    """Both are known by a uid, and the one names the other."""
    prometheus, alertmanager = loaded(DATASOURCES_FILE)["datasources"]
    assert (prometheus["type"], alertmanager["type"]) == ("prometheus", "alertmanager")
    assert prometheus["jsonData"]["manageAlerts"]
    assert prometheus["jsonData"]["alertmanagerUid"] == alertmanager["uid"]
    assert prometheus["uid"] == PROMETHEUS_UID
    elsewhere, _ = datasources(Config(prometheus_url="https://mimir.example/prometheus"))
    assert elsewhere["url"] == "https://mimir.example/prometheus"


def test_managed_rules_are_the_alerts_each_once():
    """One rule an alert and severity; uids and titles that Grafana takes, all in our folder."""
    rules = managed_rules(Config())
    assert len(rules) == len(alerts(Config()))
    for unique in ("uid", "title"):
        assert len({rule[unique] for rule in rules}) == len(rules)
    assert all(re.fullmatch(r"[\w-]+", rule["uid"]) and len(rule["uid"]) <= UID_CHARACTERS for rule in rules)
    assert {rule["folderUID"] for rule in rules} == {FOLDER_UID}


def test_managed_rules_fire_for_each_series_and_for_none_stay_quiet():
    """The condition asks whether a series is there, so that a value of 0 fires as well."""
    for rule in managed_rules(Config()):
        found, fires = rule["data"]
        assert rule["condition"] == fires["refId"]
        assert fires["model"]["expression"] == f"is_number(${found['refId']})"
        assert found["datasourceUid"] == PROMETHEUS_UID
        assert rule["noDataState"] == "OK"
        assert "$value " not in str(rule["annotations"])


def test_provisioned_rules_leave_nothing_to_expand():
    """Grafana replaces $NAME in these files by the environment: every $ is doubled."""
    groups = loaded(MANAGED_FILE)["groups"]
    assert not re.search(r"(?<!\$)\$(?!\$)", (GRAFANA / MANAGED_FILE).read_text())
    plain = {rule["uid"]: rule for rule in managed_rules(Config())}
    for rule in (rule for group in groups for rule in group["rules"]):
        assert (
            rule["annotations"]["summary"].replace("$$", "$") == plain[rule["uid"]]["annotations"]["summary"]
        )
        assert rule["for"] == plain[rule["uid"]]["for"]
    assert {group["folder"] for group in groups} == {"ettwatch"}


def test_config_maps_hold_every_board_under_the_labels_of_the_sidecars():
    """What kustomize makes of the file is small enough, well named, and found by the sidecars."""
    made = loaded("kustomization.yaml")
    by_label = {}
    for each in made["configMapGenerator"]:
        ((label, value),) = each["options"]["labels"].items()
        assert value == "1"
        assert NAME_IN_KUBERNETES.fullmatch(each["name"])
        assert sum((GRAFANA / file).stat().st_size for file in each["files"]) < LARGEST_OBJECT
        by_label.setdefault(label, []).extend(each["files"])
    assert sorted(by_label["grafana_dashboard"]) == sorted(
        str(path.relative_to(GRAFANA)) for path in (GRAFANA / "boards").glob("*.json")
    )
    assert by_label["grafana_datasource"] == [DATASOURCES_FILE]
    assert all((GRAFANA / resource).is_file() for resource in made["resources"])


@pytest.mark.service("promtool")
def test_the_operator_gets_rules_that_prometheus_takes(tmp_path):
    """The `spec` of the PrometheusRule is a file of rules."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(loaded("kubernetes/prometheus-rules.yaml")["spec"]))
    done = subprocess.run(
        ["promtool", "check", "rules", str(rules)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
