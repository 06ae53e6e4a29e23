"""Reading the segments that are kept, and what they are packed in."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, select, tuple_

from ett_core.events import AnyEvent
from ett_core.lines import decode_lines
from ett_exporter.errors import StoreError
from ett_exporter.places import Place, Stored
from ett_exporter.schema import segments
from ett_exporter.told import Told
from ett_exporter.transactions import Transactions

COMPRESSION_LEVEL = 1
MERGED_LEVEL = 9
ZSTD = b"\x28\xb5\x2f\xfd"
"""How a Zstandard frame begins (RFC 8878); no zlib stream does."""
READ_ROWS = 200

_log = logging.getLogger("ett_exporter.store")
_COLUMNS = (
    segments.c.transaction_id,
    segments.c.id,
    segments.c.job_id,
    segments.c.received_at,
    segments.c.lines_zlib,
)


def packed(lines: Sequence[bytes]) -> bytes:
    """Lines as they are kept."""
    return zlib.compress(b"\n".join(lines), COMPRESSION_LEVEL)


def merged(text: bytes) -> bytes:
    """The lines of many segments as they are kept, joined by newlines."""
    try:
        import zstandard  # noqa: PLC0415 - not everywhere where exporters run
    except ModuleNotFoundError:
        return zlib.compress(text, zlib.Z_BEST_COMPRESSION)
    return zstandard.ZstdCompressor(MERGED_LEVEL).compress(text)


def unpacked(blob: bytes) -> bytes:
    """What `packed` or `merged` was given, joined by newlines.

    Raises:
        StoreError: it needs a package that is not here.
        ValueError: it is damaged.
    """
    if not blob.startswith(ZSTD):
        try:
            return zlib.decompress(blob)
        except zlib.error as error:
            raise ValueError(f"damaged ({error})") from error
    try:
        import zstandard  # noqa: PLC0415 - not everywhere where exporters run
    except ModuleNotFoundError as error:
        raise StoreError("this database holds segments that need the package zstandard") from error
    try:
        return zstandard.ZstdDecompressor().decompress(blob)
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged ({error})") from error


def legible(blob: bytes, of: str, told: Told) -> bytes:
    """As `unpacked`; nothing of what is damaged, which is told once: it hides no other, may come again."""
    try:
        return unpacked(blob)
    except ValueError as error:
        if told.is_new(f"{of}: {error}"):
            _log.warning("segments of %s are %s", of, error)
        return b""


def of_job(job_id: str, attempt: int | None) -> Select[Any]:
    """The segments of a job; of an attempt, those that may hold events of it."""
    query = select(*_COLUMNS).where(segments.c.job_id == job_id)
    if attempt is None:
        return query
    return query.where(segments.c.first_attempt <= attempt, segments.c.last_attempt >= attempt)


def of_id(segment_id: int) -> Select[Any]:
    """One segment."""
    return select(*_COLUMNS).where(segments.c.id == segment_id)


def beyond(place: Place) -> ColumnElement[bool]:
    """Whether a segment comes after a place."""
    order = tuple_(segments.c.transaction_id, segments.c.id)
    return order > tuple_(place.transaction_id, place.segment_id)


def read(transactions: Transactions, query: Select[Any]) -> Iterator[Stored]:
    """The segments of a query, read in pages so that no read transaction stays open long."""
    last_id = -1
    while True:
        page = query.where(segments.c.id > last_id).order_by(segments.c.id).limit(READ_ROWS)
        with transactions.reading() as connection:
            rows = connection.execute(page).all()
        for transaction_id, row_id, job_id, received_at, blob in rows:
            events = _events_of(row_id, job_id, blob, transactions.told)
            yield Stored(Place(transaction_id, row_id), job_id, received_at, events)
            last_id = row_id
        if len(rows) < READ_ROWS:
            return


def _events_of(row_id: int, job_id: str, blob: bytes, told: Told) -> list[AnyEvent]:
    found = decode_lines(legible(blob, f"job {job_id}", told).split(b"\n"), f"segment {row_id}")
    for bad in found.bad:
        if told.is_new(f"{job_id}: {bad}"):
            _log.warning("left out of job %s: %s", job_id, bad)
    return list(found.events)
