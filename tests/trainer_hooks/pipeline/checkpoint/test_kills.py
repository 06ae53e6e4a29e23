"""Ranks are killed while they save: what was published is there, whole, of one step, and is gone on from."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.service("torch")

PROGRAM = Path(__file__).with_name("programs") / "kills.py"
FULL = os.environ.get("ETT_FULL") == "1"
MODES = ("sync", "async_thread", "async_process", "nodes")
KINDS = [(mode, ranks, 100) for mode in MODES for ranks in (1, 2)]
SAMPLE = [("sync", 2, 2), ("async_thread", 2, 2), ("async_process", 2, 1)]


@pytest.mark.parametrize(("mode", "ranks", "kills"), KINDS if FULL else SAMPLE)
def test_what_was_published_before_a_kill_is_whole_after_it(mode, ranks, kills, tmp_path):
    """Each run resumes from what the kill before has left; `ETT_FULL=1` kills each kind 100 times."""
    command = [sys.executable, PROGRAM, tmp_path, "seed", str(kills), mode, str(ranks)]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}
    environ = {**kept, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert len(outcomes) == kills
    for outcome in outcomes:
        assert outcome["checked"], done.stderr[-3000:]
        assert outcome["passed_over"] == []
        published = outcome["published"].removeprefix("step_").partition("-")[0]
        assert outcome["found"] >= int(published or 0)  # nothing, where the kill came while it was written
    steps = [outcome["found"] for outcome in outcomes]
    assert steps == sorted(set(steps))
