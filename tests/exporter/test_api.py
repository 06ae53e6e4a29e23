"""The HTTP interface of a running exporter, asked by a real client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gzip
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from ett_core.components import AREAS, COMPONENTS
from ett_exporter.api import make_app
from ett_exporter.errors import StoreError

JOB_KEYS = {
    "job_id", "job_name", "team", "model", "cluster", "scheduler", "purpose", "accelerator_type",
    "accelerators", "world_size", "state", "state_since", "finished", "start", "end", "wall_s",
    "components", "groups", "ett_percent", "tts_s", "ttr_s", "failures", "infra_failures", "attempts",
    "attempt", "step", "samples",
    "last_progress_at", "last_event_at", "unsaved_exposure_s", "checkpoint_blocking_s",
    "checkpoint_count", "last_durable_at", "last_durable_step", "caches",
}  # fmt: skip
PAGE_KEYS = JOB_KEYS | {
    "stalls",
    "stragglers",
    "step_spread",
    "async_saves",
    "step_times",
    "throughput",
    "ett_percent_within",
    "as_of", "attempt_list", "failure_list", "timeline", "checkpoints", "compile", "hidden", "counters",
    "versions", "labels", "config_hash", "nodes", "areas", "resume_evidence", "not_saved",
}  # fmt: skip


def one_body(story, job_id):
    return max(story(job_id).bodies().values(), key=len)


def test_a_job_reads_as_it_happened(exporter, story):
    """Times, counts and causes of a job that lost a rank are those of its events."""
    exporter.tell(story("team/ads:1"))
    job = exporter.job("team/ads:1")
    assert (job["state"], job["finished"], job["wall_s"]) == ("succeeded", True, 142.0)
    assert sum(job["components"].values()) == pytest.approx(142.0, abs=1e-6)
    assert (job["tts_s"], job["ttr_s"]) == (20.0, [29.0])
    assert job["components"]["unsaved_training"] == pytest.approx(job["failure_list"][0]["unsaved_s"])
    assert job["unsaved_exposure_s"] == 0
    assert (job["failures"], job["attempts"], job["attempt"], job["step"]) == (1, 2, 1, 70)
    assert job["samples"] == 2 * 9 * 80 == pytest.approx(sum(job["throughput"]["samples"]))
    assert (job["checkpoint_count"], job["checkpoint_blocking_s"]) == (4, 4 * 0.5)
    assert (job["last_durable_at"], job["last_durable_step"]) == (1_764_000_132.0, 60)
    assert job["caches"] == {"fx_graph": {"hits": 12, "misses": 8, "bypasses": 0}}
    assert job["compile"] == {"backend": 6.0, "native": 8.0}
    assert job["failure_list"][0]["cause"] == "rank 1 was killed by SIGKILL (sender unknown)"
    assert [line["source"] for line in job["failure_list"][0]["evidence"]] == ["failure", "elastic"]
    assert job["versions"] == {"torch": "2.13.0"}
    assert job["nodes"] == {"0": "n0", "1": "n1"}


def test_the_keys_of_the_answers_are_frozen(exporter, story):
    """Rows and pages have exactly the documented keys."""
    exporter.tell(story("keys"))
    listing = exporter.http.get("/api/v1/jobs").json()
    assert set(listing) == {"as_of", "jobs", "total", "next_offset", "together", "missing"}
    assert {frozenset(job) for job in listing["jobs"]} == {frozenset(JOB_KEYS)}
    page = exporter.job("keys")
    assert set(page) == PAGE_KEYS
    assert set(page["timeline"][0]) == {"start", "end", "attempt", "components"}
    assert set(page["areas"]) <= set(AREAS)
    assert set(page["components"]) <= set(COMPONENTS)


def test_a_part_of_the_timeline_can_be_asked_for(exporter, story):
    """Stretches between two moments add up to the time between them."""
    exporter.tell(story("cut"))
    begin, end = 1_764_000_030.0, 1_764_000_060.0
    page = exporter.http.get("/api/v1/jobs/cut", params={"begin": begin, "end": end}).json()
    assert sum(sum(s["components"].values()) for s in page["timeline"]) == pytest.approx(end - begin)
    assert exporter.http.get("/api/v1/jobs/cut?begin=soon").status_code == 400
    assert exporter.http.get("/api/v1/jobs/cut?end=nan").status_code == 400


def test_the_answer_to_a_segment_counts_its_lines(exporter, story):
    """Good, repeated and bad lines are told apart; gzip is understood."""
    body = one_body(story, "counted")
    lines = body.count(b"\n")
    first = exporter.send(gzip.compress(body + b"{}\n"), **{"Content-Encoding": "gzip"})
    assert first.status_code == 200
    assert (first.json()["accepted"], first.json()["duplicates"]) == (lines, 0)
    assert [r["line"] for r in first.json()["rejected"]] == [lines + 1]
    again = exporter.send(body).json()
    assert (again["accepted"], again["duplicates"], again["rejected"]) == (0, lines, [])


def test_concurrent_repeats_count_once(exporter, story):
    """The same segments from many senders at once are each accepted exactly once in sum."""
    bodies = list(story("crowd").bodies().values()) * 6
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [answer.json() for answer in pool.map(exporter.send, bodies)]
    assert sum(a["accepted"] for a in answers) == len(story("crowd").events)
    assert exporter.job("crowd")["samples"] == 2 * 9 * 80


REFUSALS = {
    "too large": (b"x" * (8 * 1024 * 1024 + 1), {}, 413),
    "gzip bomb": (gzip.compress(b" " * (64 * 1024 * 1024 + 1)), {"Content-Encoding": "gzip"}, 413),
    "too many lines": (b"\n" * 20_001, {}, 413),
    "no gzip": (b"hello", {"Content-Encoding": "gzip"}, 400),
    "half a gzip": (gzip.compress(b"hello")[:-4], {"Content-Encoding": "gzip"}, 400),
    "unknown encoding": (b"", {"Content-Encoding": "br"}, 415),
}


@pytest.mark.parametrize(("body", "headers", "status"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_is_refused_is_refused_in_words(exporter, story, body, headers, status):
    """A refusal has its status and a JSON reason, is counted, and other jobs go on."""
    answer = exporter.send(body, **headers)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert exporter.send(one_body(story, f"after-{status}")).status_code == 200


@pytest.mark.parametrize("sent_at", ["1", "soon", "nan", "-1e400", "3999999999", ""])
def test_no_time_is_refused(exporter, story, sent_at):
    """Whatever a sender's clock says, its segment is taken in and all answers stay whole."""
    body = one_body(story, f"clock-{sent_at.strip('-') or 'none'}")
    assert exporter.send(body, **{"X-Ett-Sent-At": sent_at}).status_code == 200
    assert exporter.http.get("/api/v1/jobs").status_code == 200
    assert exporter.http.get("/metrics").status_code == 200


def test_garbage_is_answered_and_hurts_nobody(exporter):
    """Bytes that are no events are rejected line by line with status 200 and leave no job."""
    before = {job["job_id"] for job in exporter.http.get("/api/v1/jobs").json()["jobs"]}
    answer = exporter.send(bytes(range(256)) * 50 + b"\n" + b"{" * 10_000)
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 0
    assert answer.json()["rejected_total"] == len(answer.json()["rejected"]) > 0
    assert {job["job_id"] for job in exporter.http.get("/api/v1/jobs").json()["jobs"]} == before


def test_a_sender_that_leaves_in_the_middle_hurts_nobody(exporter):
    """A connection that breaks off inside a body leaves the exporter answering."""
    where = urlsplit(exporter.url)
    with socket.create_connection((where.hostname, where.port)) as connection:
        connection.sendall(b"POST /api/v1/segments HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert exporter.http.get("/healthz").text == "ok"


def test_unknown_things_are_answered_in_json(exporter):
    """An unknown job, path or method has its status and a JSON reason."""
    assert exporter.http.get("/api/v1/jobs/none/such").status_code == 404
    nowhere = exporter.http.get("/nowhere")
    assert nowhere.status_code == 404
    assert nowhere.json() == {"error": "There is nothing at '/nowhere' here; / says what there is."}
    wrong = exporter.http.get("/api/v1/segments")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json() == {"error": "'/api/v1/segments' takes POST, not GET."}


def test_the_front_page_says_what_there_is(exporter):
    """`/` is a short text, and every address in it answers."""
    front = exporter.http.get("/")
    assert (front.status_code, front.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert len(front.text.splitlines()) < 10
    for path in ("/metrics", "/api/v1/jobs", "/api/v1/docs", "/healthz"):
        assert f"  {path} " in front.text
        assert exporter.http.get(path).status_code == 200


def test_health_is_told(exporter):
    """`/healthz` answers `ok`."""
    answer: httpx.Response = exporter.http.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok")


def test_every_key_stands_in_the_documents():
    """docs/api.md names each key of the answers."""
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    assert {
        key for key in PAGE_KEYS | {"as_of", "jobs"} if f"`{key}`" not in text and f'"{key}"' not in text
    } == set()


def test_a_store_that_cannot_be_read_is_a_clear_answer(service):
    """Reading fails while a job is shown: the answer is 503 with the reason, not a bare error."""
    opened = service()

    def broken(*_arguments):
        raise StoreError("cannot read the database: disk I/O error")

    opened.page = broken

    async def ask():
        transport = httpx.ASGITransport(make_app(opened))
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
            return await client.get("/api/v1/jobs/a")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()) == (503, {"error": "cannot read the database: disk I/O error"})


def test_a_store_that_takes_nothing_is_told_in_the_log_once(service, story, caplog):
    """However many segments are refused meanwhile; each sender has the reason and when to come again."""
    opened = service()
    (body, *_) = story("a").bodies().values()

    def full(*_arguments):
        raise StoreError("cannot write to the database: database or disk is full")

    async def send():
        transport = httpx.ASGITransport(make_app(opened))
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
            append, opened.store.append_all = opened.store.append_all, full
            refused = [await client.post("/api/v1/segments", content=body) for _ in range(20)]
            opened.store.append_all = append
            return refused, await client.post("/api/v1/segments", content=body)

    refused, taken = asyncio.run(send())
    assert {answer.status_code for answer in refused} == {503}
    assert all(answer.headers["retry-after"] for answer in refused)
    assert taken.json()["accepted"] == body.count(b"\n")
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("segments are refused, their senders try again: cannot write to the database")
