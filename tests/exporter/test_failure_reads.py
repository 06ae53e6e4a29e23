"""Failures across jobs over HTTP: lists, groups, one in full, suspect nodes, what became worse."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import unicodedata
from collections import Counter
from dataclasses import replace

import httpx
import pytest
from live_jobs import Past
from plausible import plausible

from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.settings import scenario
from ett_core import events as ev
from ett_core.events import encode
from ett_exporter.api import make_app
from ett_exporter.history import FleetHistory
from ett_exporter.live import LiveJob
from ett_exporter.places import Kept, Place
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store
from ett_exporter.taking import take_together
from ett_exporter.views import held_seconds

END = 1_764_000_000.0
BEGIN = END - 2 * 86_400.0
PRICES = {"H100": 3.6, "H200": 7.2}


class Asked:
    """A service, the truth of its jobs, and a client of its application."""

    def __init__(self, service, truths=()):
        self.service, self.truths = service, truths
        self._app = make_app(service)

    def ask(self, path, **query):
        async def request():
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
                return await client.get(path, params=query)

        return asyncio.run(request())

    def get(self, path, **query):
        answer = self.ask(f"/api/v1/{path}", **query)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def incident(tmp_path_factory):
    """Two days of a fleet with an outage of the object store, a deploy at half time and bad nodes."""
    store = Store(str(tmp_path_factory.mktemp("incident") / "ett.sqlite"))
    service = Service(store, Settings(prices=PRICES), clock=lambda: END)
    shape = replace(scenario("incident", report_s=600.0), cluster_nodes=16, reporting_ranks=4)
    fleet = Fleet(shape, round(END * 1000))
    truths = []
    for story in fleet.stories():
        lines = [encode(event) + b"\n" for _, event in fleet.told(story, shape.window_ms)]
        by_writer: dict[str, list[bytes]] = {}
        for line in lines:
            by_writer.setdefault(line.partition(b'"writer":"')[2][:16].decode(), []).append(line)
        for body in by_writer.values():
            service.ingest(b"".join(body))
        truths.append(story.truth(shape.window_ms))
    service.known(END)
    yield Asked(service, [truth for truth in truths if truth is not None])
    store.close()


def test_every_failure_of_the_fleet_is_listed_once(incident):
    """As many as truly happened, the latest first; pages hold each of them once."""
    answer = incident.get("failures")
    assert answer["total"] == sum(len(truth.failures) for truth in incident.truths) > 10
    times = [failure["time"] for failure in answer["failures"]]
    assert times == sorted(times, reverse=True)
    paged, offset = [], 0
    while offset is not None:
        page = incident.get("failures", limit=3, offset=offset)
        paged += [failure["id"] for failure in page["failures"]]
        offset = page["next_offset"]
    assert paged == [failure["id"] for failure in answer["failures"]]
    assert len(set(paged)) == len(paged)


@pytest.mark.parametrize(
    "name",
    ["failure_class", "domain", "ending", "node", "cluster", "team", "model", "accelerator_type", "job_id"],
)
@pytest.mark.parametrize("order", ["count", "lost"])
def test_groups_are_a_pareto_of_all_failures(incident, name, order):
    """Largest first; numbers, seconds and money of the groups add up to those of all."""
    answer = incident.get("failures", group_by=name, order=order)
    groups = answer["groups"]
    sizes = [group["count" if order == "count" else "lost_accelerator_s"] for group in groups]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(group["count"] for group in groups) == answer["total"]
    assert sum(group["count_ratio"] for group in groups) == pytest.approx(1.0)
    assert sum(group["lost_ratio"] for group in groups) == pytest.approx(1.0)
    assert sum(group["lost_accelerator_s"] for group in groups) == pytest.approx(answer["lost_accelerator_s"])
    assert sum(group["cost"] for group in groups) == pytest.approx(answer["cost"])
    assert groups[-1]["cumulative_ratio"] == pytest.approx(1.0)
    where = "diagnosis" if name in ("failure_class", "domain", "node") else None
    told = Counter((failure[where] if where else failure)[name] for failure in answer["failures"])
    assert {group["key"]: group["count"] for group in groups} == told


def test_what_failures_lost_is_what_their_jobs_lost(incident):
    """Unsaved, stalled and recovering time, held accelerators only, adds up over jobs and failures."""
    answer = incident.get("failures")
    expected = 0.0
    for view in incident.service.views(END):
        components = {n: s for n, s in view.account.components.items() if n.startswith("recover.")}
        expected += held_seconds(components) * view.accelerator_weight
        expected += sum(failure.unsaved_s for failure in view.account.failures) * view.accelerator_weight
    stalled = sum(f["losses"]["stalled_s"] * f["losses"]["accelerators"] for f in answer["failures"])
    assert answer["lost_accelerator_s"] - stalled == pytest.approx(expected, rel=1e-9)
    h100 = [f for f in answer["failures"] if f["accelerator_type"] == "H100"]
    assert sum(f["cost"] for f in h100) == pytest.approx(
        sum(f["lost_accelerator_s"] for f in h100) * 3.6 / 3600
    )


def test_the_metric_and_the_list_agree_on_what_failures_lost(incident):
    """Both are held accelerator-seconds of the same seconds, by class, once causes have settled."""
    samples = lost_on_metrics(incident)
    groups = incident.get("failures", group_by="failure_class")["groups"]
    settled = {group["key"]: group for group in groups if END - group["last"] > 600}
    assert settled
    for name, group in settled.items():
        assert samples[name] == pytest.approx(group["lost_accelerator_s"], rel=1e-6)


def lost_on_metrics(incident):
    """Seconds lost by class, over clusters, as /metrics tells them."""
    text = incident.ask("/metrics").text
    found = re.findall(
        r'^ett_fleet_lost_accelerator_seconds_total\{failure_class="(\w+)",[^}]*\} (\S+)$', text, re.MULTILINE
    )
    totals: Counter[str] = Counter()
    for name, value in found:
        totals[name] += float(value)
    return totals


def test_failures_are_chosen_by_what_they_are(incident):
    """Each filter keeps exactly those that it names; filters hold together."""
    everything = incident.get("failures")["failures"]
    for name in ("failure_class", "domain", "node"):
        value = everything[0]["diagnosis"][name]
        chosen = incident.get("failures", **{name: value})["failures"]
        assert chosen == [f for f in everything if f["diagnosis"][name] == value]
    for name in ("cluster", "team", "model", "ending"):
        value = everything[-1][name]
        assert incident.get("failures", **{name: value})["failures"] == [
            f for f in everything if f[name] == value
        ]
    late = incident.get("failures", window="24h", failure_class="object_store")["failures"]
    assert late == [
        f
        for f in everything
        if f["time"] >= END - 86_400 and f["diagnosis"]["failure_class"] == "object_store"
    ]
    assert late


def test_parts_of_time_hold_every_failure_once(incident):
    """Over all parts, numbers and seconds of a group are those of the group; the parts are equal."""
    for chosen in ({"window": "7d"}, {}, {"begin": str(BEGIN), "end": str(END)}):
        answer = incident.get("failures", group_by="failure_class", buckets=24, **chosen)
        parts = answer["over_time"]
        assert len(parts) == 24
        assert all(a["end"] == pytest.approx(b["begin"]) for a, b in itertools.pairwise(parts))
        for group in answer["groups"]:
            key = group["key"]
            assert sum(part["counts"].get(key, 0) for part in parts) == group["count"]
            lost_s = sum(part["lost_accelerator_s"].get(key, 0.0) for part in parts)
            assert lost_s == pytest.approx(group["lost_accelerator_s"])
        for part in parts[1:-1]:
            inside = [f for f in answer["failures"] if part["begin"] <= f["time"] < part["end"]]
            assert sum(part["counts"].values()) == len(inside)
    assert incident.get("failures")["over_time"] == []
    assert incident.get("failures", failure_class="none", buckets=2)["over_time"][0]["counts"] == {}


def test_runs_and_their_families_are_told(incident):
    """Every run whose loop began once, the latest first; of one family, of a page; the families add up."""
    answer = incident.get("runs", window="7d")
    starts = [run["start"] for run in answer["runs"]]
    assert starts == sorted(starts, reverse=True)
    assert answer["total"] == len(answer["runs"]) > 20
    first = [run for run in answer["runs"] if "time_to_start" in run["figures"]]
    assert len({run["job_id"] for run in first}) == len(first)
    job = incident.get(f"jobs/{first[0]['job_id']}")
    assert first[0]["figures"]["time_to_start"] == job["tts_s"]
    families = incident.get("families", window="7d")["families"]
    assert {each["family"] for each in families} >= {run["family"] for run in answer["runs"]}
    family = families[0]["family"]
    chosen = incident.get("runs", window="7d", family=family)["runs"]
    assert chosen == [run for run in answer["runs"] if run["family"] == family]
    page = incident.get("runs", window="7d", family=family, limit=1, offset=1)
    assert page["runs"] == chosen[1:2]
    assert incident.get("runs", window="7d", family="none")["runs"] == []
    assert incident.get("families", begin=str(END))["families"] == []


def test_one_failure_is_answered_with_its_evidence(incident):
    """Its id is an address, slashes and all; it says the same as in the list, and shows its lines."""
    for listed in incident.get("failures")["failures"][:5]:
        found = incident.get(f"failures/{listed['id']}")
        assert listed.items() <= found.items()
        page = incident.get(f"jobs/{listed['job_id']}")
        same = next(f for f in page["failure_list"] if f["id"] == listed["id"])
        assert (same["evidence"], same["losses"]) == (found["evidence"], found["losses"])
        assert len(found["alike"]) == found["recurrence"]["count"] - 1
    for unknown in ("none~0", f"{listed['job_id']}~77", "~0", listed["job_id"]):
        assert incident.ask(f"/api/v1/failures/{unknown}").status_code == 404


def test_the_outage_and_the_deploy_are_told(incident):
    """The store that broke, with its jobs and owners; the parts of the start that a deploy slowed."""
    answer = incident.get("regressions", window="7d")
    (outage,) = [each for each in answer["outbreaks"] if each["failure_class"] == "object_store"]
    assert BEGIN + 0.69 * 172_800 < outage["since"] < outage["until"] < BEGIN + 0.77 * 172_800
    assert outage["jobs"] >= 4
    assert len(outage["owners"]) >= 2
    slower = {each["figure"] for each in answer["components"]}
    assert slower & {"start.preproc_creation", "start.model_init"}
    assert incident.get("regressions", window="7d") == answer
    assert incident.get("regressions", window="1h")["components"] == []


def test_bad_nodes_come_first(incident):
    """Nodes with failures, each with what was observed and what was to be expected."""
    answer = incident.get("nodes", window="7d")
    nodes = answer["nodes"]
    assert nodes[0]["node"].endswith("-n007")
    assert {node["node"] for node in nodes if node["suspect"]} <= {
        f"{c}-n007" for c in ("pci1", "vll2", "cco3")
    }
    failures = incident.get("failures")["failures"]
    told = Counter(f["diagnosis"]["node"] for f in failures if f["diagnosis"]["node"])
    assert {node["node"]: node["failures"] for node in nodes} == told
    assert incident.get("nodes", window="7d", limit=1)["nodes"] == nodes[:1]


def test_rows_tell_how_many_failures_were_not_the_job_s_own(incident):
    """`infra_failures` counts causes of the infrastructure and the platform."""
    failures = incident.get("failures")["failures"]
    theirs = Counter(
        f["job_id"] for f in failures if f["diagnosis"]["domain"] in ("infrastructure", "platform")
    )
    rows = incident.get("jobs")["jobs"]
    assert {row["job_id"]: row["infra_failures"] for row in rows if row["infra_failures"]} == theirs


HOSTILE = "\x1b[31mRuntimeError\x1b[0m: a\x00b \u202egpj.exe\x07 <script>alert(1)</script> **bold**"


def test_control_characters_of_logs_reach_no_reader(service):
    """ANSI sequences are gone, NUL and text that turns round are visible; markup stays what it was: text."""
    opened = service(now=END)
    where = {"job_id": "hostile", "writer": "w", "attempt": 0, "rank": 0, "node": "n"}
    told = [
        ev.AttemptStart(**where, seq=0, time=END - 100, world_size=1, labels={"team": "t"}),
        ev.Evidence(**where, seq=1, time=END - 51, source="stderr", text=HOSTILE),
        ev.Failure(
            **where, seq=2, time=END - 50, exception="Run\x1b[1mtimeError", message=HOSTILE, exit_code=1
        ),
    ]
    opened.ingest(b"".join(encode(event) + b"\n" for event in told))
    asked = Asked(opened)
    seen = [
        asked.ask(f"/api/v1/{path}").json()
        for path in ("failures", "failures/hostile~0", "jobs/hostile", "jobs/hostile/failures")
    ]
    texts = [text for answer in seen for text in strings(answer)]
    assert not [
        t for t in texts if any(unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t" for c in t)
    ]
    shown = "RuntimeError: a\\x00b \\u202egpj.exe\\x07 <script>alert(1)</script> **bold**"
    assert seen[1]["message"] == shown
    assert shown in [line["text"] for line in seen[1]["evidence"]]


def test_a_long_message_is_cut(service):
    """Sixty thousand characters in one line of a journal are eight thousand in an answer."""
    opened = service(now=END)
    where = {"job_id": "long", "writer": "w", "attempt": 0, "rank": 0, "node": "n", "time": END - 50}
    opened.ingest(encode(ev.Failure(**where, seq=0, exception="ValueError", message="x" * 60_000)) + b"\n")
    assert max(map(len, strings(Asked(opened).get("failures/long~0")))) == 8192


def strings(value):
    if isinstance(value, dict):
        return [text for part in value.values() for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def test_history_keeps_what_ended_last(incident):
    """A bound on rows drops the jobs that ended first; what is asked of the others is unchanged."""
    views = incident.service.views(END)
    everything = FleetHistory().rows(views)
    history = FleetHistory(most_rows=30)
    for _ in range(2):
        kept = history.rows(views)
        assert 0 < sum(len(each.runs) + len(each.failures) for each in kept) <= 30
        dropped = {each.job_id for each in everything} - {each.job_id for each in kept}
        last_dropped = max(each.end for each in everything if each.job_id in dropped)
        assert all(each.end >= last_dropped for each in kept)
        assert all(each in everything for each in kept)


def test_a_job_that_goes_on_is_read_anew(service, story):
    """Rows follow what is heard of a job, also where the clock stands still."""
    opened = service(now=END)
    asked = Asked(opened)
    answers = []
    for body in story("goes-on", END - 200, ended=False).bodies().values():
        opened.ingest(body)
        answers.append(asked.get("failures"))
        assert answers[-1] == Asked(opened).get("failures")
    assert answers[-1] != answers[0]


@pytest.mark.parametrize("seed", range(20))
def test_failures_that_are_kept_are_those_of_the_job_as_it_is(seed):
    """However a job goes on, whatever comes late: what was kept of its failures is never out of date."""
    source = random.Random(seed)
    events, end = plausible(source)
    late = source.sample(events, len(events) // 10)
    events = [event for event in events if event not in late] + late
    past, history = Past(), FleetHistory()
    job = LiveJob("job", 0.0, past)
    for first in range(0, len(events), 8):
        told = events[first : first + 8]
        past.told += told
        take_together([job], lambda told=told, place=first: [[Kept(told, Place(0, place + 1))]], 0.0)
        for now in (told[-1].time + 1, told[-1].time + 3, end):
            view = job.view(now)
            assert history.failures([view]) == FleetHistory().failures([view])
