"""Jobs that are not there to train: shown, chosen and counted, and in no average over a fleet."""

import asyncio

import httpx
import pytest

from ett_core import events as ev
from ett_exporter.api import make_app
from ett_exporter.fleet_series import fleet_samples
from ett_exporter.ledger import Ledger

AVERAGES = (
    "ett_fleet_effective_ratio",
    "ett_fleet_component_seconds",
    "ett_fleet_final_accelerator_seconds_total",
)


@pytest.fixture
def told(service, story, blank_story):
    """A job that trains, and the one that published its model in 30 s after it."""
    running = service()
    publishing = blank_story("dlrm.publish-400")
    labels = {"purpose": "publishing", "publishes": "dlrm", "cluster": "c1", "team": "ads"}
    publishing.tell(150.0, ev.AttemptStart, world_size=1, labels=labels)
    publishing.tell(151.0, ev.PhaseBegin, phase="unshard")
    publishing.tell(179.0, ev.PhaseEnd, phase="unshard")
    publishing.tell(180.0, ev.AttemptEnd, status="succeeded")
    publishing.tell(180.0, ev.JobEnd, status="succeeded")
    for each in (story("dlrm"), publishing):
        for body in each.bodies().values():
            running.ingest_events(body)
    return running


@pytest.fixture
def ask(told):
    """What the query API answers."""

    async def answer(path):
        transport = httpx.ASGITransport(make_app(told))
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter/api/v1") as client:
            return (await client.get(path)).raise_for_status().json()

    return lambda path: asyncio.run(answer(path))


@pytest.mark.parametrize("when", ["window=1h", "begin=1764000000&end=1764000200", "window=1h&text=dlrm"])
def test_a_fleet_is_averaged_over_jobs_that_train_and_says_how_many_others_there_are(ask, when):
    training, publishing, everything = (
        ask(f"/fleet?weight=job&{when}{more}") for more in ("", "&purpose=publishing", "&purpose=")
    )
    assert (training["all"]["jobs"], training["left_out"]) == (1, 1)
    job = next(job for job in ask("/jobs")["jobs"] if job["job_id"] == "dlrm")
    assert training["all"]["effective_ratio"] == pytest.approx(job["ett_percent"] / 100)
    assert "start.other" not in training["all"]["components"]
    assert (publishing["all"]["jobs"], publishing["left_out"]) == (1, 1)
    assert publishing["all"]["components"]["start.other"] == pytest.approx(29.0)
    assert (everything["all"]["jobs"], everything["left_out"]) == (2, 0)
    assert everything["all"]["total"] == pytest.approx(training["all"]["total"] + publishing["all"]["total"])


def test_what_if_is_asked_of_jobs_that_train(ask):
    assert [ask(f"/what-if?window=1h{more}")["jobs"] for more in ("", "&purpose=")] == [1, 2]


def test_lists_have_all_jobs_with_their_purpose_by_which_they_are_chosen(ask):
    purposes = {job["job_id"]: job["purpose"] for job in ask("/jobs")["jobs"]}
    assert purposes == {"dlrm": "training", "dlrm.publish-400": "publishing"}
    assert [job["job_id"] for job in ask("/jobs?purpose=publishing")["jobs"]] == ["dlrm.publish-400"]
    groups = ask("/fleet?window=1h&purpose=&group_by=purpose")["fleet"]
    assert [(group["key"], group["jobs"]) for group in groups] == [("publishing", 1), ("training", 1)]


def test_averages_on_metrics_are_those_of_jobs_that_train(told):
    both, one = Ledger(), Ledger()
    for view in told.views(told.clock()):
        both.put(view)
        if view.purpose == "training":
            one.put(view)
    averages = [[each for each in fleet_samples(ledger) if each[0] in AVERAGES] for ledger in (both, one)]
    assert averages[0] == averages[1] != []
