"""/metrics: frozen names, exact values, text that parsers and promtool accept."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from slowing_saves import beside_steps

from ett_core.events import (
    AttemptStart,
    Cache,
    CheckpointDurable,
    CheckpointFailed,
    Compile,
    Failure,
    FirstBatch,
    Heartbeat,
)
from ett_core.failures.classes import CLASSES, NOT_A_FAILURE
from ett_core.metrics import FAMILIES, series_names
from ett_exporter import ledger
from ett_exporter.exposition import Exposition
from ett_exporter.job_series import job_samples

NOW = 1_764_000_200.0
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"

FROZEN = Path(__file__).with_name("metric_names.txt").read_text().split()


@pytest.fixture
def opened(service, story):
    running = service()
    for name in ("team/a", "b"):
        for body in story(name).bodies().values():
            running.ingest(body)
    return running


def text_of(service, accept=""):
    return Exposition(service).answer(accept).body.decode()


def values(text, parse=parse_text):
    """Value by series name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def test_names_are_frozen():
    """No family is ever renamed or lost; a new one is added here and in the documents."""
    assert sorted(FAMILIES) == FROZEN


def failing(story, attempts, *, then_saves=False):
    """A job whose attempts were killed before their first batch; the last one trains on, if told so."""
    told = story("failing")
    told.events.clear()
    for attempt in range(attempts):
        told.tell(100.0 * attempt, AttemptStart, attempt=attempt, world_size=1)
        told.tell(
            100.0 * attempt + 10, Failure, attempt=attempt, exception="ValueError", message="no such key"
        )
    at = 100.0 * attempts
    if then_saves:
        told.tell(at, AttemptStart, attempt=attempts, world_size=1)
        told.tell(at + 10, FirstBatch, attempt=attempts, step=0)
        told.tell(at + 90, CheckpointDurable, attempt=attempts, step=5, mode="sync")
    return told, told.begin + at


def test_failures_in_a_row_are_counted_until_the_job_is_past_them(service, story):
    """Three attempts that end the same way count three; a checkpoint after them ends the row."""

    def rows(now_s, *args, **options):
        told, until = failing(story, *args, **options)
        opened = service(now=until + now_s)
        for body in told.bodies().values():
            opened.ingest(body)
        found = values(text_of(opened))
        return {key[1][1]: v for key, v in found.items() if key[0] == "ett_job_failures_in_a_row"}

    assert rows(100, 3) == {"user_code": 3}
    assert rows(100, 1) == {"user_code": 1}
    assert rows(0, 3) == {"user_code": 2}  # the cause of the third may still turn out otherwise
    assert rows(100, 3, then_saves=True) == {}


def test_every_family_of_a_rich_job_is_exposed_under_its_own_name(opened, story, blank_story):
    """The series exposed are exactly those of the table, in text and in OpenMetrics."""
    told, _ = failing(lambda name: story(name, begin=NOW - 900), 1)
    slowed = beside_steps(blank_story("slowed", NOW - 900))
    for body in (*told.bodies().values(), *slowed.bodies().values()):
        opened.ingest(body)
    expected = {series for name in FAMILIES for series in series_names(name)}
    for accept, parse in (("", parse_text), (OPENMETRICS, parse_openmetrics)):
        assert {key[0] for key in values(text_of(opened, accept), parse)} == expected


def test_labels_are_those_of_the_contract(opened):
    """Each sample has the labels of its family; job and instance are left to Prometheus."""
    for family in parse_text(text_of(opened)):
        for sample in family.samples:
            name = family.name if family.name in FAMILIES else f"{family.name}_total"
            bound = {"le"} if sample.name.endswith("_bucket") else set()
            assert set(sample.labels) == {*FAMILIES[name].labels, *bound}
    assert not {"job", "instance"} & {label for family in FAMILIES.values() for label in family.labels}


def test_values_are_those_of_the_account(opened):
    """What is scraped is what the account says, to the last digit."""
    account = opened.page("team/a", NOW).view.account
    found = values(text_of(opened))
    job = ("job_id", "team/a")
    for component, seconds in account.components.items():
        assert found["ett_job_component_seconds", ("component", component), job] == seconds
    assert (
        found["ett_job_wall_seconds", job]
        == account.wall_s
        == pytest.approx(sum(account.components.values()))
    )
    assert found["ett_job_effective_ratio", job, ("window", "all")] == pytest.approx(
        account.ett_percent / 100
    )
    assert found["ett_job_time_to_start_seconds", job] == account.tts_s
    assert found["ett_job_time_to_recover_seconds_sum", job] == sum(account.ttr_s)
    assert found["ett_job_time_to_recover_seconds_count", job] == 1
    (domain,) = {why.domain for why in opened.page("team/a", NOW).view.diagnoses}
    assert found["ett_job_failures_total", ("domain", domain), job] == 1
    assert found["ett_job_state", job, ("state", "succeeded")] == 1
    assert found["ett_job_checkpoint_blocking_seconds_sum", job] == 2.0
    assert found["ett_job_checkpoint_bytes", job] == 2000
    assert found["ett_job_compile_cache_requests_total", ("cache", "fx_graph"), job, ("result", "hit")] == 12
    assert found["ett_job_compile_seconds_total", job, ("stage", "native")] == 8.0
    assert found["ett_job_compile_cache_saved_seconds_total", job] == 16.0
    assert found["ett_fleet_jobs", ("cluster", "c1"), ("state", "succeeded"), ("team", "ads")] == 2


def test_a_failure_is_counted_once_it_has_settled(service, story):
    """A failure counts after the job trains again, or 120 s after it, not before."""
    told = story("a")
    told.events = [event for event in told.events if event.attempt == 0]

    def counted(now):
        opened = service(now=now)
        for body in told.bodies().values():
            opened.ingest(body)
        found = values(text_of(opened))
        return sum(value for key, value in found.items() if key[0] == "ett_job_failures_total")

    assert [counted(told.begin + 81 + after_s) for after_s in (10, 119, 121)] == [0, 0, 1]


def test_a_failed_checkpoint_is_counted_once_that_has_lasted_and_never_less(service, blank_story):
    """A rank that leaves before the others calls failed what another one commits moments later."""
    told = blank_story("a", NOW - 900)
    opened = service(now=NOW)

    def counted_after(at, kind, **fields):
        told.tell(at, kind, **fields)
        for body in told.bodies().values():
            opened.ingest(body)
        return values(text_of(opened))["ett_job_checkpoint_failures_total", ("job_id", "a")]

    assert counted_after(0, AttemptStart, world_size=2) == 0
    assert counted_after(10, FirstBatch, step=0) == 0
    assert counted_after(100, CheckpointFailed, rank=1, step=5) == 0
    assert counted_after(103, CheckpointDurable, step=5) == 0
    assert counted_after(230, Heartbeat) == 0
    assert counted_after(240, CheckpointFailed, step=9) == 0
    assert counted_after(359, Heartbeat) == 0
    assert counted_after(360, Heartbeat) == 1
    assert counted_after(350, CheckpointDurable, rank=1, step=9) == 1  # this word came late


def test_what_a_cluster_counts_begins_at_nothing(service, story):
    """Counters stand at 0 before the first failure, start or save, so that `increase` sees it."""
    told = story("a")
    told.events = [event for event in told.events if event.time <= told.begin + 1]
    opened = service(now=told.begin + 5)
    for body in told.bodies().values():
        opened.ingest(body)
    found = values(text_of(opened))
    classes = {name for name in CLASSES if name != NOT_A_FAILURE}
    for family in ("ett_fleet_failures_total", "ett_fleet_lost_accelerator_seconds_total"):
        of_class = {dict(key[1:])["failure_class"]: v for key, v in found.items() if key[0] == family}
        assert of_class == dict.fromkeys(classes, 0.0)
    for family in ("time_to_start", "time_to_recover", "checkpoint_blocking"):
        assert found[f"ett_fleet_{family}_seconds_count", ("cluster", "c1")] == 0


def test_a_job_has_at_most_fifty_series(service, story):
    """Many caches and compile stages are summed as `other`; nothing of them is lost."""
    told = story("wide")
    for number in range(40):
        told.tell(100, Cache, cache=f"cache{number}", hits=1, misses=1, bypasses=1)
        told.tell(100, Compile, stage_seconds={f"stage{number}": 1.0})
    opened = service()
    for body in told.bodies().values():
        opened.ingest(body)
    view = opened.page("wide", NOW).view
    samples = list(job_samples(view))
    assert len(samples) <= 50
    stages = [value for name, _, value in samples if name == "ett_job_compile_seconds_total"]
    assert sum(stages) == pytest.approx(sum(view.details.compile_s.values()))


def test_an_ordinary_job_has_at_most_fifty_series(opened):
    """A job with a failure, a recovery, checkpoints and compilation stays within the budget."""
    for view in opened.views(NOW):
        assert len(list(job_samples(view))) <= 50


@pytest.mark.parametrize(
    "accept",
    [
        "text/plain",
        "*/*",
        "garbage;;=",
        "application/openmetrics-text; version=x",
        "application/openmetrics-text;version=9.9.9",
        "text/plain; version=1.0.0; escaping=what",
    ],
)
def test_an_odd_accept_header_gets_text(opened, accept):
    """Whoever asks in a way that is not understood is answered in plain text."""
    answer = Exposition(opened).answer(accept)
    assert answer.content_type.startswith("text/plain")
    assert values(answer.body.decode())


def test_openmetrics_is_negotiated(opened):
    """Asked for OpenMetrics, the answer is OpenMetrics and ends as it must; nothing is `_created`."""
    answer = Exposition(opened).answer(OPENMETRICS)
    body = answer.body
    assert answer.content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    assert b"_created" not in body
    assert b"_total_total" not in body


def test_hostile_labels_stay_inside_their_quotes(service, story):
    """Quotes, newlines and very long labels come back as they were, or cut; nothing else breaks."""
    told = story("a")
    opened = service()
    for body in told.bodies().values():
        opened.ingest(body.replace(b'"ads"', b'"x\\"}\\n\\\\ y"').replace(b'"c1"', b'"' + b"z" * 900 + b'"'))
    labels = [dict(key[1:]) for key in values(text_of(opened)) if key[0] == "ett_job_info"]
    assert labels[0]["team"] == 'x"}\n\\ y'
    assert labels[0]["cluster"] == "z" * 200


def test_a_fleet_of_endless_clusters_and_teams_has_few_series(service, story, monkeypatch):
    """Those that come after as many as are told apart count together; seconds and failures stay whole."""
    monkeypatch.setattr(ledger, "MOST_CLUSTERS", 3)
    monkeypatch.setattr(ledger, "MOST_TEAMS", 5)
    opened = service()
    for number in range(8):
        for body in story(f"job-{number}").bodies().values():
            named = body.replace(b'"ads"', b'"team-%d"' % number).replace(b'"c1"', b'"cluster-%d"' % number)
            assert opened.ingest(named).rejected_total == 0
    found = Exposition(opened)
    text = [line for line in found.answer().body.decode().splitlines() if not line.startswith("#")]
    told = {line.split('cluster="')[1].split('"')[0] for line in text if line.startswith("ett_fleet_")}
    assert told == {"cluster-0", "cluster-1", "cluster-2", "(other)"}
    final = [line for line in text if line.startswith("ett_fleet_final_accelerator_seconds_total")]
    teams = {line.split('team="')[1].split('"')[0] for line in final}
    assert teams == {"team-0", "team-1", "team-2", "team-3", "team-4", "(other)"}
    failed = [line for line in text if line.startswith("ett_fleet_failures_total")]
    assert sum(float(line.split()[-1]) for line in failed) == 8
    assert all(found.answer().body.count(b'"job-%d"' % number) for number in range(8))


def test_own_metrics_count_what_came_in(opened, story):
    """Events, segments, repeats and bad lines are counted, and the series of the answer."""
    opened.ingest(next(iter(story("b").bodies().values())) + b"nonsense\n")
    found = values(text_of(opened))
    assert found["ett_exporter_ingested_events_total",] == 2 * len(story("b").events)
    assert found["ett_exporter_rejected_lines_total",] == 1
    assert found["ett_exporter_duplicate_events_total",] > 0
    assert found["ett_exporter_series",] == len(found) - 1
    assert found["ett_exporter_store_write_seconds_count",] == found["ett_exporter_ingested_segments_total",]


def test_every_family_stands_in_the_documents():
    """docs/metrics.md has the row of every family, as the table in the code says it, and no other."""
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `ett_")]
    assert rows == [
        f"| `{name}` | {family.kind} | {', '.join(family.labels)} | {family.help} |"
        for name, family in FAMILIES.items()
    ]


def test_metrics_are_served(exporter, story):
    """A running exporter serves the same over HTTP, in the content type asked for."""
    exporter.tell(story("served"))
    plain: httpx.Response = exporter.http.get("/metrics")
    assert ("ett_job_wall_seconds", ("job_id", "served")) in values(plain.text)
    asked = exporter.http.get("/metrics", headers={"Accept": OPENMETRICS})
    assert asked.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")


@pytest.mark.service("promtool")
def test_promtool_has_nothing_to_complain_of(opened):
    """`promtool check metrics` accepts the text without a word."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=text_of(opened), capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
