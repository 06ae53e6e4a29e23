"""Alerts and recorded series: Prometheus takes them, alerts fire and do not, each has a runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ett_core.fleet.nodes import OF_THE_NODE
from ett_core.metrics import FAMILIES, series_names
from ett_grafana.config import Config
from ett_grafana.rules import ALERTS_FILE, alerts, all_recorded, rule_files

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((Path(__file__).parent / "rules").glob("*.yaml"))
NAMES = sorted({alert.name for alert in alerts(Config())})
RUNBOOKS = (ROOT / "docs" / "runbooks.md").read_text()


def told(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.service("promtool")
@pytest.mark.parametrize("scenarios", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_each_alert_fires_when_it_should_and_no_other_does(scenarios):
    """The scenarios name all alerts that fire at each of their moments."""
    status, said = told("promtool", "test", "rules", str(scenarios))
    assert status == 0, said


@pytest.mark.parametrize("name", NAMES)
def test_each_alert_has_a_scenario_in_which_it_fires_and_one_in_which_it_does_not(name):
    """An alert without one of the two would prove nothing."""
    tests = [test for path in SCENARIOS for test in yaml.safe_load(path.read_text())["tests"]]
    own = [test for test in tests if test["name"].startswith(f"{name} ")]
    moments = [
        any(f'alertname="{name}"' in sample["labels"] for sample in asked["exp_samples"])
        for test in own
        for asked in test["promql_expr_test"]
        if "ALERTS" in asked["expr"]
    ]
    assert {True, False} == set(moments)


@pytest.mark.service("promtool")
def test_prometheus_takes_the_rules():
    """Promtool finds nothing wrong, duplicates and names of series included."""
    status, said = told("promtool", "check", "rules", *map(str, (ROOT / "grafana" / "rules").glob("*.yaml")))
    assert status == 0, said


@pytest.mark.service("vmalert")
def test_vmalert_takes_the_rules():
    """The same files serve VictoriaMetrics: expressions and templates are valid there."""
    status, said = told("vmalert", f"-rule={ROOT / 'grafana' / 'rules'}/*.yaml", "-dryRun")
    assert status == 0, said
    assert "error" not in said.lower()


def test_rules_name_only_series_that_exist():
    """Every name in an expression is exposed by the exporter, recorded by a rule, or Prometheus' own."""
    config = Config()
    records = [each.record for each in all_recorded(config)]
    assert len(set(records)) == len(records)
    known = {series for name in FAMILIES for series in series_names(name)} | set(records)
    for each in (*all_recorded(config), *alerts(config)):
        assert set(re.findall(r"\bett[_:][a-z0-9_:]+", each.expr)) <= known, each


def test_a_threshold_of_the_site_reaches_the_rules_and_their_words():
    """What is set once is meant everywhere."""
    changed = Config(
        scrape_job="other", runbooks_url="https://wiki.example/ett", app_url="https://app.example"
    )
    text = rule_files(changed)[ALERTS_FILE]
    assert 'up{job="other"}' in text
    assert "https://wiki.example/ett#ettjoblost" in text
    assert "https://app.example/job?id=" in text
    assert all(failure_class in str(all_recorded(changed)) for failure_class in OF_THE_NODE)


@pytest.mark.parametrize("name", NAMES)
def test_each_alert_has_a_runbook_in_three_parts(name):
    """What it means, how to look, what to do: for whoever is woken up."""
    (section,) = re.findall(rf"^## {name}\n(.*?)(?=^## |\Z)", RUNBOOKS, re.MULTILINE | re.DOTALL)
    for part in ("**What it means.**", "**How to look.**", "**What to do.**"):
        assert part in section


def test_each_runbook_has_an_alert():
    """A section whose alert is gone goes, too."""
    assert sorted(re.findall(r"^## (Ett\w+)$", RUNBOOKS, re.MULTILINE)) == NAMES
