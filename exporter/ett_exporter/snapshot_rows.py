"""Reading and writing the snapshots of live jobs, within the transaction of a connection."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, Insert, exists, select

from ett_exporter.places import Place, Snapshot
from ett_exporter.schema import jobs, segments, snapshots
from ett_exporter.segment_rows import beyond


def write(connection: Connection, statement: Insert, made: Sequence[Snapshot], code: str) -> None:
    """Keep snapshots that the code `code` has made, by `statement`, in one order."""
    values = [
        {
            "job_id": each.job_id,
            "transaction_id": each.place.transaction_id,
            "last_segment_id": each.place.segment_id,
            "beyond": msgspec.json.encode(each.beyond).decode(),
            "format": code,
            "blob": each.blob,
        }
        for each in sorted(made, key=lambda snapshot: snapshot.job_id)
    ]
    if values:
        connection.execute(statement, values)


def read(connection: Connection, job_id: str, code: str) -> Snapshot | None:
    """The snapshot of a job; None where there is none, or other code has made it.

    Where events of the job are deleted, any code will do.
    """
    c = snapshots.c
    query = select(c.transaction_id, c.last_segment_id, c.beyond, c.blob)
    pruned = exists().where(jobs.c.job_id == job_id, jobs.c.pruned_through.is_not(None))
    row = connection.execute(query.where(c.job_id == job_id, (c.format == code) | pruned)).first()
    if row is None:
        return None
    return Snapshot(job_id, Place(row[0], row[1]), msgspec.json.decode(row[2], type=list[int]), row[3])


def is_cut(connection: Connection, known: Snapshot) -> bool:
    """Whether everything that a snapshot holds came before its job was pruned."""
    held = ~beyond(known.place) | segments.c.id.in_(known.beyond)
    later = segments.c.received_at > jobs.c.pruned_through
    left = exists().where(segments.c.job_id == jobs.c.job_id, held, later)
    query = select(jobs.c.job_id).where(
        jobs.c.job_id == known.job_id, jobs.c.pruned_through.is_not(None), ~left
    )
    return connection.execute(query).first() is not None
