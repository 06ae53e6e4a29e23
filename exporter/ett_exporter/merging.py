"""Segments of a job that is over, put together to few large rows, within the transactions of connections.

Lines keep the order in which they came, the ranks side by side: what is folded again has to come so. A
merged row stands in the place of the latest of its segments, so it means the same to snapshots and to
replicas, and says in `held` which numbers of which writers it has, for repeats that come later. It is made
before the transaction that writes it, which is short; nobody else changes segments of the job meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from sqlalchemy import Connection, RowMapping, delete, exists, select

from ett_core.sequences import coalesced
from ett_exporter.places import Place
from ett_exporter.schema import jobs, segments
from ett_exporter.segment_rows import beyond, merged, unpacked

MERGED_BYTES = 2 * 1024 * 1024
"""Text of a merged row: more packs no better."""
MOST_SEGMENTS = 2048
PAGE_ROWS = 64

_c = segments.c
_log = logging.getLogger("ett_exporter.merging")
_Numbers: TypeAlias = tuple[int, int]


def mergeable(connection: Connection) -> Sequence[str]:
    """Closed jobs whose segments are not put together, as far as they are to be kept."""
    c = jobs.c
    query = select(c.job_id).where(
        c.closed_through >= c.last_received_at,
        c.merged_through.is_(None) | (c.merged_through < c.closed_through),
        c.pruned_through.is_(None) | (c.pruned_through < c.closed_through),
    )
    return connection.execute(query).scalars().all()


class Merged(msgspec.Struct, frozen=True):
    """What is to stand in the place of some segments: its place, the ids of the others, its columns."""

    place: Place
    others: Sequence[int]
    values: Mapping[str, object]


def together(connection: Connection, job_id: str, through: Place | None) -> Merged | None:
    """The next segments of a job as one, of those up to a place (None: of any); None without any.

    One that is damaged stays as it is, alone.
    """
    parts = list(_parts(connection, job_id, through))
    if not parts:
        return None
    rows = [part.row for part in parts]
    if parts[0].text is None:
        _log.warning("segment %d of job %s is damaged; it stays as it is", rows[0]["id"], job_id)
        return Merged(Place(rows[0]["transaction_id"], rows[0]["id"]), (), {"held": _held(rows)})
    place = max(Place(row["transaction_id"], row["id"]) for row in rows)
    others = [row["id"] for row in rows if row["id"] != place.segment_id]
    return Merged(place, others, _values(rows, merged(b"\n".join(part.text or b"" for part in parts))))


def replace(connection: Connection, job_id: str, made: Merged | None) -> bool:
    """Put what was made in the place of its segments; whether there may be more to put together.

    Without anything made, the job is noted as done. Nothing is done where its rows lack something that came.
    """
    c = jobs.c
    closed = (c.job_id == job_id) & (c.closed_through >= c.last_received_at)
    if connection.execute(select(c.job_id).where(closed).with_for_update()).first() is None:
        return False
    if made is None:
        left = exists().where(_c.job_id == job_id, _c.held.is_(None))
        connection.execute(jobs.update().where(closed, ~left).values(merged_through=c.closed_through))
        return False
    connection.execute(delete(segments).where(_c.id.in_(made.others)))
    connection.execute(segments.update().where(_c.id == made.place.segment_id).values(**made.values))
    return True


def ranges_in(held: str, writer: str) -> list[range]:
    """The numbers of a writer in a merged row."""
    ranges: Mapping[str, Sequence[_Numbers]] = msgspec.json.decode(held)
    return [range(first, last + 1) for first, last in ranges.get(writer, ())]


class _Part(NamedTuple):
    """A segment that is put together with others, and its lines; None where it is damaged."""

    row: RowMapping
    text: bytes | None


def _parts(connection: Connection, job_id: str, through: Place | None) -> Iterator[_Part]:
    """The next segments that belong together, in the order of their arrival; a damaged one is alone."""
    query = select(segments).where(_c.job_id == job_id, _c.held.is_(None)).order_by(_c.id).limit(PAGE_ROWS)
    if through is not None:
        query = query.where(~beyond(through))
    last_id, count, size = -1, 0, 0
    while count < MOST_SEGMENTS:
        page = connection.execute(query.where(_c.id > last_id)).mappings().all()
        for row in page:
            text = _text_of(row)
            if text is None and count:
                return
            yield _Part(row, text)
            if text is None:
                return
            last_id, count, size = row["id"], count + 1, size + len(text)
            if size >= MERGED_BYTES:
                return
        if len(page) < PAGE_ROWS:
            return


def _text_of(row: RowMapping) -> bytes | None:
    try:
        return unpacked(row["lines_zlib"])
    except ValueError:
        return None


def _held(rows: Sequence[RowMapping]) -> str:
    """Which numbers of which writers rows have, as JSON."""
    numbers: dict[str, list[_Numbers]] = {}
    for row in rows:
        numbers.setdefault(row["writer"], []).append((row["first_seq"], row["last_seq"]))
    held = {writer: coalesced(ranges) for writer, ranges in numbers.items()}
    return msgspec.json.encode(held).decode()


def _values(rows: Sequence[RowMapping], blob: bytes) -> dict[str, object]:
    """The columns of a row that stands for several."""
    return {
        "writer": "",
        "held": _held(rows),
        **{name: min(row[name] for row in rows) for name in ("first_seq", "first_attempt")},
        **{name: max(row[name] for row in rows) for name in ("last_seq", "last_attempt", "received_at")},
        "count": sum(row["count"] for row in rows),
        "lines_zlib": blob,
    }
