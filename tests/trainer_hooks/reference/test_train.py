"""The reference trainer for real: two ranks under torchrun; the compiler makes no code, to be quick."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.service("torch")

LIMIT_S = 180


@pytest.fixture(autouse=True)
def torchrec_is_here():
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")


def train(folder, steps, pipeline="none", parts="", cache="", **environment):
    """Losses by step, as rank 0 prints them."""
    ranks = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    size = ["--batch-size", "128", "--rows", "1000", "--agree-every", "5", "--backend", "aot_eager"]
    words = ["-m", "ett_trainer_hooks.reference", "--steps", str(steps), *size]
    words += ["--checkpoint-dir", str(folder / "checkpoints"), "--pipeline", pipeline, "--parts", parts]
    words += ["--cache", cache]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *ranks, *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {
        int(step): float(loss) for step, loss in re.findall(r"step (\d+) of \d+: loss ([\d.]+)", done.stdout)
    }


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    """Weights, optimiser state and data order survive, whatever was read ahead or started side by side."""
    whole = train(tmp_path / "whole", 30)
    kept = {"cache": str(tmp_path / "cache")}
    first = train(tmp_path / "parts", 15, pipeline="sparse_dist", parts="stored_plan", **kept)
    rest = train(tmp_path / "parts", 30, parts="stages,stored_plan,local_metadata", **kept)
    assert len([*tmp_path.glob("cache/plans/*")]) == 1
    assert [*first, *rest] == [*whole] == [5, 10, 15, 20, 25, 30]
    assert {**first, **rest} == pytest.approx(whole, abs=1e-4)
    assert whole[30] < whole[5]


def test_the_journal_tells_phases_steps_and_durable_checkpoints(tmp_path):
    """Every rank writes its own journal; the steps add up; rank 0 says what is durable."""
    train(
        tmp_path,
        10,
        pipeline="sparse_dist",
        parts="stages,fast_batch",
        ETT_JOB_ID="reference",
        ETT_JOURNAL_DIR=str(tmp_path / "journal"),
    )
    files = [path.read_text().splitlines() for path in (tmp_path / "journal").glob("*.jsonl")]
    assert len(files) == 2
    events = [json.loads(line) for lines in files for line in lines]
    started = {event["phase"] for event in events if event["kind"] == "phase_begin"}
    assert started >= {"device_init", "process_group", "preproc_creation", "model_init", "sharding_plan"}
    assert started >= {"checkpoint_load", "data_warmup", "checkpoint"}
    for rank in (0, 1):
        steps = [e["steps"] for e in events if e["kind"] == "progress" and e["rank"] == rank]
        assert sum(steps) == 10
    became = [e["why"] for e in events if e["kind"] == "decision" and e["what"] == "fast batch"]
    assert became == ["used: the first step compiled nothing"] * 2
    paths = [e["why"] for e in events if e["kind"] == "decision" and e["what"] == "start stages"]
    assert [path.startswith("critical path: imports, ") for path in paths] == [True, True]
    durable = [(e["rank"], e["step"]) for e in events if e["kind"] == "checkpoint_durable"]
    assert durable == [(0, 10)]
    assert [e["status"] for e in events if e["kind"] == "attempt_end"] == ["succeeded", "succeeded"]
