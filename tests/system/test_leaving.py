"""A job that is told to go: it leaves with a save, loses nothing, and goes on from there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.service("torch")

ETT = str(Path(sys.executable).with_name("ett"))
LIMIT_S = 180
LONG_S = 0.5
"""Between the save and the last word no step is trained, and no time to speak of passes."""
TRAIN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
TRAIN += ["--rdzv-endpoint", "127.0.0.1:0", "-m", "ett_trainer_hooks.reference", "--parts", "preemption"]
TRAIN += ["--batch-size", "64", "--rows", "500", "--agree-every", "5", "--no-compile"]


@pytest.fixture(autouse=True)
def torchrec_is_here():
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")


@pytest.fixture
def start(tmp_path):
    """Starts the job under the launcher; its journals, output and checkpoints lie in `tmp_path`."""
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
    started = []

    def run(steps):
        words = ["run", "--job-id", "job", "--journal-dir", str(tmp_path / "journal"), "--grace", "120", "--"]
        words += [*TRAIN, "--checkpoint-dir", str(tmp_path / "checkpoints"), "--steps", str(steps)]
        job = subprocess.Popen(
            [ETT, *words],
            env={**mine, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(job)
        return job

    yield run
    for job in started:
        job.kill()
        job.communicate()


def test_a_job_that_gets_sigterm_leaves_with_a_save_and_goes_on_from_there(start, tmp_path):
    job = start(1_000_000)
    told = iter(job.stdout.readline, "")
    for line in told:
        if line.startswith("step 20 "):
            job.send_signal(signal.SIGTERM)
            break
    out, _ = job.communicate(timeout=LIMIT_S)
    last = int(re.findall(r"step (\d+) of", out)[-1])
    assert job.returncode == 1, out[-3000:]  # as torchrun ends after a signal

    account = accounted(tmp_path)
    assert account["state"] == "preempted"
    assert account["components"].get("unsaved_training", 0.0) < LONG_S
    assert account["last_durable_step"] == account["step"] == last
    assert "told to go: saves and leaves" in decisions(tmp_path)

    again = start(last + 5)
    out, _ = again.communicate(timeout=LIMIT_S)
    assert again.returncode == 0, out[-3000:]
    assert re.findall(r"step (\d+) of", out) == [str(last + 5)]
    account = accounted(tmp_path)
    assert account["state"] == "succeeded"
    assert account["components"].get("unsaved_training", 0.0) < LONG_S


def accounted(folder):
    words = [ETT, "account", str(folder / "journal"), "--json"]
    [job] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["jobs"]
    return job


def decisions(folder):
    lines = [line for path in (folder / "journal").glob("*.jsonl") for line in path.read_text().splitlines()]
    return [event["what"] for event in map(json.loads, lines) if event["kind"] == "decision"]
