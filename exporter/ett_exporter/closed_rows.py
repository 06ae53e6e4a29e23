"""The rows of closed jobs, and deleting their segments, within the transaction of a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table, delete, exists, insert, select

from ett_exporter.closed import page_of, rows_of
from ett_exporter.schema import attempts, checkpoints, failures, jobs, segments, timelines
from ett_exporter.views import JobPage


def write(connection: Connection, page: JobPage, through: float) -> bool:
    """Put the rows of a job in the place of older ones; False where something came after `through`."""
    job_id = page.view.account.job_id
    rows = rows_of(page)
    unchanged = (jobs.c.job_id == job_id) & (jobs.c.last_received_at == through)
    if not connection.execute(
        jobs.update().where(unchanged).values(closed_through=through, **rows.job)
    ).rowcount:
        return False
    _replace(connection, attempts, job_id, rows.attempts)
    _replace(connection, failures, job_id, rows.failures)
    _replace(connection, checkpoints, job_id, rows.checkpoints)
    connection.execute(delete(timelines).where(timelines.c.job_id == job_id))
    connection.execute(insert(timelines).values(job_id=job_id, stretches_zlib=rows.timeline))
    return True


def _replace(connection: Connection, table: Table, job_id: str, rows: Sequence[dict[str, Any]]) -> None:
    connection.execute(delete(table).where(table.c.job_id == job_id))
    if rows:
        values = [{"job_id": job_id, "place": place, **row} for place, row in enumerate(rows)]
        connection.execute(insert(table), values)


def read(connection: Connection, job_id: str) -> JobPage | None:
    """The page that was written; None where none was."""
    job = connection.execute(select(jobs.c.detail).where(jobs.c.job_id == job_id)).scalar_one_or_none()
    timeline = select(timelines.c.stretches_zlib).where(timelines.c.job_id == job_id)
    stretches = connection.execute(timeline).scalar_one_or_none()
    if job is None or stretches is None:
        return None
    parts = [_details(connection, table, job_id) for table in (attempts, failures, checkpoints)]
    return page_of(job, parts[0], parts[1], parts[2], stretches)


def _details(connection: Connection, table: Table, job_id: str) -> Sequence[str]:
    query = select(table.c.detail).where(table.c.job_id == job_id).order_by(table.c.place)
    return connection.execute(query).scalars().all()


def prunable(connection: Connection, before: float, ended_before: float) -> Sequence[str]:
    """Closed jobs that ended before a moment, of which nothing came since another (Unix seconds)."""
    c = jobs.c
    query = select(c.job_id).where(
        c.last_received_at < before,
        c.closed_through >= c.last_received_at,
        c.end_time < ended_before,
        c.pruned_through.is_(None) | (c.pruned_through < c.last_received_at),
    )
    return connection.execute(query).scalars().all()


def begin_pruning(connection: Connection, job_id: str, before: float) -> bool:
    """Note that the rows of a job are all that will be left of it; False where something came."""
    c = jobs.c
    unchanged = (c.last_received_at < before) & (c.closed_through >= c.last_received_at)
    noted = jobs.update().where(c.job_id == job_id, unchanged).values(pruned_through=c.closed_through)
    return connection.execute(noted).rowcount > 0


def half_pruned(connection: Connection) -> Sequence[str]:
    """Jobs of which segments are to be deleted."""
    older = (segments.c.job_id == jobs.c.job_id) & (segments.c.received_at <= jobs.c.pruned_through)
    query = select(jobs.c.job_id).where(jobs.c.pruned_through.is_not(None), exists().where(older))
    return connection.execute(query).scalars().all()


def prune(connection: Connection, job_id: str, most: int) -> int:
    """Delete some segments of a job that is being pruned; returns their number."""
    through = select(jobs.c.pruned_through).where(jobs.c.job_id == job_id).scalar_subquery()
    query = select(segments.c.id).where(segments.c.job_id == job_id, segments.c.received_at <= through)
    ids = connection.execute(query.order_by(segments.c.id).limit(most)).scalars().all()
    if ids:
        connection.execute(delete(segments).where(segments.c.id.in_(ids)))
    return len(ids)
