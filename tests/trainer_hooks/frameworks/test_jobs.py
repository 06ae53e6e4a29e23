"""The examples as jobs under `ett run`, with automatic observation on: killed, resumed, on two ranks.

A sample of the frameworks by default, with ETT_FULL=1 in the environment each of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ett_core.accounting import JobAccount, JobFold
from ett_core.events import AnyEvent, decode

pytestmark = pytest.mark.service("torch")

EXAMPLES = Path(__file__).parents[3] / "examples"
KILLED = str(Path(__file__).with_name("programs") / "killed.py")
BIN = Path(sys.executable).parent
TORCHRUN = (str(BIN / "torchrun"), "--nproc-per-node", "2", "--rdzv-backend", "c10d")
TORCHRUN += ("--rdzv-endpoint", "localhost:0")
LIMIT_S = 600.0
FULL = os.environ.get("ETT_FULL") == "1"


def samples(*some: str, of: dict[str, str]):
    """Frameworks as parameters, with the service that each needs; all of them in a full run."""
    return [
        pytest.param(name, id=name, marks=pytest.mark.service(service))
        for name, service in of.items()
        if FULL or name in some
    ]


FRAMEWORKS = {"lightning": "lightning", "huggingface": "transformers", "accelerate": "accelerate"}
SAVES_EVERY = {"lightning": 100, "huggingface": 40, "accelerate": 100}


@dataclass
class Job:
    """A job that grows by an attempt with each run."""

    place: Path
    attempts: int = 0

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run an attempt to its end."""
        journal = str(self.place / "journal")
        surroundings = {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}
        job = {"ETT_ATTEMPT": str(self.attempts), "ETT_AUTO": "1", "OMP_NUM_THREADS": "1"}
        self.attempts += 1
        return subprocess.run(
            [str(BIN / "ett"), "run", "--job-id", "job", "--journal-dir", journal, "--", *command],
            check=False,
            cwd=self.place,
            env={**surroundings, **job},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def events(self, kind: str = "", attempt: int | None = None, rank: int | None = None) -> list[AnyEvent]:
        lines = [
            line for path in self.place.glob("journal/*.jsonl") for line in path.read_bytes().splitlines()
        ]
        events = sorted(map(decode, lines), key=lambda event: (event.time, event.writer, event.seq))
        wanted = {"kind": kind or None, "attempt": attempt, "rank": rank}
        return [e for e in events if all(want in (None, getattr(e, name)) for name, want in wanted.items())]

    def account(self) -> JobAccount:
        """The account of the job, whose parts are checked to add up."""
        fold = JobFold("job")
        fold.add(self.events())
        account = fold.account(self.events()[-1].time)
        assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=1e-6)
        return account


@pytest.fixture
def job(tmp_path) -> Job:
    return Job(tmp_path)


@pytest.mark.parametrize("framework", samples("lightning", "huggingface", of=FRAMEWORKS))
def test_a_job_that_was_killed_resumes_and_tells_what_was_lost(job, framework):
    """The second attempt goes on from the last checkpoint; steps trained after it were in vain."""
    train, every = str(EXAMPLES / framework / "train.py"), SAVES_EVERY[framework]
    last = every + every // 2
    killed = job.run(sys.executable, KILLED, str(last), train)
    assert killed.returncode == 137
    resumed = job.run(sys.executable, train, "--steps", str(2 * every))
    assert resumed.returncode == 0, resumed.stderr
    assert job.events("first_batch", attempt=1)[0].step == every
    assert [event.step for event in job.events("progress", rank=0)][-1] == 2 * every
    assert sum(event.steps for event in job.events("progress", attempt=1)) == every
    assert len({event.writer for event in job.events(rank=0)}) == 2
    durable = [event.step for event in job.events("checkpoint_durable")]
    assert sorted(set(durable)) == [every, 2 * every]
    account = job.account()
    assert (account.state, len(account.failures)) == ("succeeded", 1)
    assert account.components["unsaved_training"] > 0
    assert account.components["training"] > 0
    assert account.components["recover.process_start"] > 0


@pytest.mark.service("lightning")
def test_lightning_stops_on_sigterm_as_it_does_alone(job):
    """It finishes the batch and exits with 0; the signal is told when it comes, the end as preempted."""
    stopped = job.run(sys.executable, KILLED, "20:SIGTERM", str(EXAMPLES / "lightning/train.py"))
    assert stopped.returncode == 0, stopped.stderr
    assert [event.signal for event in job.events("failure", rank=0)] == [signal.SIGTERM]
    assert job.events("progress", rank=0)[-1].step == 20
    assert [event.status for event in job.events("attempt_end", rank=0)] == ["preempted"]
    assert len(job.account().failures) == 1


@pytest.mark.parametrize("framework", samples("lightning", of=FRAMEWORKS))
def test_ranks_are_told_apart(job, framework, tmp_path):
    """Each tells its own steps and one of them what is durable, also where no variable says the rank.

    Lightning starts its ranks itself, and goes by its older name here.
    """
    train = tmp_path / "train.py"
    text = (EXAMPLES / framework / "train.py").read_text()
    train.write_text(text.replace("import lightning.pytorch as pl", "import pytorch_lightning as pl"))
    ours = [sys.executable, str(train), "--ranks", "2"]
    ran = job.run(*(ours if framework == "lightning" else [*TORCHRUN, str(train)]), "--steps", "100")
    assert ran.returncode == 0, ran.stderr
    assert {event.rank for event in job.events()} == {-1, 0, 1}
    assert len({event.writer for event in job.events()}) == 3
    assert [job.events("progress", rank=rank)[-1].step for rank in (0, 1)] == [100, 100]
    assert {event.world_size for event in job.events("attempt_start") if event.rank >= 0} == {2}
    assert {event.rank for event in job.events("checkpoint")} == {0, 1}
    assert {event.rank for event in job.events("checkpoint_durable")} == {0}
    assert job.account().state == "succeeded"
