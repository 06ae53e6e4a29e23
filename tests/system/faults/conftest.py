"""A whole chain for each fault: `ett run` over torchrun, a real exporter, its API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ETT = [sys.executable, "-c", "import sys; from ett_cli.main import main; sys.exit(main())"]
TRAINER = str(Path(__file__).with_name("trainer.py"))
LIMIT_S = 600.0
"""Guards against a test that hangs; a loaded machine takes minutes where a quiet one takes seconds."""
RANKS = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]


@dataclass(frozen=True)
class Faulty:
    """A job that has failed: what the API tells of it, and what it printed."""

    job: dict[str, Any]
    out: str
    err: str

    @property
    def failure(self) -> dict[str, Any]:
        """The only failure: one an attempt, however many ranks tell of it."""
        (only,) = self.job["failure_list"]
        return only

    @property
    def unsaved_s(self) -> float:
        """Seconds since its last save until it failed, by the program's own clock."""
        return self._said["unsaved_s"]

    @property
    def saved_at(self) -> float:
        """The moment of its last save, by the program's own clock."""
        return self._said["saved_at"]

    @property
    def _said(self) -> dict[str, float]:
        (line,) = (line for line in self.out.splitlines() if '"unsaved_s"' in line)
        return json.loads(line)


@pytest.fixture(scope="module")
def exporter(tmp_path_factory) -> Iterator[str]:
    """The address of a real exporter."""
    database = tmp_path_factory.mktemp("exporter") / "ett.sqlite"
    words = [*ETT, "exporter", "--database", str(database), "--port", "0"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=_environ())
    try:
        yield running.stdout.readline().split()[3]
    finally:
        running.terminate()
        running.wait(LIMIT_S)
        running.stdout.close()


def _environ(**more: str) -> dict[str, str]:
    mine = {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}
    return {**mine, "OMP_NUM_THREADS": "1", **more}


@pytest.fixture
def faulty(exporter, tmp_path) -> Callable[..., Faulty]:
    """Runs the trainer with a fault until nothing of it is left.

    `meanwhile` gets the launcher's pid, and what waits for a condition: until the trainer is where it
    fails, if none is given.
    """

    def run(  # noqa: PLR0913 - what differs between faults
        fault: str,
        *,
        options: tuple[str, ...] = (),
        before: tuple[str, ...] = (),
        ranks: tuple[str, ...] = tuple(RANKS),
        meanwhile: Callable[[int, Callable[..., None]], None] | None = None,
        environ: dict[str, str] | None = None,
    ) -> Faulty:
        job_id = fault.replace(" ", "-")
        saves = tmp_path / "saves"
        saves.mkdir(exist_ok=True)
        launch = [*ETT, "run", "--job-id", job_id, "--journal-dir", str(tmp_path / "journal")]
        launch += ["--exporter", exporter, *options, "--"]
        launch += [sys.executable, "-m", "torch.distributed.run", *ranks, TRAINER, fault, str(saves)]
        out, err = tmp_path / "out", tmp_path / "err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            launcher = subprocess.Popen(
                [*before, *launch],
                stdout=stdout,
                stderr=stderr,
                env=_environ(TMPDIR=str(tmp_path), **(environ or {})),
                start_new_session=True,
            )
        try:
            if meanwhile is not None:
                meanwhile(launcher.pid, lambda met=lambda: '"unsaved_s"' in out.read_text(): until(met))
            status = launcher.wait(LIMIT_S)
        finally:
            if launcher.poll() is None:
                launcher.terminate()
                launcher.wait(LIMIT_S)
        assert status != 0, err.read_text()
        return Faulty(_job(exporter, job_id), out.read_text(), err.read_text())

    return run


def _job(exporter: str, job_id: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{exporter}/api/v1/jobs/{job_id}", timeout=60.0) as answer:  # noqa: S310 - loopback
        return json.load(answer)


def until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait for something that a real process does."""
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s, "waited too long"
        time.sleep(0.05)
