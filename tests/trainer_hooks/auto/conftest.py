"""Programs written without ettwatch in mind, run as a stranger would run them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import warm_observed

from ett_core.accounting import JobAccount, JobFold
from ett_core.events import AnyEvent
from ett_trainer_hooks.auto import SITE

ETT = str(Path(sys.executable).with_name("ett"))
LIMIT_S = 600.0


@dataclass
class Ran:
    """What a program left behind."""

    status: int
    out: str
    err: str
    events: list[AnyEvent]

    def of(self, kind: str, rank: int | None = None) -> list[AnyEvent]:
        return [e for e in self.events if e.kind == kind and (rank is None or e.rank == rank)]

    def phases(self, rank: int = 0) -> list[str]:
        return [event.phase for event in self.of("phase_begin", rank)]

    def seconds_in(self, phase: str, *, attempt: int, rank: int = 0) -> float:
        """Seconds that a rank says it was in a phase, in one attempt."""
        sign = {"phase_begin": -1, "phase_end": 1}
        return sum(
            sign[event.kind] * event.time
            for event in [*self.of("phase_begin", rank), *self.of("phase_end", rank)]
            if (event.phase, event.attempt) == (phase, attempt)
        )

    @property
    def ranks(self) -> set[int]:
        return {event.rank for event in self.events}

    def account(self) -> JobAccount:
        """The account of the job, whose parts are checked to add up."""
        fold = JobFold(self.events[0].job_id)
        fold.add(self.events)
        account = fold.account(self.events[-1].time)
        assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=1e-6)
        return account


@pytest.fixture
def environ(tmp_path, trainer_env):
    """An environment without a job, whose compile caches are empty."""
    mine = {name: text for name, text in trainer_env.items() if not name.startswith("ETT_")}
    caches = tmp_path / "caches"
    caches.mkdir()
    return {
        **mine,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(caches),
        "TMPDIR": str(tmp_path),
    }


@pytest.fixture
def ran(tmp_path, environ, events_in):
    """Runs words to their end, in an environment of their own."""

    def run(*words: str, limit_s: float = LIMIT_S, **more: str) -> Ran:
        done = subprocess.run(
            words,
            check=False,
            env={**environ, **more},
            capture_output=True,
            text=True,
            timeout=limit_s,
            cwd=tmp_path,
        )
        return Ran(done.returncode, done.stdout, done.stderr, events_in(tmp_path / "journal"))

    return run


@pytest.fixture
def ett_run(ran, tmp_path):
    """Runs a command under `ett run`."""

    def run(*command: str, options: tuple[str, ...] = (), limit_s: float = LIMIT_S, **more: str) -> Ran:
        words = [
            ETT,
            "run",
            "--job-id",
            "job",
            "--journal-dir",
            str(tmp_path / "journal"),
            *options,
        ]
        return ran(*words, "--", *command, limit_s=limit_s, **more)

    return run


@pytest.fixture
def bare(ran, tmp_path, environ):
    """Runs a command with nothing but variables in its environment."""

    def run(*command: str, **more: str) -> Ran:
        path = os.pathsep.join([str(SITE), *filter(None, [environ.get("PYTHONPATH")])])
        ours = {"PYTHONPATH": path, "ETT_JOB_ID": "job", "ETT_JOURNAL_DIR": str(tmp_path / "journal")}
        return ran(*command, **{**ours, **more})

    return run


@pytest.fixture
def warm(tmp_path, environ, events_in):
    """Runs a program observed, as `bare` does, in a process that has imported torch already."""
    ours = {"ETT_JOB_ID": "job", "ETT_JOURNAL_DIR": str(tmp_path / "journal")}

    def run(*words: str, **more: str) -> Ran:
        ended = warm_observed.run(words, tmp_path, {**environ, **ours, **more})
        return Ran(*ended, events_in(tmp_path / "journal"))

    return run


@pytest.fixture
def script(tmp_path):
    """Writes a program to a file; its path."""

    def write(text: str) -> str:
        path = tmp_path / f"script{len(list(tmp_path.glob('script*.py')))}.py"
        path.write_text(text)
        return str(path)

    return write
