"""How long the query API takes with very many jobs in memory, next to SQL over the same rows.

    python benchmarks/exporter/queries.py [--jobs 10000] [--rounds 20]

The service runs in this process over an SQLite file; answers are made and encoded as for a reader,
without HTTP. The rival is SQLite with one row a job and component, in memory, which sums the same
seconds with the same weights: no exact windows, no states, and it has to be kept up to date besides.
Rounds alternate; milliseconds are processor time of the thread that answers. Before each round two seconds
pass, every tenth job is told something and viewed, and what the exporter does beside answering is done until
nothing is left of it (views that are old, sums that go on); what that took is told as well. Half way another
part of the day begins.
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
from typing import NamedTuple

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
from ett_exporter.exposition import YOUNG_S
from ett_exporter.failure_reads import FailureReads
from ett_exporter.fleet_reads import FleetReads
from ett_exporter.fleet_spans import FleetSpans
from ett_exporter.history import FleetHistory
from ett_exporter.queries import ChangesQuery, FailuresQuery, FleetQuery, JobsQuery
from ett_exporter.reads import Reads
from ett_exporter.service import Service
from ett_exporter.settings import Limits, Settings
from ett_exporter.store import Store

HOUR_S = 3600.0
SENDERS = 16
PART_S = 2 * HOUR_S
ROUND_S = 2.0


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


class Times:
    """The time of the service, which passes when it is told to."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def filled(directory: Path, jobs: int, clock: Times) -> Service:
    """A service that holds the jobs."""
    now = clock.now
    store = Store(str(directory / "ett.sqlite"))
    service = Service(store, Settings(limits=Limits(jobs=jobs)), clock=clock)
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


class Took(NamedTuple):
    """Milliseconds of a call."""

    cpu: float
    """Of the thread that answers."""
    elapsed: float
    """With the pauses that it makes for other requests, and what the machine did else."""


def timed(work: Callable[[], object]) -> Took:
    """How long a call takes."""
    began, began_cpu = time.perf_counter(), time.thread_time()
    work()
    return Took(1e3 * (time.thread_time() - began_cpu), 1e3 * (time.perf_counter() - began))


def encoded(read: Callable[[], object]) -> Callable[[], object]:
    """A read with its answer as bytes."""
    return lambda: msgspec.json.encode(read())


def parts_of_a_day(now: float) -> FleetQuery:
    """What the Fleet page of the app asks: the last day in parts of two hours, the latest goes on."""
    end = (now // PART_S + 1) * PART_S
    return FleetQuery(begin=end - 12 * PART_S, end=end, buckets=12)


class Beside:
    """What an exporter does beside answering."""

    def __init__(self, service: Service, spans: FleetSpans) -> None:
        self._service, self._spans = service, spans

    def views(self) -> None:
        """Renew views that are old."""
        self._service.roster.renew(self._service.clock(), float("inf"), YOUNG_S)

    def sums(self) -> None:
        """Put what is new into the sums that go on."""
        self._spans.keep_up()


def go_on(service: Service, clock: Times, jobs: range) -> None:
    """Two seconds later some jobs have told something more, and were viewed."""
    clock.now += ROUND_S
    for number in jobs:
        job_id = f"job-{number:06d}"
        seq = round(clock.now * 10)
        event = Progress(
            job_id=job_id, writer=f"w{number}", seq=seq, attempt=1, rank=0, time=clock.now, step=seq, steps=1
        )
        service.ingest(encode(event))
        service.view(job_id, clock.now)


def measure(service: Service, clock: Times, rounds: int) -> dict[str, list[Took]]:
    """How long each question takes, in turns."""
    now = clock.now
    spans = FleetSpans(service, monotonic=lambda: 0.0)
    beside = Beside(service, spans)
    reads, fleet, rival = Reads(service), FleetReads(service, spans), Rival(service, now)
    failures = FailureReads(service, FleetHistory())
    cursors: list[str] = []
    late = random.Random(3)  # noqa: S311 - any job will do
    numbers = iter(range(10**6))

    def one_change() -> Took:
        job_id = f"job-{late.randrange(service.job_count):06d}"
        event = Progress(
            job_id=job_id,
            writer="late",
            seq=next(numbers),
            attempt=1,
            rank=0,
            time=clock.now,
            step=1,
            steps=1,
        )
        before = service.changes.since("", 10**6).cursor
        service.ingest(encode(event))
        return timed(encoded(lambda: reads.changes(ChangesQuery(since=before))))

    questions: dict[str, Callable[[], object]] = {
        "fleet over 24 h, all": encoded(lambda: fleet.fleet(FleetQuery())),
        "fleet over 24 h, by team": encoded(lambda: fleet.fleet(FleetQuery(group_by="team"))),
        "SQL: the same sums by team": rival.fleet,
        "fleet over a day in 12 parts": encoded(lambda: fleet.fleet(parts_of_a_day(clock.now))),
        "fleet over the window of a day in 24 parts": encoded(
            lambda: fleet.fleet(FleetQuery(window="24h", buckets=24))
        ),
        "fleet since an odd moment, 10 hours ago": encoded(
            lambda: fleet.fleet(FleetQuery(begin=now - 36_007))
        ),
        "100 longest jobs": encoded(lambda: reads.jobs(JobsQuery(sort="-wall_s", limit=100))),
        "15 most urgent jobs": encoded(lambda: reads.jobs(JobsQuery(sort="urgency", limit=15))),
        "failures of a day by class, 15 of them": encoded(
            lambda: failures.failures(FailuresQuery(window="24h", group_by="failure_class", limit=15))
        ),
        "SQL: 100 longest jobs": rival.page,
        "changes: nothing new": encoded(lambda: reads.changes(ChangesQuery(since=cursors[-1]))),
    }
    work = {"beside: old views": beside.views, "beside: sums that go on": beside.sums}
    results: dict[str, list[Took]] = {name: [] for name in (*work, *questions)}
    for round_ in range(rounds):
        go_on(service, clock, range(round_, service.job_count, 10))
        for name, do in work.items():
            results[name].append(timed(do))
        cursors.append(service.changes.since("", 10**6).cursor)
        for name, ask in questions.items():
            results[name].append(timed(ask))
    results["changes: one of all jobs"] = [one_change() for _ in range(rounds)]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    now = 1_764_007_199.0 - ROUND_S * (arguments.rounds // 2)
    with tempfile.TemporaryDirectory() as directory:
        clock = Times(now)
        service = filled(Path(directory), arguments.jobs, clock)
        results = measure(service, clock, arguments.rounds)
        service.store.close()
    print(f"{arguments.jobs:,} jobs\n")
    print("| question | CPU ms, first | later, median (range) | elapsed ms, median |")
    print("|---|---|---|---|")
    for name, times in results.items():
        first, *later = times
        cpu = [took.cpu for took in later]
        spread = f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f})"
        elapsed = statistics.median(took.elapsed for took in later)
        print(f"| {name} | {first.cpu:.2f} | {spread} | {elapsed:.2f} |")


if __name__ == "__main__":
    main()
