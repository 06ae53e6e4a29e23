"""What is durable of a job, as a live job reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Protocol

from ett_core.events import AnyEvent
from ett_exporter.places import Place, Snapshot, Stored
from ett_exporter.snapshots import code_format
from ett_exporter.store import Store


class Past(Protocol):
    """What is durable of a job; every method raises `StoreError` where that cannot be read."""

    def events(self) -> Iterable[AnyEvent]:
        """Every event of the job."""

    def count(self) -> int:
        """How many events of the job there are."""

    def snapshot(self) -> Snapshot | None:
        """The last snapshot of the job that this code has made, or any where its first events are deleted."""

    def is_cut(self, known: Snapshot) -> bool:
        """Whether the events that a snapshot holds are deleted."""

    def after(self, place: Place) -> Iterable[Stored]:
        """The segments of the job beyond a place."""

    def delivered(self) -> Place | None:
        """Up to where everything of other replicas was given to the jobs; None without replicas."""


class StoredPast:
    """The past of a job, as the store holds it."""

    def __init__(self, store: Store, job_id: str, delivered: Callable[[], Place | None]) -> None:
        self._store = store
        self._job_id = job_id
        self.delivered = delivered

    def events(self) -> Iterable[AnyEvent]:
        """Every event of the job."""
        return chain.from_iterable(self._store.events(self._job_id))

    def count(self) -> int:
        """How many events of the job there are."""
        return self._store.event_count(self._job_id)

    def snapshot(self) -> Snapshot | None:
        """The last snapshot of the job that this code has made, or any where its first events are deleted."""
        return self._store.snapshot(self._job_id, code_format())

    def is_cut(self, known: Snapshot) -> bool:
        """Whether the events that a snapshot holds are deleted."""
        return self._store.is_cut(known)

    def after(self, place: Place) -> Iterable[Stored]:
        """The segments of the job beyond a place."""
        return self._store.segments_after(self._job_id, place)
