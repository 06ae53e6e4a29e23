"""What the exporter noted of the clocks of writers, kept in their rows; any thread may call."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import bindparam, select, tuple_

from ett_exporter.recent import Recent
from ett_exporter.schema import writers
from ett_exporter.transactions import Transactions

WRITERS_REMEMBERED = 100_000
"""Writers of which it is kept in memory; those of others are read when they speak again."""
READ_AT_ONCE = 256

Writer = tuple[str, str]
"""Its job and its name."""


class NotedClock(msgspec.Struct, frozen=True, gc=False):
    """What was noted last of a writer's clock, and the time of the event that says so; None: nothing was."""

    offset_s: float | None
    at: float | None


class NotedClocks:
    """The notes of one store."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._known: Recent[Writer, NotedClock] = Recent(WRITERS_REMEMBERED)
        self._lock = threading.Lock()

    def of(self, keys: Sequence[Writer]) -> dict[Writer, NotedClock]:
        """What was noted last of each writer."""
        with self._lock:
            known = {key: noted for key in keys if (noted := self._known.get(key)) is not None}
        missing = [key for key in keys if key not in known]
        for begin in range(0, len(missing), READ_AT_ONCE):
            known |= self._read(missing[begin : begin + READ_AT_ONCE])
        return known

    def _read(self, keys: Sequence[Writer]) -> dict[Writer, NotedClock]:
        c = writers.c
        query = select(c.job_id, c.writer, c.clock_offset_s, c.clock_noted_at)
        with self._transactions.reading() as connection:
            rows = connection.execute(query.where(tuple_(c.job_id, c.writer).in_(keys))).all()
        found = dict.fromkeys(keys, NotedClock(None, None))
        found |= {(row[0], row[1]): NotedClock(row[2], row[3]) for row in rows}
        self._remember(found)
        return found

    def note(self, noted: Mapping[Writer, NotedClock]) -> None:
        """Remember what `clock` events tell of writers."""
        rows = [
            {"of_job": job_id, "of_writer": writer, "offset_s": each.offset_s, "at": each.at}
            for (job_id, writer), each in sorted(noted.items())
        ]
        with self._transactions.writing() as connection:
            connection.execute(_NOTE, rows)
        self._remember(noted)

    def _remember(self, noted: Mapping[Writer, NotedClock]) -> None:
        with self._lock:
            for key, each in noted.items():
                self._known.put(key, each)


_NOTE = (
    writers.update()
    .where((writers.c.job_id == bindparam("of_job")) & (writers.c.writer == bindparam("of_writer")))
    .values(clock_offset_s=bindparam("offset_s"), clock_noted_at=bindparam("at"))
)
