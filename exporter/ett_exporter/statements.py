"""Statements that insert or change, in the words of the database; made once, for making them takes long."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Insert, Table, case, insert, null
from sqlalchemy.dialects import postgresql, sqlite

from ett_exporter.schema import jobs, live_jobs, segments, snapshots, writers


class Statements:
    """Those of one kind of database."""

    def __init__(self, *, is_postgresql: bool) -> None:
        self._kind: type[postgresql.Insert | sqlite.Insert]
        self._kind = postgresql.Insert if is_postgresql else sqlite.Insert
        self.keep = insert(segments).returning(segments.c.id, sort_by_parameter_order=True)
        """Keeps segments, and gives their ids in their order."""
        self.note_job = self._note_job()
        """A job was heard of: its latest time counts, and rows that were written of it lack something."""
        self.note_held = self._upsert(writers, ["job_id", "writer"], ["ranges"])
        """The numbers that are held of a writer."""
        self.note_writer = self._kind(writers).on_conflict_do_nothing()
        """A writer is there, so that its row can be locked."""
        self.count_live_jobs = self._upsert(live_jobs, ["place"], ["count"])
        """How many jobs a replica holds."""
        saved = [column.name for column in snapshots.columns if not column.primary_key]
        self.save_snapshot = self._upsert(snapshots, ["job_id"], saved)
        """A snapshot in the place of an older one."""

    def _note_job(self) -> Insert:
        statement = self._kind(jobs)
        new, old = statement.excluded.last_received_at, jobs.c.last_received_at
        later: ColumnElement[float] = case((new > old, new), else_=old)
        changed = {"last_received_at": later, "closed_through": null()}
        return statement.on_conflict_do_update(index_elements=["job_id"], set_=changed)

    def _upsert(self, table: Table, keys: Sequence[str], changing: Sequence[str]) -> Insert:
        """Insert rows of a table; where the key is there, change these columns."""
        statement = self._kind(table)
        new = {name: statement.excluded[name] for name in changing}
        return statement.on_conflict_do_update(index_elements=list(keys), set_=new)
