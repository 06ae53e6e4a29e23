"""Checkpoints on a disk that fills up, then may not be written to: the job trains on, the exporter counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import httpx
import pytest
from exporters import ETT, running

pytestmark = pytest.mark.service("torch")

LIMIT_S = 600
NO_DISK = 99
PROGRAM = """
import subprocess, sys
from pathlib import Path

import torch

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore

disk, filler = Path(sys.argv[1]), Path(sys.argv[1]) / "filler"
recorder = Recorder.from_env()
model = torch.nn.Linear(100, 100)
keeper = Checkpointer(CheckpointStore(disk / "checkpoints"), recorder)

def fill():
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass

def lock():
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)

changes = {20: fill, 40: filler.unlink, 50: lock}
for _ in recorder.batches(range(60), samples=1):
    step = recorder.step + 1
    if step % 10 == 0:
        changes.get(step, lambda: None)()
        keeper.save(step, {"model": model.state_dict()})
        keeper.wait()
keeper.close()
recorder.close()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the exporter says of the job: metrics, checkpoints; and the events of those that failed."""
    place = tmp_path_factory.mktemp("alarm")
    (disk := place / "disk").mkdir()
    (program := place / "train.py").write_text(PROGRAM)
    inside = f"mount -t tmpfs -o size=300k none {disk} || exit {NO_DISK}; "
    inside += f"exec {sys.executable} {program} {disk}"
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    with running("--database", str(place / "ett.sqlite")) as exporter:
        words = ["--job-id", "job", "--exporter", exporter.url, "--journal-dir", str(place / "journal")]
        done = subprocess.run(
            [ETT, "run", *words, "--drain", "60", "--", "unshare", "--mount", *own, "bash", "-c", inside],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip
        if done.returncode == NO_DISK or "unshare:" in done.stderr:
            pytest.skip(f"no disk of one's own here: {done.stderr}")
        assert done.returncode == 0, done.stderr
        metrics = httpx.get(f"{exporter.url}/metrics", timeout=30.0).text
        checkpoints = httpx.get(f"{exporter.url}/api/v1/jobs/job/checkpoints", timeout=30.0).json()
    lines = [line for path in (place / "journal").rglob("*.jsonl") for line in path.read_text().splitlines()]
    failed = [each for each in map(json.loads, lines) if each["kind"] == "checkpoint_failed"]
    return metrics, checkpoints, failed


def test_saves_that_fail_are_counted_and_the_training_goes_on(told):
    """Two find the disk full, two may not write; the one between them is whole."""
    metrics, checkpoints, _ = told
    sample = dict(line.rsplit(" ", 1) for line in metrics.splitlines())
    assert sample['ett_job_checkpoint_failures_total{job_id="job"}'] == "4"
    assert sample['ett_job_step{job_id="job"}'] == "60"
    assert sample['ett_job_state{job_id="job",state="succeeded"}'] == "1"
    became = {each["step"]: "failed" if each["failed"] else "durable" for each in checkpoints["checkpoints"]}
    assert became == dict.fromkeys((20, 30, 50, 60), "failed") | dict.fromkeys((10, 40), "durable")
    assert checkpoints["last_durable_step"] == 40


def test_the_reason_names_what_is_wrong_with_the_disk(told):
    """It is what a person reads who is woken by the alert."""
    *_, failed = told
    full, locked = "[Errno 28] No space left on device: ", "[Errno 30] Read-only file system: "
    for event, why in zip(failed, (full, full, locked, locked), strict=True):
        assert event["message"].startswith(f"CheckpointException: rank 0: OSError: {why}")
        assert f"/disk/checkpoints/step_{event['step']}." in event["message"]
