"""Keeping segments: what is new of each, many in one transaction, told once it is durable.

Any thread may call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Connection, literal_column, select, tuple_

from ett_core.sequences import Sequences
from ett_exporter.commits import GroupCommit
from ett_exporter.errors import InDoubtError, StoreError, UnfitError
from ett_exporter.ingest import Line, Segment
from ett_exporter.merging import ranges_in
from ett_exporter.places import Kept, Place
from ett_exporter.recent import Recent
from ett_exporter.schema import jobs, segments, writers
from ett_exporter.segment_rows import legible, packed
from ett_exporter.statements import Statements
from ett_exporter.transactions import Transactions

WRITERS_REMEMBERED = 100_000
"""Writers whose held numbers are kept in memory; those of others are read when they speak again."""
RANGES_NOTED = 256
"""Ranges of the numbers of a writer that are noted apart; of what lies before them, segments are asked."""
_TRANSACTION = select(literal_column("pg_current_xact_id()::text::bigint", BigInteger))


class _Arrival(msgspec.Struct, frozen=True):
    """A segment that is to be kept, and when it came."""

    segment: Segment
    received_at: float


class Arrivals:
    """Takes in segments; `has_replicas` where other processes write beside this one."""

    def __init__(self, transactions: Transactions, statements: Statements, *, has_replicas: bool) -> None:
        self._transactions = transactions
        self._statements = statements
        self._has_replicas = has_replicas
        self._commits: GroupCommit[_Arrival, Kept] = GroupCommit(self._write_arrivals, _may_be_of_one)
        self._held: Recent[tuple[str, str], Sequences] = Recent(WRITERS_REMEMBERED)

    def keep(self, segments: Sequence[Segment], received_at: float) -> list[Kept]:
        """Keep the lines of `segments` that are not held yet; errors as `Store.append`."""
        done = self._commits.submit_all(_Arrival(segment, received_at) for segment in segments)
        errors = [error for _, error in done if error is not None]
        if errors and len(errors) < len(done):
            raise InDoubtError(f"only a part is kept: {errors[0]}") from errors[0]
        if errors:
            raise errors[0]
        return [kept for kept, _ in done if kept is not None]

    def _write_arrivals(self, arrivals: Sequence[_Arrival]) -> list[Kept]:
        """Keep what is new of several segments in one transaction."""
        keys = sorted({_key_of(arrival.segment) for arrival in arrivals})
        try:
            with self._transactions.writing() as connection:
                held = self._held_by(connection, keys)
                kept = self._write(connection, arrivals, held)
        except BaseException:
            for key in keys:
                self._held.drop(key)
            raise
        if not self._has_replicas:
            for key, sequences in held.items():
                self._held.put(key, sequences)
        return kept

    def _write(
        self,
        connection: Connection,
        arrivals: Sequence[_Arrival],
        held: Mapping[tuple[str, str], Sequences],
    ) -> list[Kept]:
        rows: list[dict[str, object]] = []
        fresh: list[list[Line]] = []
        for arrival in arrivals:
            new = self._new_lines(connection, arrival.segment, held[_key_of(arrival.segment)], rows)
            fresh.append(new)
            if new:
                rows.append(_row(arrival.segment, new, arrival.received_at))
        places = iter(self._insert(connection, rows, held)) if rows else iter(())
        return [Kept([line.event for line in new], next(places) if new else None) for new in fresh]

    def _insert(
        self,
        connection: Connection,
        rows: Sequence[dict[str, object]],
        held: Mapping[tuple[str, str], Sequences],
    ) -> list[Place]:
        transaction_id = (
            connection.execute(_TRANSACTION).scalar_one() if self._transactions.is_postgresql else 0
        )
        self._note_jobs(connection, rows)
        written = {key: held[key] for key in sorted(set(map(_writer_of, rows)))}
        _close_gaps(connection, written)
        self._note_held(connection, written)
        values = [{**row, "transaction_id": transaction_id} for row in rows]
        ids = connection.execute(self._statements.keep, values).scalars()
        return [Place(transaction_id, row_id) for row_id in ids]

    def _new_lines(
        self,
        connection: Connection,
        segment: Segment,
        held: Sequences,
        rows: Sequence[Mapping[str, object]],
    ) -> list[Line]:
        """The lines of a segment that are not held; `held` is what will be, `rows` what comes with it."""
        if held.add_run([line.event.seq for line in segment.lines]):
            return list(segment.lines)
        new: list[Line] = []
        known: list[Line] = []
        for line in segment.lines:
            (new if held.add(line.event.seq) else known).append(line)
        if known:
            stored = self._stored_texts(connection, _key_of(segment), known, rows)
            texts = {line.raw for line in new}.union(*(texts for _, texts in stored))
            own = {line.event.seq for line in new}
            is_whole = not _pruned(connection, [segment.job_id])
            for line in known:
                seq = line.event.seq
                may_be_new = is_whole or seq in own or any(seq in numbers for numbers, _ in stored)
                if may_be_new and line.raw not in texts:
                    texts.add(line.raw)
                    new.append(line)
        return new

    def _held_by(
        self, connection: Connection, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Sequences]:
        """A copy of the numbers that are held of each writer.

        With other replicas beside, nobody else changes them before the transaction ends: their rows
        are locked, in one order, so that two never wait for each other.
        """
        known = {key: found.copy() for key in keys if (found := self._held.get(key)) is not None}
        missing = [key for key in keys if key not in known]
        if not missing:
            return known
        query = select(writers.c.job_id, writers.c.writer, writers.c.ranges).where(_among(missing))
        if self._has_replicas:
            blank = [{"job_id": job_id, "writer": writer, "ranges": ""} for job_id, writer in missing]
            connection.execute(self._statements.note_writer, blank)
            query = query.order_by(writers.c.job_id, writers.c.writer).with_for_update()
        ranges = {(row[0], row[1]): row[2] for row in connection.execute(query)}
        return known | {key: Sequences.parse(ranges.get(key, "")) for key in missing}

    def _stored_texts(
        self,
        connection: Connection,
        key: tuple[str, str],
        lines: Sequence[Line],
        rows: Sequence[Mapping[str, Any]],
    ) -> list[tuple[range, set[bytes]]]:
        """Of what is stored of a writer and has numbers of `lines`: its numbers, and all lines beside them.

        A number that is held but lies in none of them was in a gap that was closed, or comes again after the
        retention deleted it.
        """
        numbers = [line.event.seq for line in lines]
        c = segments.c
        query = select(c.held, c.first_seq, c.last_seq, c.lines_zlib).where(
            c.job_id == key[0],
            (c.writer == key[1]) | ((c.writer == "") & c.held.is_not(None)),
            c.first_seq <= max(numbers),
            c.last_seq >= min(numbers),
        )
        found = [tuple(row) for row in connection.execute(query)]
        found += [
            (None, row["first_seq"], row["last_seq"], row["lines_zlib"])
            for row in rows
            if _writer_of(row) == key
        ]
        stored: list[tuple[range, set[bytes]]] = []
        for held, first, last, blob in found:
            ranges = [range(first, last + 1)] if held is None else ranges_in(held, key[1])
            if any(number in own for own in ranges for number in numbers):
                texts = set(legible(blob, f"job {key[0]}", self._transactions.told).split(b"\n"))
                stored += [(own, texts) for own in ranges]
        return stored

    def _note_jobs(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        latest = {row["job_id"]: row["received_at"] for row in rows}
        values = [
            {"job_id": job_id, "first_received_at": at, "last_received_at": at}
            for job_id, at in sorted(latest.items())
        ]
        connection.execute(self._statements.note_job, values)

    def _note_held(self, connection: Connection, held: Mapping[tuple[str, str], Sequences]) -> None:
        values = [
            {"job_id": job_id, "writer": writer, "ranges": str(sequences)}
            for (job_id, writer), sequences in held.items()
        ]
        connection.execute(self._statements.note_held, values)


def _close_gaps(connection: Connection, held: Mapping[tuple[str, str], Sequences]) -> None:
    """Bound what is noted of writers that lose numbers; once segments are deleted, they cannot be asked."""
    many = [key for key, sequences in held.items() if sequences.count_ranges() > RANGES_NOTED]
    if many:
        pruned = _pruned(connection, [job_id for job_id, _ in many])
        for key in many:
            if key[0] not in pruned:
                held[key].close_gaps(RANGES_NOTED)


def _pruned(connection: Connection, job_ids: Sequence[str]) -> set[str]:
    """The jobs of which segments were deleted."""
    query = select(jobs.c.job_id).where(jobs.c.job_id.in_(set(job_ids)), jobs.c.pruned_through.is_not(None))
    return set(connection.execute(query).scalars())


def _writer_of(row: Mapping[str, object]) -> tuple[str, str]:
    return str(row["job_id"]), str(row["writer"])


def _row(segment: Segment, fresh: Sequence[Line], received_at: float) -> dict[str, object]:
    sequence = [line.event.seq for line in fresh]
    attempts = [line.event.attempt for line in fresh]
    return {
        "job_id": segment.job_id,
        "writer": segment.writer,
        "first_seq": min(sequence),
        "last_seq": max(sequence),
        "first_attempt": min(attempts),
        "last_attempt": max(attempts),
        "count": len(fresh),
        "received_at": received_at,
        "lines_zlib": packed([line.raw for line in fresh]),
    }


def _key_of(segment: Segment) -> tuple[str, str]:
    return segment.job_id, segment.writer


def _among(keys: Sequence[tuple[str, str]]) -> ColumnElement[bool]:
    return tuple_(writers.c.job_id, writers.c.writer).in_(keys)


def _may_be_of_one(error: BaseException) -> bool:
    """Whether a transaction failed because of one of its segments; else the database takes none of them."""
    return not isinstance(error, StoreError) or isinstance(error, UnfitError)
