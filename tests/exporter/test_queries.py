"""The query API in this process: filters, order, pages, parts, and answers that cost nothing."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import httpx
import pytest

from ett_core import events as ev
from ett_core.events import PhaseBegin, PhaseEnd
from ett_exporter.answer_types import Quantiles
from ett_exporter.api import make_app
from ett_exporter.fleet import quantiles
from ett_exporter.fleet_reads import FleetReads
from ett_exporter.fleet_spans import FleetSpans
from ett_exporter.queries import FleetQuery

BEGIN = 1_764_000_000.0
NOW = BEGIN + 200
TROUBLED = ("lost", "stalled", "recovering", "unobserved")


@pytest.fixture
def api(service, story):
    """Asks an application over three jobs of two clusters; `service` and `ask` of it."""
    opened = service(now=NOW, prices={"H200": 3600.0})
    for number, (name, cluster) in enumerate((("team/a", "c1"), ("b", "c1"), ("c", "c2"))):
        told = story(name, BEGIN - 10 * number, ended=name != "b")
        for body in told.bodies().values():
            opened.ingest(body.replace(b'"cluster":"c1"', f'"cluster":"{cluster}"'.encode()))
    return Api(opened)


class Api:
    def __init__(self, service):
        self.service = service
        self._app = make_app(service)

    def ask(self, path, headers=None, **query):
        async def request():
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
                return await client.get(path, params=query, headers=headers)

        return asyncio.run(request())

    def get(self, path, **query):
        answer = self.ask(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def names(self, **query):
        return [job["job_id"] for job in self.get("/api/v1/jobs", **query)["jobs"]]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["team/a", "b", "c"]),
        ({"state": "succeeded"}, ["team/a", "c"]),
        ({"state": "failed,succeeded"}, ["team/a", "c"]),
        ({"cluster": "c1"}, ["team/a", "b"]),
        ({"cluster": "c1", "state": "succeeded"}, ["team/a"]),
        ({"model": "another"}, []),
        ({"text": "TEAM/"}, ["team/a"]),
        ({"text": "dlrm"}, ["team/a", "b", "c"]),
        ({"sort": "job_id"}, ["b", "c", "team/a"]),
        ({"sort": "-job_id"}, ["team/a", "c", "b"]),
        ({"sort": "start"}, ["c", "b", "team/a"]),
        ({"sort": "-start", "limit": 2}, ["team/a", "b"]),
        ({"sort": "-start", "limit": 2, "offset": 2}, ["c"]),
        ({"sort": "urgency"}, ["b", "c", "team/a"]),
        ({"sort": "-urgency"}, ["team/a", "c", "b"]),
        ({"offset": 9}, []),
    ],
)
def test_jobs_are_chosen_ordered_and_cut_as_asked(api, query, names):
    """Filters hold together, `-` turns an order round, pages follow each other."""
    assert api.names(**query) == names


def test_pages_hold_every_job_once(api):
    """Following `next_offset` to its end gives every job, and `total` says how many."""
    found, offset = [], 0
    while offset is not None:
        page = api.get("/api/v1/jobs", limit=1, offset=offset)
        found += [job["job_id"] for job in page["jobs"]]
        assert page["total"] == 3
        offset = page["next_offset"]
    assert found == ["team/a", "b", "c"]


@pytest.mark.parametrize("chosen", [{}, {"cluster": "c1"}, {"text": "TEAM/"}, {"text": "nobody"}])
def test_sums_of_the_jobs_are_those_of_all_rows_that_match(api, chosen):
    """Whatever part of the rows is shown, `together` counts all of them."""
    rows = api.get("/api/v1/jobs", **chosen)["jobs"]
    live = [row for row in rows if not row["finished"]]
    together = api.get("/api/v1/jobs", limit=1, sort="-start", **chosen)["together"]
    assert together["states"] == Counter(row["state"] for row in rows)
    assert together["live"] == len(live)
    assert together["in_trouble"] == sum(row["state"] in TROUBLED for row in live)
    assert together["unsaved_exposure_s"] == pytest.approx(
        sum(row["unsaved_exposure_s"] or 0.0 for row in live)
    )


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "x"},
        {"colour": "red"},
        {"sort": "luck"},
        {"offset": "-1"},
        {"text": "x" * 300},
    ],
)
def test_a_query_that_is_not_understood_is_refused_by_its_name(api, query):
    """The answer is 400 and names the parameter."""
    answer = api.ask("/api/v1/jobs", **query)
    assert answer.status_code == 400
    assert next(iter(query)) in answer.json()["error"]


def test_the_parts_of_a_job_are_those_of_its_page(api):
    """Each part, asked for alone, says what the whole page says."""
    whole = api.get("/api/v1/jobs/team/a")
    of = "/api/v1/jobs/team/a"
    assert api.get(f"{of}/timeline")["stretches"] == whole["timeline"]
    assert api.get(f"{of}/attempts")["attempts"] == whole["attempt_list"]
    assert api.get(f"{of}/failures")["failures"] == whole["failure_list"]
    assert api.get(f"{of}/checkpoints")["checkpoints"] == whole["checkpoints"]
    caches = api.get(f"{of}/caches")
    assert caches["caches"]["fx_graph"] == {
        "hits": 12, "misses": 8, "bypasses": 0, "saved_s": 16.0, "bytes": 0, "hit_ratio": 0.6,
    }  # fmt: skip
    assert caches["compile_s"] == {"backend": 6.0, "native": 8.0}


def test_the_ranks_of_the_latest_attempt(api):
    """Node, first batch and last word of each rank."""
    ranks = api.get("/api/v1/jobs/team/a/ranks")
    assert ranks["attempt"] == 1
    assert [(r["rank"], r["node"], r["first_batch_at"]) for r in ranks["ranks"]] == [
        (0, "n0", BEGIN + 110),
        (1, "n1", BEGIN + 110),
    ]
    assert [r["last_event_at"] for r in ranks["ranks"]] == [BEGIN + 141, BEGIN + 140]


def test_what_was_compiled_and_decided_comes_in_pages(api):
    """Compilations in their order, with the version of torch that advice needs; decisions latest first."""
    head = {"job_id": "team/a", "writer": "told", "attempt": 1, "rank": 0, "time": BEGIN + 141}
    reason = "0/0: tensor 'x' size mismatch at index 0. expected 64, actual 65"
    inputs = (ev.CompileInput("L['x']", (65,), "float32"),)
    told = [
        ev.AttemptStart(**head, seq=0, versions={"torch": "2.13.0"}),
        ev.Compile(**head, seq=1, graph="0/0", code="f (a.py:1)", inputs=()),
        ev.Compile(**head, seq=2, graph="0/1", code="f (a.py:1)", recompile_reason=reason, inputs=inputs),
        *(ev.Decision(**head, seq=3 + n, what="interval", why=f"reason {n}") for n in range(3)),
    ]
    api.service.ingest(b"".join(ev.encode(event) + b"\n" for event in told))
    known = api.get("/api/v1/jobs/team/a/compilations")
    assert known["torch"] == "2.13.0"
    assert known["again"] >= 1
    mine = [line for line in known["compilations"] if line["writer"] == "told"]
    assert [line["recompile_reason"] for line in mine] == [None, reason]
    assert mine[1]["inputs"] == [{"source": "L['x']", "size": [65], "traits": "float32"}]
    rest = api.get("/api/v1/jobs/team/a/compilations", limit=1, offset=1)
    assert rest["compilations"] == known["compilations"][1:2]
    first = api.get("/api/v1/jobs/team/a/decisions", limit=2)
    assert (first["total"], first["next_offset"]) == (3, 2)
    last = api.get("/api/v1/jobs/team/a/decisions", limit=2, offset=2)
    assert [line["why"] for line in first["decisions"] + last["decisions"]] == [
        "reason 2",
        "reason 1",
        "reason 0",
    ]
    assert api.ask("/api/v1/jobs/team/a/decisions", state="running").status_code == 400


def test_a_coarser_timeline_keeps_its_seconds(api):
    """A level of detail joins neighbours; a part adds up to its length."""
    fine = api.get("/api/v1/jobs/team/a/timeline")
    coarse = api.get("/api/v1/jobs/team/a/timeline", limit=3)
    total = [sum(sum(s["components"].values()) for s in t["stretches"]) for t in (fine, coarse)]
    assert total[0] == pytest.approx(total[1]) == pytest.approx(142.0)
    assert (fine["is_joined"], coarse["is_joined"]) == (False, True)
    assert len(coarse["stretches"]) < len(fine["stretches"])
    part = api.get("/api/v1/jobs/team/a/timeline", begin=BEGIN + 30, end=BEGIN + 60)
    assert sum(sum(s["components"].values()) for s in part["stretches"]) == pytest.approx(30.0)


def test_a_job_whose_name_ends_like_a_part_is_found(api, story):
    """The job itself comes before a part of another."""
    for body in story("b/timeline").bodies().values():
        api.service.ingest(body)
    assert api.get("/api/v1/jobs/b/timeline")["job_id"] == "b/timeline"
    assert api.get("/api/v1/jobs/b/timeline/timeline")["job_id"] == "b/timeline"


def test_failures_of_all_jobs(api):
    """The latest come first, with their job and their diagnosis; filters choose among them."""
    found = api.get("/api/v1/failures")
    assert [f["job_id"] for f in found["failures"]] == ["team/a", "b", "c"]
    first = found["failures"][0]
    assert (first["cause"], first["signal"]) == ("rank 1 was killed by SIGKILL (sender unknown)", 9)
    kind = first["diagnosis"]["failure_class"]
    assert len(api.get("/api/v1/failures", failure_class=kind)["failures"]) == 3
    assert api.get("/api/v1/failures", failure_class="nothing")["failures"] == []
    assert len(api.get("/api/v1/failures", cluster="c2")["failures"]) == 1
    assert len(api.get("/api/v1/failures", begin=BEGIN + 75)["failures"]) == 1
    assert api.get("/api/v1/failures", limit=2)["next_offset"] == 2


def test_caches_across_jobs(api):
    """Hit ratios stand beside the seconds that were compiled all the same."""
    jobs = api.get("/api/v1/caches")["jobs"]
    assert [job["job_id"] for job in jobs] == ["team/a", "b", "c"]
    assert {job["hit_ratio"] for job in jobs} == {0.6}
    assert all(job["compile_s"] == {"backend": 6.0, "native": 8.0} for job in jobs)


def test_the_fleet_adds_up(api):
    """All jobs and the groups add up to the same, weighted as asked, and ratios lie in 0 to 1."""
    pages = [api.get(f"/api/v1/jobs/{name}") for name in ("team/a", "b", "c")]
    fleet = api.get("/api/v1/fleet", window="1h", weight="job", group_by="cluster")
    assert fleet["all"]["total"] == pytest.approx(sum(page["wall_s"] for page in pages))
    assert [(g["key"], g["jobs"]) for g in fleet["fleet"]] == [("c1", 2), ("c2", 1)]
    assert sum(g["total"] for g in fleet["fleet"]) == pytest.approx(fleet["all"]["total"])
    for group in (fleet["all"], *fleet["fleet"]):
        assert sum(group["components"].values()) == pytest.approx(group["total"])
        assert sum(group["areas"].values()) == pytest.approx(group["total"])
        assert group["effective_ratio"] == pytest.approx(group["components"]["training"] / group["total"])
    assert fleet["all"]["failures"] == 3
    assert fleet["all"]["tts"]["p50_s"] == 20.0
    assert fleet["all"]["ttr"] == {"count": 3, "p50_s": 29.0, "p90_s": 29.0, "p99_s": 29.0, "max_s": 29.0}


def test_accelerators_and_money_weigh_held_time(api):
    """Two accelerators a job count twice; at 3,600 an hour a second of one costs 1."""
    held = api.get("/api/v1/fleet", window="1h")["all"]
    job = api.get("/api/v1/fleet", window="1h", weight="job")["all"]
    queue = job["components"].get("recover.queue", 0.0)
    assert held["total"] == pytest.approx(2 * (job["total"] - queue))
    assert api.get("/api/v1/fleet", window="1h", weight="cost")["all"]["total"] == pytest.approx(
        held["total"]
    )


def test_running_totals_are_those_of_the_jobs_one_by_one(api, story):
    """A window asked for again and again, while jobs come and change, equals the sum job by job."""
    for step in range(4):
        for body in story(f"more/{step}", BEGIN - 100 * step, ended=step % 2 == 0).bodies().values():
            api.service.ingest(body)
        for weight in ("job", "accelerator", "cost"):
            for group_by in ("cluster", "state", "accelerator_type"):
                query = {"window": "1h", "weight": weight, "group_by": group_by}
                running = api.get("/api/v1/fleet", **query)
                for one, other in zip(
                    [running["all"], *running["fleet"]],
                    [(found := api.get("/api/v1/fleet", **query, text="a"))["all"], *found["fleet"]],
                    strict=True,
                ):
                    assert one == approximately(other)


def approximately(group):
    """A group whose numbers may differ by what adding floats in another order makes of them."""
    return {
        name: pytest.approx(value, rel=1e-9, abs=1e-6) if isinstance(value, (float, dict)) else value
        for name, value in group.items()
        if name not in ("tts", "ttr")
    } | {"tts": group["tts"], "ttr": group["ttr"]}


def test_a_span_of_the_fleet_is_exact(api):
    """Between two moments each job counts with its exact seconds there."""
    begin, end = BEGIN + 30, BEGIN + 60
    fleet = api.get("/api/v1/fleet", begin=begin, end=end, weight="job")
    assert fleet["all"]["total"] == pytest.approx(3 * 30.0)
    halves = [api.get("/api/v1/fleet", begin=b, end=b + 15, weight="job") for b in (begin, begin + 15)]
    for name, amount in fleet["all"]["components"].items():
        assert sum(h["all"]["components"].get(name, 0.0) for h in halves) == pytest.approx(amount)


@pytest.mark.parametrize("weight", ["job", "accelerator", "cost"])
@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"group_by": "cluster"},
        {"group_by": "state"},
        {"cluster": "c1"},
        {"state": "succeeded"},
        {"text": "team/"},
    ],
)
def test_buckets_add_up_to_their_window(api, weight, chosen):
    """Equal parts follow each other; what they hold together is what their time holds without parts."""
    cut = api.get("/api/v1/fleet", window="1h", weight=weight, buckets=144, **chosen)
    parts = cut["over_time"]
    when = {"begin": cut["begin"], "end": cut["end"]}
    whole = api.get("/api/v1/fleet", **when, weight=weight, **chosen)
    assert {**cut, "over_time": []} == approximately_all(whole)
    assert cut["end"] - cut["begin"] == 3600.0
    assert NOW < cut["end"] <= NOW + 75.0
    assert [part["begin"] for part in parts[1:]] == [part["end"] for part in parts[:-1]]
    assert (parts[0]["begin"], parts[-1]["end"], len(parts)) == (whole["begin"], whole["end"], 144)
    assert sum(bool(part["all"]["total"]) for part in parts) > 2
    for name, amount in whole["all"]["components"].items():
        assert sum(p["all"]["components"].get(name, 0.0) for p in parts) == pytest.approx(amount)
    assert sum(part["all"]["failures"] for part in parts) == whole["all"]["failures"]
    for part in parts:
        groups = sum(group["total"] for group in part["fleet"])
        assert groups == pytest.approx(part["all"]["total"] if "group_by" in chosen else 0.0)
    assert api.get("/api/v1/fleet", window="1h", weight=weight, buckets=144, **chosen) == cut


@pytest.mark.parametrize("chosen", [{}, {"group_by": "state"}, {"text": "team/"}])
def test_one_part_of_a_window_is_the_window(api, chosen):
    """The latest hour in one part is the latest hour."""
    whole = api.get("/api/v1/fleet", window="1h", **chosen)
    cut = api.get("/api/v1/fleet", window="1h", buckets=1, **chosen)
    ((part,)) = cut["over_time"]
    assert {**cut, "over_time": []} == whole
    assert part == {name: whole[name] for name in ("begin", "end", "all", "fleet")}


@pytest.mark.parametrize("chosen", [{}, {"group_by": "state", "weight": "cost"}, {"text": "team/"}])
def test_a_beginning_alone_means_up_to_now_and_an_end_alone_the_window_before_it(api, chosen):
    """As between two moments."""
    begin = BEGIN + 30.0
    since = api.get("/api/v1/fleet", begin=begin, **chosen)
    assert since == api.get("/api/v1/fleet", begin=begin, end=NOW, **chosen)
    until = api.get("/api/v1/fleet", end=begin, window="1h", **chosen)
    assert until == api.get("/api/v1/fleet", begin=begin - 3600.0, end=begin, **chosen)
    parts = api.get("/api/v1/fleet", begin=begin, buckets=9, **chosen)
    assert parts["end"] > NOW
    assert parts["all"] == since["all"]
    assert parts["over_time"][-1]["begin"] <= NOW


def approximately_all(fleet):
    """The answer about a fleet, its groups compared as above."""
    return {**fleet, "all": approximately(fleet["all"]), "fleet": [approximately(g) for g in fleet["fleet"]]}


def test_parts_of_a_job_that_is_over_are_read_again_when_more_of_it_comes(api, story):
    """What was kept of a job gives way once late events change it."""
    query = {"begin": NOW - 3600, "end": NOW, "weight": "job", "buckets": 144, "text": "team/a"}
    before = api.get("/api/v1/fleet", **query)
    assert api.get("/api/v1/fleet", **query) == before
    late = story("team/a", BEGIN)
    late.tell(125.0, PhaseBegin, attempt=1, phase="evaluation")
    late.tell(128.0, PhaseEnd, attempt=1, phase="evaluation")
    for body in late.bodies().values():
        api.service.ingest(body)
    after = api.get("/api/v1/fleet", **query)
    assert after == Api(api.service).get("/api/v1/fleet", **query) != before
    assert after["all"]["components"]["evaluation"] == pytest.approx(3.0)


@pytest.mark.parametrize("parts", [{}, {"begin": BEGIN, "end": BEGIN + 3600, "buckets": 12}])
def test_a_small_fleet_is_as_of_now_whatever_the_question(service, story, parts):
    """Of sixty jobs, each of whose views takes a millisecond, none is shown as it was when last asked for."""
    opened = service(now=NOW)
    for number in range(60):
        for body in story(f"job-{number}", ended=False).bodies().values():
            opened.ingest(body)
    api, passed_ms = Api(opened), iter(range(10**6))
    opened.roster._monotonic = lambda: next(passed_ms) / 1000
    before, after = [], []
    for found, at in ((before, NOW), (after, NOW + 2)):
        opened.clock = lambda at=at: at
        found.append(api.get("/api/v1/fleet", weight="job", **parts)["all"]["total"])
    assert after[0] - before[0] == pytest.approx(60 * 2.0)


def test_jobs_that_were_over_before_a_span_are_not_read_for_it(service, story, monkeypatch):
    """The store is asked for a job that is closed only where it has time in the span."""
    opened = service(now=NOW)
    for body in story("gone").bodies().values():
        opened.ingest(body)
    opened.views(NOW)
    later = NOW + 8 * 86_400
    opened.clock = lambda: later
    opened.upkeep.close_jobs(later)
    opened.upkeep.close_jobs(later)
    read = []
    closed_job = opened.store.closed_job
    monkeypatch.setattr(opened.store, "closed_job", lambda name: read.append(name) or closed_job(name))
    api = Api(opened)
    assert api.get("/api/v1/fleet", begin=later - 86_400, end=later, buckets=12)["all"]["jobs"] == 0
    assert read == []
    assert api.get("/api/v1/fleet", begin=BEGIN, end=later, buckets=12)["all"]["jobs"] == 1
    assert read


@pytest.mark.parametrize(
    "chosen", [{}, {"group_by": "state"}, {"state": "succeeded"}, {"cluster": "c1"}, {"text": "gone"}]
)
def test_jobs_that_left_memory_are_read_a_few_at_a_time_and_come_when_one_asks_again(service, story, chosen):
    """Until none is missing; then all is as if one had waited, and the store is not asked again."""
    opened = service(now=NOW)
    for number in range(5):
        for body in story(f"gone-{number}").bodies().values():
            opened.ingest(body)
    opened.views(NOW)
    later = NOW + 8 * 86_400
    opened.clock = lambda: later
    for _ in range(2):
        opened.upkeep.close_jobs(later)
    passed_s = 0.0
    closed_job = opened.store.closed_job

    def slowly(name):
        nonlocal passed_s
        passed_s += 0.6
        return closed_job(name)

    opened.store.closed_job = slowly
    query = FleetQuery(begin=BEGIN + 20.0, end=BEGIN + 100.0, buckets=4, weight="job", **chosen)
    reads = FleetReads(opened, FleetSpans(opened, monotonic=lambda: passed_s), lambda: passed_s)
    answers = [reads.fleet(query)]
    while answers[-1].missing:
        answers.append(reads.fleet(query))
        assert len(answers) < 20
    before_s = passed_s
    assert answers[0].missing >= 3
    assert reads.fleet(query) == answers[-1]
    assert passed_s == before_s
    at_once = FleetReads(opened, FleetSpans(opened, monotonic=lambda: 0.0), lambda: 0.0)
    assert answers[-1] == at_once.fleet(query)
    assert answers[-1].all.jobs == 5


def test_without_prices_cost_is_refused_in_words(service):
    """Where no price is set there is no answer in money."""
    answer = Api(service()).ask("/api/v1/fleet", weight="cost")
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "weight: no prices of accelerators are set here (--price)",
    )


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/jobs/team/a", "/api/v1/fleet", "/api/v1/failures"])
def test_a_reader_who_has_the_answer_gets_none(api, path):
    """With the ETag of an answer that has not changed the answer is 304 without a body."""
    first = api.ask(path)
    again = api.ask(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert float(again.headers["x-ett-as-of"]) >= first.json()["as_of"]
    assert api.ask(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_an_answer_that_changed_has_another_tag(api, story):
    """One more event of a job changes the tags of what shows it."""
    before = {path: api.ask(path).headers["etag"] for path in ("/api/v1/jobs", "/api/v1/fleet")}
    for body in story("d").bodies().values():
        api.service.ingest(body)
    for path, tag in before.items():
        answer = api.ask(path, headers={"If-None-Match": tag})
        assert answer.status_code == 200
        assert answer.headers["etag"] != tag


def test_changes_name_what_changed_and_nothing_else(api, story):
    """From the beginning everything comes; then only jobs that were told something new."""
    first = api.get("/api/v1/changes")
    assert (first["is_all"], first["more"]) == (True, False)
    assert sorted(job["job_id"] for job in first["jobs"]) == ["b", "c", "team/a"]
    nothing = api.get("/api/v1/changes", since=first["cursor"])
    assert (nothing["jobs"], nothing["is_all"], nothing["cursor"]) == ([], False, first["cursor"])
    for body in story("b").bodies().values():
        api.service.ingest(body)
    then = api.get("/api/v1/changes", since=first["cursor"])
    assert [job["job_id"] for job in then["jobs"]] == ["b"]
    strange = api.get("/api/v1/changes", since="0000-17", limit=2)
    assert (strange["is_all"], strange["more"], len(strange["jobs"])) == (True, True, 2)
    rest = api.get("/api/v1/changes", since=strange["cursor"])
    assert (rest["is_all"], len(rest["jobs"])) == (False, 1)
    names = api.get("/api/v1/changes", since=first["cursor"], rows="false")
    assert (names["job_ids"], names["jobs"]) == (["b"], [])
    assert then["job_ids"] == ["b"]


def test_who_waits_for_changes_is_woken_by_them(api, story):
    """A waiting reader is answered as soon as something comes, and a lone one after its time."""
    cursor = api.get("/api/v1/changes")["cursor"]
    told = story("new")

    async def wait_and_send():
        transport = httpx.ASGITransport(api._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
            waiting = asyncio.create_task(
                client.get("/api/v1/changes", params={"since": cursor, "wait": 30}, timeout=60)
            )
            await asyncio.sleep(0.05)
            assert not waiting.done()
            for body in told.bodies().values():
                await client.post("/api/v1/segments", content=body)
            return (await asyncio.wait_for(waiting, 25)).json()  # sooner than it had waited

    answer = asyncio.run(wait_and_send())
    assert [job["job_id"] for job in answer["jobs"]] == ["new"]
    now = api.get("/api/v1/changes")["cursor"]
    assert api.get("/api/v1/changes", since=now, wait=0.05)["jobs"] == []


def test_a_reader_that_leaves_while_it_waits_takes_no_room_any_more(api):
    """Thousands that come and go would otherwise keep others from waiting, for a minute each."""
    cursor = api.get("/api/v1/changes")["cursor"]

    async def leave():
        left, sent = asyncio.Event(), []

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http", "method": "GET", "path": "/api/v1/changes", "headers": [], "root_path": "",
            "query_string": f"since={cursor}&wait=60".encode(),
        }  # fmt: skip
        asked = asyncio.create_task(api._app(scope, receive, send))
        await asyncio.sleep(0.05)
        assert not asked.done()
        left.set()
        await asyncio.wait_for(asked, 20)
        return sent

    assert asyncio.run(leave())[0]["status"] == 204


def test_a_state_that_time_alone_changes_is_a_change(service, story):
    """A running job that falls silent changes once its view is renewed, though nobody sent anything."""
    opened = service(now=NOW)
    for body in story("silent", ended=False).bodies().values():
        opened.ingest(body)
    before = opened.known(NOW).views[0].account.state
    cursor = opened.changes.since("", 10).cursor
    after = opened.known(NOW + 3 * 86_400).views[0].account.state
    assert before != after
    assert opened.changes.since(cursor, 10).job_ids == ["silent"]


@pytest.mark.parametrize(
    "path",
    ["failures", "nodes", "regressions", "runs", "families", "caches", "caches/runs", "intervals", "what-if"],
)
def test_after_a_start_no_question_about_many_jobs_waits_for_all_of_them(api, path):
    """Each says how many jobs it lacks; what-if looks at them twice."""
    jobs_are_slow(api)
    assert api.get(f"/api/v1/{path}")["missing"] == (1 if path == "what-if" else 2)


def jobs_are_slow(api):
    """Let each job take three seconds, by the clock of the roster, to make its view."""
    passed_s = 0.0
    for job in api.service.jobs.live():

        def slowly(now, make=job.view_at_once):
            nonlocal passed_s
            passed_s += 3.0
            return make(now)

        job.view_at_once = slowly
    api.service.roster._monotonic = lambda: passed_s


@pytest.mark.parametrize(
    ("path", "query"), [("/api/v1/fleet", {"purpose": ""}), ("/api/v1/jobs", {"limit": 1})]
)
def test_an_answer_says_how_many_jobs_it_lacks_that_nobody_has_read_yet(api, path, query):
    """After a start one waits for two seconds: what is there by then comes, and the others are counted."""
    jobs_are_slow(api)
    answers = [api.get(path, **query) for _ in range(3)]
    counts = [answer["total"] if "total" in answer else answer["all"]["jobs"] for answer in answers]
    missing = [answer["missing"] for answer in answers]
    assert (counts, missing) == ([1, 2, 3], [2, 1, 0])


def test_parts_of_a_day_are_filtered_from_the_sums_of_all_jobs(api):
    """Once they go on, a filter adds up the kinds of jobs that it means, as if it had read these jobs."""
    end = (NOW // 7200 + 1) * 7200
    day = {"begin": end - 86_400, "end": end, "buckets": 12}
    filters = (
        {}, {"cluster": "c1"}, {"cluster": "c1", "state": "succeeded"}, {"team": "nobody"}, {"purpose": ""},
        {"group_by": "cluster"}, {"group_by": "state", "weight": "cost"}, {"model": "dlrm-26"},
    )  # fmt: skip
    first = [api.get("/api/v1/fleet", **day, **each) for each in filters]
    again = [api.get("/api/v1/fleet", **day, **each) for each in filters]
    by_text = [api.get("/api/v1/fleet", **day, **each, text="dlrm") for each in filters]
    assert first == again == by_text


def test_a_restart_changes_no_part_of_a_day(api, service):
    """What was added up while jobs told it is what is added up of all of them after a start."""
    end = (NOW // 7200 + 1) * 7200
    day = {"begin": end - 86_400, "end": end, "buckets": 12, "group_by": "cluster"}
    before = api.get("/api/v1/fleet", **day)
    assert before["all"]["jobs"] == 3
    assert Api(service(now=NOW)).get("/api/v1/fleet", **day) == before


def test_health_tells_how_it_is(api):
    """Counts and readiness, of this process."""
    health = api.get("/api/v1/health")
    assert (health["jobs"], health["rejected_lines"], health["status"]) == (3, 0, "starting")
    api.service.upkeep.build()
    assert api.get("/api/v1/health")["status"] == "ready"
    assert (api.ask("/readyz").status_code, api.ask("/readyz").text) == (200, "ready")


def test_not_ready_is_told(service):
    """Before its jobs are folded the exporter lives, and is not ready."""
    api = Api(service())
    assert (api.ask("/healthz").status_code, api.ask("/readyz").status_code) == (200, 503)


def test_nothing_has_no_quantiles():
    """Of no durations there are none."""
    assert quantiles([]) == Quantiles(count=0, p50_s=None, p90_s=None, p99_s=None, max_s=None)


def test_answers_hold_no_numbers_that_json_lacks(api):
    """Neither NaN nor infinity."""
    for path in ("/api/v1/jobs", "/api/v1/fleet", "/api/v1/jobs/b"):
        json.loads(api.ask(path).content, parse_constant=pytest.fail)


def test_a_state_that_is_none_is_told_with_those_there_are(api):
    """An empty answer would look like a fleet without such jobs."""
    for path in ("jobs", "fleet", "failures"):
        answer = api.ask(f"/api/v1/{path}", state="training,banana")
        assert answer.status_code == 400
        assert "there is no state `banana`; there are succeeded, failed" in answer.text
        assert api.ask(f"/api/v1/{path}", state="training,").status_code == 200
