"""What the tests of the adapters share: a recorder on the real clock, and programs run by torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ett_core.accounting import JobAccount, JobFold
from ett_core.events import AnyEvent, decode
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal

LIMIT_S = 600.0
PROGRAMS = Path(__file__).with_name("programs")


@dataclass
class Observer:
    """A recorder and what it has told so far."""

    recorder: Recorder
    path: Path
    warnings: list[str]
    read: Callable[[Path], list[AnyEvent]]

    def told(self) -> list[AnyEvent]:
        self.recorder.flush(LIMIT_S)
        return sorted(self.read(self.path), key=lambda event: event.seq)

    def of(self, kind: str) -> list[AnyEvent]:
        return [event for event in self.told() if event.kind == kind]

    def phases(self, track: str = "main") -> list[str]:
        return [event.phase for event in self.of("phase_begin") if event.track == track]


@pytest.fixture
def observer(tmp_path, events_in) -> Iterator[Observer]:
    identity = Identity(job_id="job", writer="writer", rank=0, node="n0")
    warnings: list[str] = []
    guard = Guard(warnings.append)
    clock = Clock()
    journal = Journal(tmp_path / "writer-1.jsonl", identity, clock=clock, guard=guard)
    recorder = Recorder(identity=identity, journal=journal, clock=clock, report_every_s=1e-9, guard=guard)
    yield Observer(recorder, journal.path, warnings, events_in)
    journal.close()


@dataclass
class Ran:
    """What a program left behind."""

    status: int
    out: str
    err: str
    events: list[AnyEvent]

    def of(self, kind: str, rank: int | None = None) -> list[AnyEvent]:
        return [e for e in self.events if e.kind == kind and (rank is None or e.rank == rank)]

    def account(self) -> JobAccount:
        """The account of the job, whose parts are checked to add up."""
        fold = JobFold("job")
        fold.add(self.events)
        account = fold.account(self.events[-1].time)
        assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=1e-6)
        return account


@pytest.fixture(scope="module")
def torchrun(tmp_path_factory) -> Callable[..., Ran]:
    """Runs a program of `programs/` on some ranks, in a directory of its own, to its end."""

    def run(program: str, *words: str, ranks: int = 1, **more: str) -> Ran:
        here = tmp_path_factory.mktemp("torchrun")
        mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
        hooks = {"ETT_JOB_ID": "job", "ETT_JOURNAL_DIR": str(here / "journal"), "OMP_NUM_THREADS": "1"}
        start = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
        done = subprocess.run(
            [*start, "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", PROGRAMS / program, *words],
            check=False,
            env={**mine, **hooks, **more},
            cwd=here,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        lines = [line for path in here.glob("journal/*.jsonl") for line in path.read_bytes().splitlines()]
        events = sorted(map(decode, lines), key=lambda event: (event.time, event.writer, event.seq))
        return Ran(done.returncode, done.stdout, done.stderr, events)

    return run
