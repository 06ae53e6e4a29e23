"""A recorded job in known seconds, and exporters to send it to."""

from __future__ import annotations

import itertools
import secrets
import select
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import postgresql
import pytest

from ett_core import events as ev
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store

BEGIN = 1_764_000_000.0
READY_S = 120.0


class Story:
    """Events of one job, each told by a writer at some seconds after the beginning."""

    def __init__(self, job_id: str, begin: float = BEGIN) -> None:
        self.job_id, self.begin = job_id, begin
        self.events: list[ev.AnyEvent] = []
        self._seqs: dict[str, Iterator[int]] = defaultdict(itertools.count)

    def tell(
        self, at: float, kind: type[ev.Event], *, attempt: int = 0, rank: int = 0, **fields: Any
    ) -> None:
        writer = f"a{attempt}r{rank}-{self.job_id}"
        envelope = {"job_id": self.job_id, "writer": writer, "seq": next(self._seqs[writer])}
        envelope |= {"attempt": attempt, "rank": rank, "node": f"n{max(rank, 0)}"}
        self.events.append(kind(**envelope, time=self.begin + at, **fields))

    def bodies(self) -> dict[str, bytes]:
        """NDJSON by writer."""
        lines: dict[str, list[bytes]] = defaultdict(list)
        for event in self.events:
            lines[event.writer].append(ev.encode(event) + b"\n")
        return {writer: b"".join(own) for writer, own in lines.items()}


def told(job_id: str, begin: float = BEGIN, *, ended: bool = True) -> Story:
    """Two ranks start in 20 s, train 60 s, lose rank 1 to SIGKILL, recover, train on, succeed."""
    story = Story(job_id, begin)
    _attempt(story, at=0.0, attempt=0, first_step=0, reports=6)
    story.tell(81.0, ev.Failure, rank=-1, of_rank=1, signal=9)
    story.tell(81.5, ev.Evidence, rank=-1, source="elastic", text="local_rank 1 exited with -9")
    story.tell(82.0, ev.AttemptEnd, rank=-1, status="failed")
    _attempt(story, at=90.0, attempt=1, first_step=40, reports=3)
    if ended:
        story.tell(141.0, ev.AttemptEnd, attempt=1, rank=0, status="succeeded")
        story.tell(142.0, ev.JobEnd, attempt=1, rank=-1, status="succeeded")
    return story


def _attempt(story: Story, *, at: float, attempt: int, first_step: int, reports: int) -> None:
    labels = {"job_name": "dlrm", "team": "ads", "model": "dlrm-26", "cluster": "c1", "scheduler": "local"}
    for rank in (-1, 0, 1):
        story.tell(
            at,
            ev.AttemptStart,
            attempt=attempt,
            rank=rank,
            world_size=2,
            accelerators=2,
            accelerator_type="H200",
            labels=labels,
            versions={"torch": "2.13.0"},
        )
    for rank in (0, 1):
        story.tell(at + 2, ev.PhaseBegin, attempt=attempt, rank=rank, phase="model_init")
        story.tell(at + 20, ev.PhaseEnd, attempt=attempt, rank=rank, phase="model_init")
        story.tell(at + 20, ev.FirstBatch, attempt=attempt, rank=rank, step=first_step)
        story.tell(at + 20, ev.Cache, attempt=attempt, rank=rank, cache="fx_graph", hits=1, misses=2)
        story.tell(
            at + 21, ev.Cache, attempt=attempt, rank=rank, cache="fx_graph", hits=3, misses=2, saved_s=4
        )
        story.tell(
            at + 21,
            ev.Compile,
            attempt=attempt,
            rank=rank,
            stage_seconds={"backend": 1.5},
            native_compile_s=2.0,
            remote_requests=1,
        )
        for report in range(1, reports + 1):
            step = first_step + 10 * report
            moment = at + 20 + 10 * report
            story.tell(
                moment,
                ev.Progress,
                attempt=attempt,
                rank=rank,
                step=step,
                steps=10,
                samples=80,
                data_wait_s=1.0,
            )
            if report % 2 == 0:
                _checkpoint(story, moment, attempt, rank, step)


def _checkpoint(story: Story, at: float, attempt: int, rank: int, step: int) -> None:
    where = {"attempt": attempt, "rank": rank}
    blocking_s = 0.25 + 0.25 * rank
    story.tell(at, ev.PhaseBegin, phase="checkpoint", **where)
    story.tell(at + blocking_s, ev.PhaseEnd, phase="checkpoint", **where)
    story.tell(
        at + blocking_s, ev.Checkpoint, step=step, mode="async", blocking_s=blocking_s, bytes=1000, **where
    )
    if rank == 0:
        story.tell(at + 2, ev.CheckpointDurable, step=step, mode="async", bytes=2000, **where)


class Exporter:
    """A running `ett exporter` process."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url
        self.http = httpx.Client(base_url=url, timeout=60.0, trust_env=False)

    def send(self, body: bytes, **headers: str) -> httpx.Response:
        return self.http.post("/api/v1/segments", content=body, headers=headers)

    def tell(self, story: Story) -> None:
        for body in story.bodies().values():
            self.send(body).raise_for_status()

    def job(self, job_id: str) -> dict[str, Any]:
        return self.http.get(f"/api/v1/jobs/{job_id}").raise_for_status().json()

    def close(self) -> None:
        self.http.close()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


def start_exporter(*words: str) -> Exporter:
    command = [str(Path(sys.executable).with_name("ett")), "exporter", "--port", "0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    readable, _, _ = select.select([process.stdout], [], [], READY_S)
    line = process.stdout.readline() if readable else ""
    if "http://" not in line:
        process.kill()
        pytest.fail(f"the exporter did not start: {process.communicate()}")
    return Exporter(process, line.split()[3])


@pytest.fixture
def exporters() -> Iterator[Callable[..., Exporter]]:
    """Starts exporters with further words of the command line; stops them at the end."""
    started: list[Exporter] = []

    def start(*words: str) -> Exporter:
        started.append(start_exporter(*words))
        return started[-1]

    yield start
    for exporter in started:
        exporter.close()


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """One exporter for a module; tests tell it jobs of different names."""
    database = tmp_path_factory.mktemp("exporter") / "ett.sqlite"
    running = start_exporter("--database", str(database))
    yield running
    running.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgresql.Cluster]:
    """A PostgreSQL server; tests make databases of their own in it."""
    running = postgresql.Cluster()
    try:
        yield running
    finally:
        running.remove()


@pytest.fixture
def new_database(cluster: postgresql.Cluster) -> Callable[[], str]:
    """Makes PostgreSQL databases."""
    return lambda: cluster.database("t" + secrets.token_hex(6))


@pytest.fixture
def database_url(new_database: Callable[[], str]) -> str:
    """A new PostgreSQL database."""
    return new_database()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service("postgresql"))])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of either kind."""
    return request.getfixturevalue("database_url") if request.param == "postgresql" else str(tmp_path / "ett")


@pytest.fixture
def story() -> Callable[..., Story]:
    return told


@pytest.fixture
def blank_story() -> type[Story]:
    return Story


@pytest.fixture
def service(tmp_path: Any) -> Iterator[Callable[..., Service]]:
    """Opens services over the same database file, one after the other, in this process."""
    stores: list[Store] = []

    def open_service(now: float = BEGIN + 200, **settings: Any) -> Service:
        for store in stores:
            store.close()
        stores.append(Store(str(tmp_path / "ett.sqlite")))
        return Service(stores[-1], Settings(**settings), clock=lambda: now)

    yield open_service
    for store in stores:
        store.close()


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    """Waits, up to a deadline, until a condition holds; returns what it gave."""

    def wait(condition: Callable[[], Any], within_s: float = 60.0) -> Any:
        pause = threading.Event()
        deadline = time.monotonic() + within_s
        while not (found := condition()):
            assert time.monotonic() < deadline, f"not within {within_s} s"
            pause.wait(0.02)
        return found

    return wait
