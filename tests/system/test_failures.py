"""Failures through the whole chain: `ett run`, journal, shipping, store, API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from ett_core.events import encode
from ett_exporter.store import Store

ETT = str(Path(sys.executable).with_name("ett"))
MARK = "hunter2hunter2"
PROGRAM = f"""
import os, sys
print("Error: login with password={MARK} failed", file=sys.stderr)
print("Error: GET https://me:{MARK}@host/x?access_token={MARK}&page=1", file=sys.stderr)
print("Exception: Authorization: Bearer {MARK}{MARK}", file=sys.stderr)
print("Error: \\x1b[31mred\\x1b[0m hf_{MARK}{MARK} \\u202etxet\\x00", file=sys.stderr)
print("Error: value of the environment:", os.environ["MY_API_KEY"], file=sys.stderr)
raise RuntimeError("upload refused: aws_secret_access_key = {MARK}, ghp_{MARK}{MARK}")
"""


class Chain(NamedTuple):
    """What a job that failed three times left behind in each place."""

    journals: str
    answers: dict[str, dict]
    stored: str
    spoken: str
    report: str


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    place = tmp_path_factory.mktemp("chain")
    database, journals = place / "ett.sqlite", place / "journal"
    program = place / "train.py"
    program.write_text(PROGRAM)
    command = [ETT, "exporter", "--port", "0", "--database", str(database)]
    exporter = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert exporter.stdout is not None
        url = exporter.stdout.readline().split()[3]
        words = ["--job-id", "leaky/1", "--exporter", url, "--journal-dir", str(journals), "--drain", "30"]
        words += ["--max-restarts", "2", "--restart-delay", "0", "--label", "team=ads"]
        done = subprocess.run(
            [ETT, "run", *words, "--", sys.executable, str(program)],
            env={**os.environ, "MY_API_KEY": f"{MARK}-of-the-environment"},
            capture_output=True, text=True, check=False, timeout=600, errors="replace",
        )  # fmt: skip
        assert done.returncode == 1
        paths = ("jobs", "jobs/leaky/1", "jobs/leaky/1/failures", "failures?group_by=failure_class", "nodes",
                 "failures/leaky/1~0", "regressions")  # fmt: skip
        answers = {path: httpx.get(f"{url}/api/v1/{path}", timeout=30.0).json() for path in paths}
        asked = subprocess.run(
            [ETT, "failures", "--exporter", url], capture_output=True, text=True, check=True
        )
        metrics = httpx.get(f"{url}/metrics", timeout=30.0).text
    finally:
        exporter.terminate()
        exporter.communicate(timeout=120)
    store = Store(str(database))
    stored = b"\n".join(encode(event) for part in store.events("leaky/1") for event in part).decode()
    store.close()
    written = "\n".join(path.read_text() for path in sorted(journals.rglob("*.jsonl")))
    return Chain(written, answers, stored + metrics, done.stderr, asked.stdout)


def test_planted_secrets_reach_neither_journal_nor_store_nor_reader(chain):
    """The program printed them; nothing that is kept or answered holds any, and the lines are there still."""
    assert chain.spoken.count(MARK) > 10
    assert MARK not in chain.report
    for kept in (chain.journals, chain.stored, json.dumps(chain.answers)):
        assert MARK not in kept
        assert "upload refused: aws_secret_access_key = ***" in kept


def test_what_a_terminal_obeys_reaches_no_reader(chain):
    answers = json.dumps(chain.answers)
    assert not [code for code in ("\\u001b", "\\u0000", "\\u202e") if code in answers]
    assert "Error: red" in answers


def test_a_job_that_fails_the_same_way_again_is_a_crash_loop(chain):
    """Three attempts that never trained: counted, with advice to stop, over HTTP."""
    listed = chain.answers["failures?group_by=failure_class"]
    assert [failure["recurrence"]["count"] for failure in listed["failures"]] == [3, 2, 1]
    last = listed["failures"][0]
    assert (last["recurrence"]["crash_loop"], last["retry"], last["ending"]) == (True, "stop", "failed")
    assert [group["key"] for group in listed["groups"]] == [last["diagnosis"]["failure_class"]]
    assert chain.answers["failures/leaky/1~0"]["recurrence"]["count"] == 1


def test_ett_failures_reports_them(chain):
    """The command asks a real exporter and groups what it lost."""
    assert chain.report.startswith("Failures of the last 7d: 3, ")
    name = chain.answers["failures?group_by=failure_class"]["groups"][0]["key"]
    assert f"\n{name} " in chain.report
