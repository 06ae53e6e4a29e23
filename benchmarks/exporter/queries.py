"""How long the query API takes with very many jobs in memory, next to SQL over the same rows.

    python benchmarks/exporter/queries.py [--jobs 10000] [--rounds 20]

The service runs in this process over an SQLite file; answers are made and encoded as for a reader,
without HTTP. The rival is SQLite with one row a job and component, in memory, which sums the same
seconds with the same weights: no exact windows, no states, and it has to be kept up to date besides.
Rounds alternate; milliseconds are processor time of the thread that answers.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ett_core.events import (
    AnyEvent,
    AttemptEnd,
    AttemptStart,
    Checkpoint,
    FirstBatch,
    PhaseBegin,
    PhaseEnd,
    Progress,
    encode,
)
from ett_exporter.queries import ChangesQuery, FleetQuery, JobsQuery
from ett_exporter.reads import Reads
from ett_exporter.service import Service
from ett_exporter.settings import Limits, Settings
from ett_exporter.store import Store

HOUR_S = 3600.0
SENDERS = 16


def body_of(number: int, now: float, chance: random.Random) -> bytes:
    """A job of the last day: two attempts, phases, reports, a checkpoint."""
    job_id = f"job-{number:06d}"
    labels = {"cluster": f"c{number % 5}", "team": f"team-{number % 40}", "model": f"m{number % 12}"}
    told: list[AnyEvent] = []

    def tell(kind: type, at: float, attempt: int, **fields: object) -> None:
        envelope = {"job_id": job_id, "writer": f"w{number}", "rank": 0, "node": f"n{number % 500}"}
        told.append(kind(**envelope, seq=len(told), attempt=attempt, time=at, **fields))

    begin = now - chance.uniform(1, 23) * HOUR_S
    span_s = (now - begin) / 2 - 60.0
    for attempt in (0, 1):
        at = begin + attempt * (span_s + 60.0)
        tell(AttemptStart, at, attempt, world_size=8, accelerators=8, accelerator_type="H200", labels=labels)
        tell(PhaseBegin, at + 5, attempt, phase="model_init")
        tell(PhaseEnd, at + 40, attempt, phase="model_init")
        tell(FirstBatch, at + 50, attempt)
        for report in range(1, 9):
            moment = at + 50 + report * (span_s - 60) / 8
            tell(Progress, moment, attempt, step=100 * report, steps=100, samples=6400, data_wait_s=3.0)
        tell(Checkpoint, at + span_s - 8, attempt, step=800, mode="sync", blocking_s=2.0)
        if attempt == 0:
            tell(AttemptEnd, at + span_s, attempt, status="failed")
    return b"\n".join(map(encode, told))


def filled(directory: Path, jobs: int, now: float) -> Service:
    """A service that holds the jobs."""
    store = Store(str(directory / "ett.sqlite"))
    service = Service(store, Settings(limits=Limits(jobs=jobs)), clock=lambda: now)
    chance = random.Random(7)  # noqa: S311 - the same jobs each time
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(service.ingest, (body_of(number, now, chance) for number in range(jobs))))
    service.views(now)
    return service


class Rival:
    """The seconds of all jobs as rows."""

    def __init__(self, service: Service, now: float) -> None:
        self._rows = sqlite3.connect(":memory:")
        self._rows.execute("CREATE TABLE t (job, cluster, team, state, accelerators, component, seconds)")
        for view in service.views(now):
            about = (view.account.job_id, view.label("cluster"), view.label("team"), view.account.state)
            rows = [(*about, view.accelerator_weight, c, s) for c, s in view.windows["24h"].items()]
            self._rows.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._rows.execute("CREATE INDEX i ON t (team, component)")

    def fleet(self) -> object:
        """Accelerator-seconds by team and component."""
        return self._rows.execute(
            "SELECT team, component, SUM(seconds * accelerators) FROM t GROUP BY team, component"
        ).fetchall()

    def page(self) -> object:
        """The hundred longest jobs."""
        return self._rows.execute(
            "SELECT job, SUM(seconds) s FROM t GROUP BY job ORDER BY s DESC LIMIT 100"
        ).fetchall()


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of processor time of a call."""
    began = time.thread_time()
    work()
    return 1e3 * (time.thread_time() - began)


def encoded(read: Callable[[], object]) -> Callable[[], object]:
    """A read with its answer as bytes."""
    return lambda: msgspec.json.encode(read())


def measure(service: Service, now: float, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each question, in turns."""
    reads, rival = Reads(service), Rival(service, now)
    cursor = "" if not (changed := service.changes.since("", 10**6)) else changed.cursor
    late = random.Random(3)  # noqa: S311 - any job will do
    numbers = iter(range(10**6))

    def one_change() -> object:
        job_id = f"job-{late.randrange(service.job_count):06d}"
        event = Progress(
            job_id=job_id, writer="late", seq=next(numbers), attempt=1, rank=0, time=now, step=1, steps=1
        )
        before = service.changes.since("", 10**6).cursor
        service.ingest(encode(event))
        began = time.thread_time()
        encoded(lambda: reads.changes(ChangesQuery(since=before)))()
        return time.thread_time() - began

    questions: dict[str, Callable[[], object]] = {
        "fleet over 24 h, all": encoded(lambda: reads.fleet(FleetQuery())),
        "fleet over 24 h, by team": encoded(lambda: reads.fleet(FleetQuery(group_by="team"))),
        "SQL: the same sums by team": rival.fleet,
        "100 longest jobs": encoded(lambda: reads.jobs(JobsQuery(sort="-wall_s", limit=100))),
        "SQL: 100 longest jobs": rival.page,
        "changes: nothing new": encoded(lambda: reads.changes(ChangesQuery(since=cursor))),
    }
    results: dict[str, list[float]] = {name: [] for name in questions}
    for _ in range(rounds):
        for name, ask in questions.items():
            results[name].append(timed(ask))
    results["changes: one of all jobs"] = [1e3 * float(str(one_change())) for _ in range(rounds)]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    now = 1_764_000_000.0
    with tempfile.TemporaryDirectory() as directory:
        service = filled(Path(directory), arguments.jobs, now)
        results = measure(service, now, arguments.rounds)
        service.store.close()
    print(f"{arguments.jobs:,} jobs\n\n| question | CPU ms, median (range) |\n|---|---|")
    for name, times in results.items():
        print(f"| {name} | {statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f}) |")


if __name__ == "__main__":
    main()
