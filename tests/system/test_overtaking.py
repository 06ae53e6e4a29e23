"""A trainer stands still while its job is started again on another machine: overtaken, it learns it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

import pytest
from processes import free_address

from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore

pytestmark = pytest.mark.service("torch")

LIMIT_S = 600
RANK = """
import runpy, sys
from ett_trainer_hooks.pipeline import takes
name = sys.argv.pop(1)
takes.this_machine = lambda: takes.Machine(name, f"kernel of {name}")
runpy.run_module("ett_trainer_hooks.reference", run_name="__main__", alter_sys=True)
"""
"""A rank on a machine of that name."""
WORDS = ["--parts", "async_checkpoint,preemption", "--steps", "1000000", "--checkpoint-every-s", "0.2"]
WORDS += ["--batch-size", "64", "--rows", "500", "--agree-every", "1", "--no-compile"]


@pytest.fixture
def start(tmp_path):
    """Starts the only rank of the job on a machine of that name, which its journals' folder has, too."""
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
    started = []

    def run(name, attempt):
        port = free_address().partition(":")[2]
        rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        rank |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
        rank |= {"ETT_JOB_ID": "job", "ETT_ATTEMPT": str(attempt), "ETT_JOURNAL_DIR": str(tmp_path / name)}
        with (tmp_path / f"{name}.log").open("w") as log:
            words = [sys.executable, "-c", RANK, name, *WORDS, "--checkpoint-dir", str(tmp_path / "saves")]
            started.append(subprocess.Popen(words, env={**mine, **rank}, stdout=log, stderr=log))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def once(condition):
    """Wait until a condition holds."""
    deadline, pause = time.monotonic() + LIMIT_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.005)


def told(folder, kind):
    events = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    return [event for event in events if event["kind"] == kind]


def test_a_restart_on_another_machine_goes_on_at_once_and_the_earlier_one_publishes_no_more(start, tmp_path):
    root = tmp_path / "saves" / "committed"
    store = CheckpointStore(root)

    earlier = start("n1", 0)
    once(lambda: len(store.committed()) > 1 or earlier.poll() is not None)
    once(lambda: any(root.glob("step_*.partial")))
    earlier.send_signal(signal.SIGSTOP)

    known = max(each.sequence for each in store.committed())
    later = start("n2", 1000)
    while not (root.parent / "writer" / "take-2.json").exists():  # it stands still only now
        os.utime(root.parent / "writer" / "take-1.json")
        assert later.poll() is None
    once(lambda: max(each.sequence for each in store.committed()) > known)
    earlier.send_signal(signal.SIGCONT)
    assert earlier.wait(LIMIT_S) == 1
    later.send_signal(signal.SIGTERM)
    assert later.wait(LIMIT_S) == 128 + signal.SIGTERM

    assert "another process has taken over" in (tmp_path / "n1.log").read_text()
    assert f"process {later.pid} on n2, of job job, attempt 1000, since" in (tmp_path / "n1.log").read_text()
    said = (tmp_path / "n2.log").read_text()
    assert f"one that may still write checkpoints: process {earlier.pid} on n1, of job job, attempt 0" in said
    assert "this start waits" not in said
    [resumed] = {
        event["resumed_step"] for event in told(tmp_path / "n2", "phase_end") if event.get("resumed_step")
    }
    assert max(event["step"] for event in told(tmp_path / "n1", "checkpoint_durable")) <= resumed
    newest = store.newest_intact()
    assert newest.passed_over == ()
    assert newest.manifest.step == max(event["step"] for event in told(tmp_path / "n2", "checkpoint_durable"))
