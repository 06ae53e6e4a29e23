"""What the tests of the hooks share: a clock that stands still, readers of journals, a real server."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from marked import marked

from ett_core.events import AnyEvent, decode
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal

DEADLINE_S = 60.0
EPOCH = 1_764_000_000.0


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a journal that end in a newline."""
    return path.read_bytes().rpartition(b"\n")[0].splitlines() if path.exists() else []


@pytest.fixture
def events_in() -> Callable[[Path], list[AnyEvent]]:
    """Reads every whole line of a journal, or of a directory of journals, in order of time."""

    def read(path: Path) -> list[AnyEvent]:
        paths = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        events = [decode(line) for each in paths for line in whole_lines(each)]
        return sorted(events, key=lambda event: (event.time, event.writer, event.seq))

    return read


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits until a condition holds; fails after a deadline, later for what needs idle processors."""

    def wait(condition: Callable[[], object], patience_s: float = DEADLINE_S) -> None:
        deadline = time.monotonic() + patience_s
        pause = threading.Event()
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come to hold"
            pause.wait(0.01)

    return wait


class Hands:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def move(self, seconds: float) -> None:
        self.now_s += seconds

    def clock(self) -> Clock:
        return Clock(wall=lambda: EPOCH + self.now_s, monotonic=lambda: self.now_s)


@pytest.fixture
def hands() -> Hands:
    return Hands()


@dataclass
class Bench:
    """A recorder on a real journal, and what it has written."""

    recorder: Recorder
    journal: Journal
    warnings: list[str]

    def written(self) -> list[AnyEvent]:
        assert self.journal.flush(DEADLINE_S)
        return [decode(line) for line in whole_lines(self.journal.path)]

    def of(self, kind: str) -> list[AnyEvent]:
        return [event for event in self.written() if event.kind == kind]


@pytest.fixture
def bench(tmp_path: Path, hands: Hands) -> Iterator[Callable[..., Bench]]:
    made: list[Journal] = []

    def make(rank: int = 0, report_every_s: float = 5.0) -> Bench:
        identity = Identity(job_id="job", writer=f"writer{len(made)}", rank=rank, node="n0")
        clock = hands.clock()
        warnings: list[str] = []
        guard = Guard(warnings.append)
        journal = Journal(tmp_path / f"{identity.writer}-1.jsonl", identity, clock=clock, guard=guard)
        made.append(journal)
        recorder = Recorder(
            identity=identity, journal=journal, clock=clock, report_every_s=report_every_s, guard=guard
        )
        return Bench(recorder, journal, warnings)

    yield make
    for journal in made:
        journal.close()


@pytest.fixture
def trainer_env(tmp_path: Path) -> dict[str, str]:
    """The environment of a training process whose journals lie in `tmp_path / "journal"`."""
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
    return {
        **mine,
        "ETT_JOB_ID": "job",
        "ETT_JOURNAL_DIR": str(tmp_path / "journal"),
        "PYTHONUNBUFFERED": "1",
    }


@pytest.fixture
def start(tmp_path: Path, trainer_env: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts Python programs, given as text, in processes that end with the test."""
    children: list[subprocess.Popen[bytes]] = []

    def run(program: str, *arguments: str, **environ: str) -> subprocess.Popen[bytes]:
        path = tmp_path / f"program{len(children)}.py"
        path.write_text(program)
        child = subprocess.Popen(
            [sys.executable, str(path), *arguments],
            env={**trainer_env, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        children.append(child)
        return child

    yield run
    for child in children:
        child.kill()
        child.communicate()


@dataclass
class Exporter:
    """An HTTP server that takes segments; `answers` are given first, then 200.

    With `rejects`, the first line of each segment is rejected for that reason.
    """

    url: str = ""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    limit_bytes: int = 1 << 30
    drop_replies: int = 0
    rejects: str = ""
    lines: list[bytes] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def distinct(self) -> list[AnyEvent]:
        """The events that came in, each once, in order of writer and number."""
        events = {(event.writer, event.seq): event for event in map(decode, self.lines)}
        return [events[key] for key in sorted(events)]


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    state = Exporter()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, dict(self.headers.items()), body))
            status, headers = state.answers.pop(0) if state.answers else (200, {})
            if len(body) > state.limit_bytes:
                status = 413
            if status == 200:
                state.lines += body.splitlines()
                if state.drop_replies:
                    state.drop_replies -= 1
                    self.close_connection = True
                    return
            rejected = [{"line": 1, "reason": state.rejects}] if state.rejects else []
            accepted = body.count(b"\n") - len(rejected)
            self._answer(status, headers, {"accepted": accepted, "duplicates": 0, "rejected": rejected})

        def _answer(self, status: int, headers: dict[str, str], body: dict[str, object]) -> None:
            data = json.dumps(body if status == 200 else {"error": f"status {status}"}).encode()
            self.send_response(status)
            for name, text in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def ett_run(tmp_path: Path, trainer_env: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `ett run`; ends all that is left of the job with the test, or with whoever runs that."""
    started: list[subprocess.Popen[str]] = []
    ours = ("ETT_JOB_ID", "ETT_JOURNAL_DIR", "PYTHONUNBUFFERED")
    environ = {name: text for name, text in trainer_env.items() if name not in ours}

    def begin(program, *arguments, options=(), **more):
        path = tmp_path / f"train{len(started)}.py"
        path.write_text(program)
        words = [
            str(Path(sys.executable).with_name("ett")),
            "run",
            "--job-id",
            "job",
            "--journal-dir",
            str(tmp_path / "journal"),
            *options,
            "--",
        ]
        child = subprocess.Popen(
            [*words, sys.executable, str(path), *arguments],
            env=environ | mark | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        return child

    with marked() as mark:
        yield begin
    for child in started:
        child.communicate()


@pytest.fixture
def one_rank(tmp_path: Path) -> Iterator[None]:
    """A process group of this process alone."""
    dist = pytest.importorskip("torch.distributed")
    store = dist.FileStore(str(tmp_path / "rendezvous"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()
