"""The reference trainer in standbys: the start after a kill learns what an uninterrupted run learns."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress

import pytest

from ett_trainer_hooks import procfs
from ett_trainer_hooks.reference.settings import parse
from ett_trainer_hooks.reference.standing_by import ask
from ett_trainer_hooks.standby.understudy import threads_below

SIZE = ["--batch-size", "64", "--rows", "500", "--agree-every", "5"]
TORCHRUN = "from torch.distributed.run import main\nmain()"
MORE_STEPS = 50
PATIENCE_S = 900.0


def losses_in(text):
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) of \d+: loss ([\d.]+)", text)}


def keepers(launcher):
    """The processes below a launcher that keep standbys."""
    return [pid for pid in procfs.children_of(launcher) if is_keeper(pid)]


def is_keeper(pid):
    try:
        return b"ett_trainer_hooks.standby" in (procfs.PROC / str(pid) / "cmdline").read_bytes()
    except OSError:  # it has ended
        return False


def serve(launcher):
    """Have standbys run as the ranks do, for there may be no idle processors."""
    for keeper in keepers(launcher):
        with suppress(OSError):  # it has ended, or the kernel does not share by sessions
            (procfs.PROC / str(keeper) / "autogroup").write_text("0")
        for thread in threads_below(keeper):
            with suppress(ProcessLookupError):  # it has ended
                if os.sched_getscheduler(thread) == os.SCHED_IDLE:
                    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


@pytest.fixture
def training(ett_run, events_in, tmp_path):
    """Starts two small ranks whose journals lie in a folder, and waits for what they tell."""

    class Training:
        def __init__(self, folder, *words, options=()):
            ranks = ["--nproc-per-node", "2", "--max-restarts", "1", "-m", "ett_trainer_hooks.reference"]
            places = ["--checkpoint-dir", tmp_path / folder / "checkpoints", "--cache", tmp_path / "cache"]
            self.journal = tmp_path / folder / "journal"
            self.job = ett_run(
                TORCHRUN,
                *ranks,
                *SIZE,
                *map(str, places),
                *words,
                options=[*options, "--journal-dir", str(self.journal)],
                OMP_NUM_THREADS="1",
                TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"),
                PYTHONUNBUFFERED="1",
            )

        def told(self, what):
            events = events_in(self.journal)
            return [event for event in events if event.kind == "decision" and event.what == what]

        def last_step(self, attempt):
            events = events_in(self.journal)
            steps = [each.step for each in events if each.kind == "progress" and each.attempt == attempt]
            return max(steps, default=0)

        def ranks(self):
            """The processes of both ranks of the first attempt."""
            found = {events_in(path)[0].rank: int(path.stem.rpartition("-")[2]) for path in self.journals()}
            return [found[0], found[1]]

        def journals(self):
            return [path for path in self.journal.glob("*.jsonl") if events_in(path)]

        def wait_for(self, condition):
            until = time.monotonic() + PATIENCE_S
            while not condition():
                assert self.job.poll() is None, self.job.stderr.read()[-3000:]
                assert time.monotonic() < until, "the condition did not come to hold"
                serve(self.job.pid)
                time.sleep(0.2)

        def losses(self):
            return losses_in(self.job.communicate(timeout=PATIENCE_S)[0])

    return Training


def test_nobody_is_asked_without_the_part():
    """Nor where no launcher makes standbys."""
    ask(parse([]))
    ask(parse(["--parts", "standby"]))


@pytest.mark.sweep
@pytest.mark.service("torch")
@pytest.mark.service("compiler")
def test_a_start_in_standbys_goes_on_as_an_uninterrupted_one(training):
    """Rank 1 is killed once the standbys are there; they compile nothing, and the losses are the same."""
    parts = "stages,fast_batch,stored_plan,bundle,standby"
    words = ["--steps", "1000000", "--parts", parts, "--checkpoint-every-s", "1"]
    killed = training("killed", *words, options=["--standby"])
    killed.wait_for(lambda: len(keepers(killed.job.pid)) == 2)
    ranks = killed.ranks()
    for pid in ranks:  # not to train all the time that it takes
        os.kill(pid, signal.SIGSTOP)
    killed.wait_for(lambda: len(killed.told("a standby is ready")) == 2)
    for pid in ranks:
        os.kill(pid, signal.SIGCONT)
    os.kill(ranks[1], signal.SIGKILL)
    killed.wait_for(lambda: killed.last_step(attempt=1) > 0)
    first = killed.last_step(attempt=1)
    killed.wait_for(lambda: killed.last_step(attempt=1) >= first + MORE_STEPS)
    used = {event.why for event in killed.told("fast batch") if event.attempt == 1}
    assert used == {"used: the first step compiled nothing"}
    assert len(killed.told("the standby took over")) == 2
    killed.job.terminate()
    found = killed.losses()
    whole = training("whole", "--steps", str(max(found)), "--parts", "").losses()
    assert found == {step: pytest.approx(whole[step], abs=1e-4) for step in found}
