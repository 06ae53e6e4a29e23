"""A PostgreSQL database that was copied from another server, within the transaction of a connection.

The place of a segment (`places.py`) begins with a transaction of the server that gave it. Places that
this server has yet to reach would lie behind all that it takes in. All segments are then moved to one
place, in the order of their ids, and each snapshot is told anew which of them it holds: of jobs whose
segments are deleted it is all that is left.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import BigInteger, Connection, func, literal_column, select, update

from ett_exporter.places import LAST_ID, Place
from ett_exporter.schema import OWNER_LOCK, segments, snapshots
from ett_exporter.segment_rows import beyond

COPIED = 0
"""Where segments of another server lie: before every transaction of this one."""
_NEXT = select(literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger))


def adopt(connection: Connection) -> None:
    """Move segments and snapshots to places of this server, where another one gave them later ones."""
    connection.execute(select(func.pg_advisory_xact_lock(OWNER_LOCK)))
    if not _is_of_another_server(connection):
        return
    c = snapshots.c
    known = connection.execute(select(c.job_id, c.transaction_id, c.last_segment_id, c.beyond)).all()
    held = {
        job_id: _held_here(connection, job_id, Place(transaction_id, last_id), text)
        for job_id, transaction_id, last_id, text in known
    }
    moved = update(segments).where(segments.c.transaction_id != COPIED)
    connection.execute(moved.values(transaction_id=COPIED))
    for job_id, (last_id, more) in held.items():
        told = update(snapshots).where(c.job_id == job_id)
        beyond_it = msgspec.json.encode(more).decode()
        connection.execute(told.values(transaction_id=COPIED, last_segment_id=last_id, beyond=beyond_it))


def _is_of_another_server(connection: Connection) -> bool:
    next_id = connection.execute(_NEXT).scalar_one()
    latest = (
        connection.execute(select(func.max(table.c.transaction_id))).scalar_one()
        for table in (segments, snapshots)
    )
    return any(transaction_id is not None and transaction_id >= next_id for transaction_id in latest)


def _held_here(connection: Connection, job_id: str, place: Place, text: str) -> tuple[int, Sequence[int]]:
    """Up to which id the snapshot of a job holds all its segments, and which later ones."""
    more = msgspec.json.decode(text, type=list[int])
    c = segments.c
    lacks = beyond(place) & c.id.not_in(more)
    first = connection.execute(select(func.min(c.id)).where(c.job_id == job_id, lacks)).scalar_one()
    if first is None:
        return LAST_ID, ()
    later = select(c.id).where(c.job_id == job_id, c.id > first, ~lacks).order_by(c.id)
    return first - 1, connection.execute(later).scalars().all()
