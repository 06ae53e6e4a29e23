"""Advice that is followed: real recompiles, what trace and journal advise, the same program again with it."""

import json
import os
import subprocess
import sys

import pytest

from ett_cli.main import main

TIMEOUT_S = 600

PROGRAM = """
import json, os
from ett_trainer_hooks import Recorder

from ett_trainer_hooks.pipeline import dynamic_sources

recorder = Recorder.from_env()
learnt = dynamic_sources.leave_open(recorder)
import torch
import torch._dynamo.testing

class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x, n):
        return x * n + self.scale.sum()

def features(batch):
    return batch["user-id"].sum() + batch["item, hashed"].sum()

def pair(left, right):
    return left @ right

ones, scaled, bare = torch.ones, Scaled(), torch.nn.Sequential(torch.nn.ReLU())
counts = {name: torch._dynamo.testing.CompileCounter() for name in ("scaled", "bare", "features", "pair")}
calls = {
    name: torch.compile(called, backend=counts[name])
    for name, called in {"scaled": scaled, "bare": bare, "features": features, "pair": pair}.items()
}
for size in (64, 65, 1, 66):
    scaled.scale = ones(size)
    calls["scaled"](ones(8, 4), size)
    calls["bare"](ones(size, 4))
    calls["features"]({"user-id": ones(size), "item, hashed": ones(size + 7)})
    calls["pair"](ones(size, 4), ones(4, size + 2))
recorder.close()
made = {name: count.frame_count for name, count in counts.items()}
print(json.dumps({"learnt": learnt and os.environ["TORCH_COMPILE_DYNAMIC_SOURCES"], "graphs": made}))
"""

pytestmark = pytest.mark.service("torch")


def ran(folder, **environ):
    path = folder / "program.py"
    path.write_text(PROGRAM)
    made = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), **environ},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def advice(capsys, place):
    assert main(["advise", "dynamic", str(place), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_with_the_advice_there_are_as_many_graphs_as_were_said(tmp_path, capsys):
    """Buffers, arguments, whole numbers, keys that no regular expression may hold, and a size of one.

    The journal of the job tells the same as a trace of torch's, and the next start of the job takes it
    from there.
    """
    trace, journal = tmp_path / "trace", tmp_path / "journal"
    job = {"ETT_JOB_ID": "j", "ETT_JOURNAL_DIR": str(journal)}
    before = ran(tmp_path, TORCH_TRACE=str(trace), **job)
    assert before["learnt"] is False
    told = advice(capsys, trace)
    assert told["graphs"] == sum(before["graphs"].values())
    assert told["counted"]
    assert advice(capsys, journal) == told

    after = ran(tmp_path, **job)
    assert after["learnt"] == told["value"]
    assert sum(after["graphs"].values()) == told["expected_graphs"] < told["graphs"]
    assert sorted(frame["expected_graphs"] for frame in told["frames"]) == sorted(after["graphs"].values())
