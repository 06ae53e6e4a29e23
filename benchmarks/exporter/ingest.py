"""How fast an exporter takes in events durably over HTTP, next to a plain handler, in one run; and restarts.

    python benchmarks/exporter/ingest.py [--events 256000] [--senders 16] [--rounds 5]
    python benchmarks/exporter/ingest.py --postgresql 'postgresql://ett@/postgres?host=/run/postgresql'
    python benchmarks/exporter/ingest.py --restart [--jobs 1000] [--events 5000000]

The rival is a Starlette handler on the same server (uvicorn, uvloop, httptools) that decodes each line
and inserts it as a row into SQLite, under its writer and number, with the same durability: one commit a
request. It accounts for nothing. With a PostgreSQL server the exporter over it, too, takes part: in a
new database for each round, which is dropped afterwards. All are processes of their own and get the same
gzip bodies of 1,000 lines from the same senders; rounds alternate. Processor time is that of the server.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from ett_core import events as ev
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store

BATCH = 1000
RANKS = 8
BEGIN = 1_764_000_000.0
REPORT_EVERY_S = 5.0
RIVAL = """
import gzip, sqlite3, sys, threading
import msgspec, uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.routing import Route

database = sqlite3.connect(sys.argv[1], check_same_thread=False, isolation_level=None)
database.execute("PRAGMA journal_mode=WAL")
database.execute("PRAGMA synchronous=FULL")
database.execute("CREATE TABLE lines (writer TEXT, seq INTEGER, line BLOB, PRIMARY KEY (writer, seq))")
lock = threading.Lock()
decode = msgspec.json.Decoder().decode

def keep(body):
    lines = gzip.decompress(body).splitlines()
    rows = [(event["writer"], event["seq"], line) for line, event in zip(lines, map(decode, lines))]
    with lock:
        database.execute("BEGIN")
        database.executemany("INSERT OR IGNORE INTO lines VALUES (?, ?, ?)", rows)
        database.execute("COMMIT")
    return len(rows)

async def take(request):
    return JSONResponse({"accepted": await run_in_threadpool(keep, await request.body())})

app = Starlette(routes=[Route("/api/v1/segments", take, methods=["POST"])])
uvicorn.run(app, port=0, loop="uvloop", http="httptools", access_log=False)
"""


class Cost(NamedTuple):
    """What one round took, in seconds."""

    wall_s: float
    cpu_s: float


class Server:
    """A process that takes in segments."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.port = self._port()

    def _port(self) -> int:
        for line in self.process.stdout or ():
            if "http://" in line:
                return int(line.split("http://127.0.0.1:")[1].split()[0])
        raise RuntimeError("the server has ended without a word of where it listens")

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            return answer.status

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=60)


@contextmanager
def running(command: Sequence[str]) -> Iterator[Server]:
    server = Server(command)
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


def exporter(database: str) -> list[str]:
    return [
        str(Path(sys.executable).with_name("ett")),
        "exporter",
        "--port",
        "0",
        "--database",
        database,
    ]


def rival(database: str) -> list[str]:
    return [sys.executable, "-c", RIVAL, database]


def bodies_of(job_id: str, events: int) -> list[bytes]:
    """NDJSON of `BATCH` events a body: as a trainer of `RANKS` ranks reports, with a save every minute."""
    batches = []
    for first in range(0, events // RANKS, BATCH):
        for rank in range(RANKS):
            numbers = range(first, min(first + BATCH, events // RANKS))
            batches.append(b"".join(ev.encode(_event(job_id, rank, seq)) + b"\n" for seq in numbers))
    return batches


def _event(job_id: str, rank: int, seq: int) -> ev.AnyEvent:
    where: dict[str, Any] = {"job_id": job_id, "writer": f"{rank:04x}{job_id}", "seq": seq, "attempt": 0}
    where |= {"rank": rank, "node": f"node-{rank}", "time": BEGIN + REPORT_EVERY_S * seq}
    step = 10 * seq
    if seq == 0:
        return ev.AttemptStart(**where, world_size=RANKS, accelerators=RANKS, labels={"team": "ads"})
    if seq == 1:
        return ev.FirstBatch(**where)
    match seq % 15:
        case 2:
            return ev.PhaseBegin(**where, phase="checkpoint", step=step)
        case 3:
            return ev.PhaseEnd(**where, phase="checkpoint", step=step)
        case 4:
            return ev.Checkpoint(**where, step=step - 20, mode="async", blocking_s=0.5, bytes=10**9)
        case _:
            timed = ev.StepSeconds(count=10, sum=4.7, max=0.52, buckets={180: 6, 181: 4})
            return ev.Progress(
                **where, step=step, steps=10, samples=640.0, data_wait_s=0.2, step_seconds=timed
            )


def send(port: int, bodies: Sequence[bytes]) -> None:
    """Post bodies over one connection, each after the answer to the one before; every line must be taken."""
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/x-ndjson"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        for body in bodies:
            connection.request("POST", "/api/v1/segments", body, headers)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{answer.status}: {said!r}")


def round_of(command: Sequence[str], streams: Sequence[Sequence[bytes]]) -> Cost:
    """Send every stream by a sender of its own, at the same time."""
    with running(command) as server, ThreadPoolExecutor(len(streams)) as pool:
        cpu_s, began_s = server.cpu_s(), time.perf_counter()
        list(pool.map(lambda bodies: send(server.port, bodies), streams))
        return Cost(time.perf_counter() - began_s, server.cpu_s() - cpu_s)


@contextmanager
def new_database(server: str, name: str) -> Iterator[str]:
    """The URL of a database that is there only now, on the server of a URL."""
    import psycopg  # noqa: PLC0415 - only where there is a PostgreSQL

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]  # a name of ours
        try:
            where = urlsplit(server)
            yield urlunsplit(where._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')  # type: ignore[arg-type]


def compare(events: int, senders: int, rounds: int, postgresql: str | None) -> None:
    own = events // senders
    plain = [bodies_of(f"job-{n}", own) for n in range(senders)]
    sent = sum(body.count(b"\n") for bodies in plain for body in bodies)
    streams = [[gzip.compress(body, 1) for body in bodies] for bodies in plain]
    costs: dict[str, list[Cost]] = {"a row a line, no accounting": [], "ett exporter": []}
    over_postgresql = "ett exporter over PostgreSQL"
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        for number in range(rounds):
            for name, command in zip(list(costs)[:2], (rival, exporter), strict=True):
                costs[name].append(
                    round_of(command(str(Path(place) / f"{number}{command.__name__}")), streams)
                )
            if postgresql:
                with new_database(postgresql, f"ett_benchmark_{number}") as url:
                    costs.setdefault(over_postgresql, []).append(round_of(exporter(url), streams))
    print(f"{sent:,} events in batches of {BATCH:,}, {senders} senders, {rounds} rounds in turns\n")
    print("| what | events a second, median (range) | events a second of the server's processor time |")
    print("|---|---|---|")
    for name, of in costs.items():
        rates = sorted(sent / cost.wall_s for cost in of)
        by_cpu = statistics.median(sent / cost.cpu_s for cost in of)
        span = f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})"
        print(f"| {name} | {span} | {by_cpu:,.0f} |")


def ready_after_s(database: Path) -> tuple[float, float]:
    """Seconds from the start of the process until it answers at all, and until every job is folded."""
    began_s = time.perf_counter()
    with running(exporter(str(database))) as server:
        while server.get("/healthz") != 200:
            pass
        alive_s = time.perf_counter() - began_s
        while server.get("/readyz") != 200:
            time.sleep(0.05)
        return alive_s, time.perf_counter() - began_s


def restart(jobs: int, events: int) -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        database = Path(place) / "ett.sqlite"
        with closing(Store(str(database))) as store:
            service = Service(store, Settings(), clock=lambda: BEGIN)
            for number in range(jobs):
                for body in bodies_of(f"job-{number}", events // jobs):
                    service.ingest(body)
                service.upkeep.save_snapshots(0)
        print(f"{jobs:,} live jobs, {events:,} events, {database.stat().st_size / 1e6:,.0f} MB\n")
        print("| restart | answers after | every job folded after |\n|---|---|---|")
        for name in ("from snapshots", "without any snapshot"):
            alive_s, ready_s = ready_after_s(database)
            print(f"| {name} | {alive_s:.1f} s | {ready_s:.1f} s |", flush=True)
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("DELETE FROM snapshots")
                connection.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int)
    parser.add_argument("--senders", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--postgresql", help="URL of a server on which databases may be made")
    parser.add_argument("--restart", action="store_true")
    parser.add_argument("--jobs", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.restart:
        restart(arguments.jobs, arguments.events or 5_000_000)
    else:
        compare(arguments.events or 256_000, arguments.senders, arguments.rounds, arguments.postgresql)


if __name__ == "__main__":
    main()
