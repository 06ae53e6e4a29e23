"""How many bytes a line takes on disk, before and after the segments of a job that is over are put together.

    python benchmarks/exporter/disk.py --days 1 [--postgresql 'postgresql://ett@/ett?host=/run/postgresql']

The job is that of `memory.py`: 8 ranks, 10 attempts, a leader that reports every 5 s, others once a minute,
a save every 5 minutes; each rank sends what it has once a minute. Bytes are those of the table of segments
with its indexes, vacuumed both times. Time is processor time of this process.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from ingest import new_database
from memory import BEGIN, Told
from sqlalchemy import create_engine, text

from ett_core.events import AnyEvent, AttemptEnd, JobEnd
from ett_exporter.database import sqlalchemy_url
from ett_exporter.ingest import by_writer
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store, raw_line

DAY_S = 86_400.0
ATTEMPTS = 10


def minutes(days: float) -> Iterator[list[AnyEvent]]:
    """What arrives minute by minute, up to the end of the job."""
    told = Told("team/job")
    yield from told.minutes(ATTEMPTS, days)
    end = BEGIN + days * DAY_S
    yield [
        told.event(AttemptEnd, ATTEMPTS - 1, 0, end, status="succeeded"),
        told.event(JobEnd, ATTEMPTS - 1, 0, end, status="succeeded"),
    ]


def sent(service: Service, told: Iterable[list[AnyEvent]]) -> tuple[int, int, int]:
    """Segments, lines and bytes of lines that were sent."""
    segments = lines = size = 0
    for minute in told:
        for segment in by_writer(map(raw_line, minute)):
            service.ingest_lines(segment.lines, 0)
            segments, lines = segments + 1, lines + len(segment.lines)
            size += sum(len(line.raw) + 1 for line in segment.lines)
    return segments, lines, size


def size_of(database: str) -> tuple[int, int]:
    """Rows of segments, and bytes of their table with its indexes."""
    if "://" not in database:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("VACUUM")
            (rows,) = connection.execute("SELECT count(*) FROM segments").fetchone()
            (size,) = connection.execute(
                "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'segments%'"
            ).fetchone()
            return rows, size
    with create_engine(sqlalchemy_url(database)).connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM FULL segments"))
        rows = connection.execute(text("SELECT count(*) FROM segments")).scalar_one()
        size = connection.execute(text("SELECT pg_total_relation_size('segments')")).scalar_one()
        return rows, size


def measure(name: str, database: str, days: float) -> None:
    now = BEGIN
    with closing(Store(database)) as store:
        service = Service(store, Settings(retain_days=0.0), clock=lambda: now)
        segments, lines, size = sent(service, minutes(days))
        now = BEGIN + (days + 10) * DAY_S
        service.upkeep.close_jobs(now)
        before = size_of(database)
        began_s = time.process_time()
        service.upkeep.merge_segments(now)
        cpu_s = time.process_time() - began_s
        after = size_of(database)
        print(f"{name}: {lines:,} lines of {size / lines:.0f} bytes in {segments:,} segments\n")
        print("| | rows | bytes a line |\n|---|---|---|")
        for words, (rows, held) in (("as they came", before), ("put together", after)):
            print(f"| {words} | {rows:,} | {held / lines:.1f} |")
        print(f"\nPutting them together took {cpu_s:.1f} s.\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--postgresql", help="URL of a server on which databases may be made")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        measure("SQLite", str(Path(place) / "ett.sqlite"), arguments.days)
    if arguments.postgresql:
        with new_database(arguments.postgresql, "ett_benchmark_disk") as url:
            measure("PostgreSQL", url, arguments.days)


if __name__ == "__main__":
    main()
