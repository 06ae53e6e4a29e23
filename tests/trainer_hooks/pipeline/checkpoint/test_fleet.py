import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest
from exporters import ETT, running

from ett_core.interval_choice import Before
from ett_exporter.lever_types import IntervalRow, Intervals
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.pipeline.checkpoint.fleet import asked, before_for, jobs_seen, learn_from_fleet
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy

SUPPOSED = Before(rate_per_s=1e-6)
NUMBERS = {int: 0, float: 0.0, bool: False, str: ""}


def row(job_id, failures=30, accelerators=8):
    """A job as the exporter tells it: a hundred hours."""
    fields = {field.name: NUMBERS.get(field.type) for field in msgspec.structs.fields(IntervalRow)}
    known = {"job_id": job_id, "failures": failures, "accelerators": accelerators, "loop_s": 360_000.0}
    return IntervalRow(**fields | known)


def answer(*rows):
    return msgspec.json.encode(Intervals(as_of=0.0, jobs=rows, total=len(rows), next_offset=None))


def me(accelerators=16):
    return Identity(job_id="me", writer="w", accelerators=accelerators)


@pytest.fixture
def server():
    """Answers every GET with `(status, body)`; `asked` are the paths and tokens that it was asked with."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            said.append((self.path, self.headers.get("Authorization")))
            status, body = answers[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            return

    said, answers = [], [(200, answer(row("a")))]
    listening = HTTPServer(("127.0.0.1", 0), Handler)
    listening.said, listening.answers = said, answers
    listening.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield listening
    listening.shutdown()
    listening.server_close()
    thread.join()


def test_what_the_exporter_tells_of_other_jobs_is_understood():
    seen = jobs_seen(answer(row("me"), row("a", failures=2), row("b", accelerators=64)), but="me")
    assert [(job.failures, job.train_s, job.accelerators) for job in seen] == [
        (2, 360_000.0, 8),
        (30, 360_000.0, 64),
    ]


def test_jobs_of_a_like_size_are_the_start_of_this_one():
    before = before_for(me(), answer(row("a"), row("b", accelerators=512)), SUPPOSED)
    assert before.source == "of 1 job of a like size"
    assert 1 / before.rate_per_s == pytest.approx(360_000 / 30, rel=0.1)
    assert before_for(me(), answer(), SUPPOSED) is SUPPOSED


def test_a_job_that_names_no_accelerators_is_as_large_as_its_ranks():
    small = Identity(job_id="me", writer="w", world_size=8)
    assert before_for(small, answer(row("a")), SUPPOSED).source == "of 1 job of a like size"


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"jobs": [{"job_id": 3}]}'])
def test_what_is_no_answer_is_refused(body):
    with pytest.raises(ValueError, match="not that of an exporter"):
        jobs_seen(body, but="")


def test_the_exporter_is_asked_with_the_token(server):
    assert asked(server.url + "/proxied/", lambda: "ett_x") == server.answers[0][1]
    assert server.said == [("/proxied/api/v1/intervals?limit=300", "Bearer ett_x")]


@pytest.mark.parametrize("url", ["127.0.0.1:9410", "ftp://127.0.0.1"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match="such as http://"):
        asked(url, lambda: "")


def test_the_policy_learns_and_tells_whence(bench, hands, server):
    made = bench()
    policy = CheckpointPolicy(made.recorder, before=SUPPOSED, clock=lambda: hands.now_s)
    made.recorder.identity = me()
    learn_from_fleet(policy, made.recorder, SUPPOSED, exporter_url=server.url, token=lambda: "").join()
    policy.begin()
    with policy.saving(1):
        hands.move(5)
    assert "of 1 job of a like size" in made.of("decision")[-1].why


@pytest.mark.parametrize("status", [401, 302, 500])
def test_without_an_answer_a_reason_is_told_and_the_policy_stays(bench, server, status):
    made = bench()
    policy = CheckpointPolicy(made.recorder, before=SUPPOSED)
    server.answers[0] = (status, b"no")
    learn_from_fleet(policy, made.recorder, SUPPOSED, exporter_url=server.url, token=lambda: "").join()
    [told] = made.of("decision")
    assert told.why.startswith(f"{server.url}: status {status} ")


def test_a_real_exporter_is_understood(tmp_path):
    """Its jobs come from a simulated fleet; those of a like size count, with their failures and seconds."""
    with running("--database", str(tmp_path / "ett.sqlite")) as exporter:
        fleet = ["--scenario", "failures", "--jobs", "12", "--days", "1", "--report-s", "300"]
        subprocess.run([ETT, "simulate", *fleet, "--exporter", exporter.url], check=True, capture_output=True)
        body = asked(exporter.url, lambda: "")
    jobs = jobs_seen(body, but="me")
    alike = [job for job in jobs if 4 <= job.accelerators <= 64]
    failures, seconds = sum(job.failures for job in alike), sum(job.train_s for job in alike)
    assert len(jobs) > len(alike) > 1
    assert failures > 3
    before = before_for(me(accelerators=16), body, SUPPOSED)
    assert before.source == f"of {len(alike)} jobs of a like size"
    assert before.rate_per_s == pytest.approx(failures / seconds, rel=0.5)
