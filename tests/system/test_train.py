"""`ett train` for real: two ranks with every part, from a file, in few small steps."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from ett_trainer_hooks.pipeline.checkpoint.sole_writer import writer_here
from ett_trainer_hooks.procfs import process_of

pytestmark = pytest.mark.service("torch")

ETT = str(Path(sys.executable).with_name("ett"))
LIMIT_S = 600
TINY = """
[trainer]
steps = 10
batch_size = 64
rows = 500
agree_every = 5
backend = "aot_eager"
publish_to = "models"
"""


@pytest.fixture
def environ():
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")
    return {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}


def test_a_model_is_trained_with_every_part_under_the_launcher(tmp_path, environ):
    """Its journal tells of what the parts did, and the checkpoint lies where the job's name says."""
    (tmp_path / "tiny.toml").write_text(TINY)
    words = [
        "--config",
        "tiny.toml",
        "--job-id",
        "team/run",
        "--journal-dir",
        "journal",
        "--label",
        "team=ads",
    ]
    done = subprocess.run(
        [ETT, "train", *words],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "step 10 of 10: loss" in done.stdout
    lines = [
        line for path in (tmp_path / "journal").glob("*.jsonl") for line in path.read_text().splitlines()
    ]
    events = [json.loads(line) for line in lines]
    assert {event["job_id"] for event in events} == {"team/run", "team/run.publish-10"}
    assert {event["labels"]["team"] for event in events if event["kind"] == "attempt_start"} == {"ads"}
    told = {event["what"] for event in events if event["kind"] == "decision"}
    assert {"start stages", "the sharding plan is made anew", "fast batch"} <= told
    assert [event["step"] for event in events if event["kind"] == "checkpoint_durable"] == [10]
    assert [*(tmp_path / "runs/team_run/checkpoints").rglob("step_10")]
    assert [*(tmp_path / "runs/cache/plans").iterdir()]
    assert re.findall(r"^published: .*/models/step_10-[0-9a-f]{16}\.1$", done.stderr, re.MULTILINE)


def once(condition):
    """What a condition gives, once that is something."""
    deadline, pause = time.monotonic() + LIMIT_S, threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline
        pause.wait(0.1)
    return found


@pytest.mark.sweep
def test_ranks_that_outlive_their_launcher_are_not_joined_by_others(tmp_path, environ):
    """A second start says who writes there, and starts nothing; once they are gone there is nobody."""
    words = [ETT, "train", "--plain", "--ranks", "1", "--no-compile", "--batch-size", "64", "--rows", "500"]
    words += ["--steps", "1000000", "--job-id", "j", "--journal-dir", "journal"]
    out = subprocess.DEVNULL
    first = subprocess.Popen(words, cwd=tmp_path, env=environ, stdout=out, stderr=out)
    checkpoints, left = tmp_path / "runs" / "j" / "checkpoints", []
    try:
        rank = once(lambda: writer_here(checkpoints)).pid
        left = [process_of(rank).parent, rank]
        first.kill()
        first.wait()
        second = subprocess.run(
            words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert second.returncode == 1
        told = f"ett train: another start writes to runs/j/checkpoints: process {rank} on "
        assert second.stderr.startswith(told), second.stderr
        assert writer_here(checkpoints).pid == rank
    finally:
        first.kill()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    once(lambda: writer_here(checkpoints) is None)
