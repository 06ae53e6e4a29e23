"""The reference trainer in standbys: the start after a kill learns what an uninterrupted run learns."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from ett_trainer_hooks.reference.settings import parse
from ett_trainer_hooks.reference.standing_by import ask

SIZE = ["--batch-size", "64", "--rows", "500", "--agree-every", "5"]
TORCHRUN = "from torch.distributed.run import main\nmain()"
MORE_STEPS = 50
PATIENCE_S = 900.0


def losses_in(text):
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) of \d+: loss ([\d.]+)", text)}


def wait_for(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "the condition did not come to hold"
        time.sleep(0.2)


def test_nobody_is_asked_without_the_part():
    """Nor where no launcher makes standbys."""
    ask(parse([]))
    ask(parse(["--parts", "standby"]))


@pytest.mark.sweep
@pytest.mark.service("torch")
@pytest.mark.service("compiler")
def test_a_start_in_standbys_goes_on_as_an_uninterrupted_one(ett_run, events_in, tmp_path):
    """Rank 1 is killed once the standbys are there; they compile nothing, and the losses are the same."""

    def trained(folder, *words, options=()):
        ranks = ["--nproc-per-node", "2", "--max-restarts", "1", "-m", "ett_trainer_hooks.reference"]
        places = [
            "--checkpoint-dir",
            str(tmp_path / folder / "checkpoints"),
            "--cache",
            str(tmp_path / "cache"),
        ]
        (tmp_path / folder).mkdir()
        return ett_run(
            TORCHRUN,
            *ranks,
            *SIZE,
            *places,
            *words,
            options=[*options, "--journal-dir", str(tmp_path / folder / "journal")],
            OMP_NUM_THREADS="1",
            TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"),
            PYTHONUNBUFFERED="1",
        )

    def events():
        return events_in(tmp_path / "killed" / "journal")

    def told(what):
        return [event for event in events() if event.kind == "decision" and event.what == what]

    parts = "stages,fast_batch,stored_plan,bundle,standby"
    job = trained(
        "killed", "--steps", "1000000", "--parts", parts, "--checkpoint-every-s", "1", options=["--standby"]
    )
    output = tmp_path / "killed" / "journal"
    wait_for(lambda: len(told("a standby is ready")) == 2)
    (journal,) = (path for path in output.glob("*.jsonl") if events_in(path)[0].rank == 1)
    os.kill(int(journal.stem.rpartition("-")[2]), signal.SIGKILL)

    def last_step():
        return max((e.step for e in events() if e.kind == "progress" and e.attempt == 1), default=0)

    wait_for(lambda: last_step() > 0)
    first = last_step()
    wait_for(lambda: last_step() >= first + MORE_STEPS)
    used = {event.why for event in told("fast batch") if event.attempt == 1}
    assert used == {"used: the first step compiled nothing"}
    assert len(told("the standby took over")) == 2
    job.terminate()
    found = losses_in(job.communicate(timeout=120.0)[0])
    last = max(found)
    whole = losses_in(trained("whole", "--steps", str(last), "--parts", "").communicate(timeout=600.0)[0])
    assert found == {step: pytest.approx(whole[step], abs=1e-4) for step in found}
