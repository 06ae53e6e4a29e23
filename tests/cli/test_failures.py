"""`ett failures`: asks an exporter and says it in words."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from ett_cli.failure_report import report
from ett_cli.main import main

GROUP = {
    "key": "object_store", "count": 2, "jobs": 2, "count_ratio": 0.5, "lost_ratio": 0.75,
    "cumulative_ratio": 0.75, "lost_accelerator_s": 10_800.0,
}  # fmt: skip
ANSWERS = {
    "failures": {
        "total": 4, "lost_accelerator_s": 14_400.0, "cost": 12.5, "group_by": "failure_class",
        "groups": [GROUP, {**GROUP, "key": "", "lost_ratio": 0.25, "cumulative_ratio": 1.0,
                           "lost_accelerator_s": 3600.0}],
    },
    "nodes": {
        "nodes": [
            {"node": "n7", "suspect": True, "counted": 5, "node_hours": 1000.0, "expected": 0.16,
             "probability": 8.5e-06, "classes": {"gpu_ecc": 5}},
            {"node": "n8", "suspect": False},
        ]
    },
    "regressions": {
        "outbreaks": [
            {"failure_class": "object_store", "since": 1_764_000_000.0, "until": None, "jobs": 8,
             "owners": ["a", "b"], "factor": None, "probability": 1e-9}
        ],
        "components": [
            {"family": "", "figure": "start.model_init", "unit": "s", "since": 1_764_000_000.0,
             "before": 21.0, "after": 55.0, "factor": 2.6, "jobs_before": 21, "jobs_after": 19,
             "probability": 0.0001,
             "changed": [{"what": "torch", "before": ["2.12"], "after": ["2.13"]}]}
        ],
    },
}  # fmt: skip

HOSTILE = "<script>\x1b[2J\u202e\nNo failures in the last 7d.\t"


def hostile(answers):
    """The same answers, with words of jobs that are hostile, or endless."""
    if isinstance(answers, dict):
        return {name: hostile(each) for name, each in answers.items()}
    if isinstance(answers, list):
        return [hostile(each) for each in answers]
    return HOSTILE + "x" * 100_000 if answers in ("n7", "object_store", "torch", "") else answers


def test_jobs_that_the_exporter_has_not_read_yet_are_told_whichever_answer_lacks_them():
    """So that nobody takes what is there for all."""
    assert "still reading" not in report(ANSWERS, "7d")
    lacking = {**ANSWERS, "nodes": {**ANSWERS["nodes"], "missing": 12}}
    said = "Without 12 jobs: the exporter is still reading them; ask again in a minute."
    assert report(lacking, "7d").splitlines()[2] == said


def test_words_of_jobs_make_up_no_line_and_no_width():
    """Neither a terminal nor a reader takes them for the report's own."""
    text = report(hostile(ANSWERS), "7d")
    assert len(text.splitlines()) == len(report(ANSWERS, "7d").splitlines())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) < 400


TEXT = """\
Failures of the last 7d: 4, 4.0 accelerator-hours lost, 12.50 in money

By failure_class          failures   jobs     lost h    share  together
object_store                     2      2        3.0   75.0 %    75.0 %
(unknown)                        2      2        1.0   25.0 %   100.0 %

Suspect nodes
  n7: 5 in 1,000 h of use, 0.16 to be expected (probability 8.5e-06): gpu_ecc 5

Failures that struck many
  object_store since 2025-11-24 16:00 UTC and goes on: 8 jobs of 2 teams, \
never before (probability below 0.000001)

Slower in new runs
  start.model_init of all families since 2025-11-24 16:00 UTC: 21.0 s before, 55.0 s since \
(2.6 times; 19 jobs against 21, probability 0.0001)
    beside it torch: 2.12 before, 2.13 since"""


def test_the_report_reads_as_worked_by_hand():
    assert report(ANSWERS, "7d") == TEXT


def test_nothing_to_tell_is_told():
    nothing = {
        "failures": {"total": 0, "lost_accelerator_s": 0.0, "cost": None, "group_by": "domain", "groups": []},
        "nodes": {"nodes": []},
        "regressions": {"outbreaks": [], "components": []},
    }
    assert report(nothing, "24h") == "No failures in the last 24h."


@contextmanager
def serving(status, body):
    """A server that answers everything alike, and what it was asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body(urlsplit(self.path).path))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_it_asks_for_what_was_chosen_with_its_token(tmp_path, capsys):
    """Filters of failures go to failures alone, those of jobs everywhere; `--json` prints the answers."""
    token = tmp_path / "token"
    token.write_text("ett_secret")

    def body(path):
        return json.dumps(ANSWERS[path.rpartition("/")[2]]).encode()

    with serving(200, body) as (url, asked):
        words = ["--exporter", url, "--token-file", str(token), "--by", "node", "--window", "24h"]
        assert main(["failures", *words, "--team", "ads", "--domain", "platform", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == ANSWERS
    paths = {urlsplit(path).path: parse_qs(urlsplit(path).query) for path, _ in asked}
    assert paths == {
        "/api/v1/failures": {
            "team": ["ads"], "domain": ["platform"], "window": ["24h"], "group_by": ["node"],
            "order": ["lost"], "limit": ["1"],
        },
        "/api/v1/nodes": {"team": ["ads"], "window": ["24h"]},
        "/api/v1/regressions": {"team": ["ads"], "window": ["24h"]},
    }  # fmt: skip
    assert {header for _, header in asked} == {"Bearer ett_secret"}


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b'{"error": "this needs a token"}', "refused: this needs a token"),
        (500, b"[]", "refused: 500"),
        (200, b"<html>", "something else than JSON"),
    ],
)
def test_an_exporter_that_refuses_is_told_in_a_sentence(capsys, status, body, words):
    with serving(status, lambda _path: body) as (url, _):
        assert main(["failures", "--exporter", url]) == 1
    assert words in capsys.readouterr().err


def test_settings_that_make_no_sense_are_status_two(capsys):
    assert main(["failures", "--exporter", "ftp://x"]) == 2
    assert main(["failures", "--exporter", "http://127.0.0.1:1"]) == 1
    said = "nothing answers at http://127.0.0.1:1; 'ett exporter' starts an exporter, --exporter names one"
    assert capsys.readouterr().err.endswith(f"\nett failures: {said}\n")
