"""The history of a fleet: the rows of its jobs, kept between questions so that only what is new is read.

Any thread may ask. Memory is bounded: runs and failures of the jobs that ended last are kept, up to a
number; those of others are not looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ett_core.accounting import AttemptAccount, FailureAccount
from ett_core.components import COMPONENTS
from ett_core.failures import Diagnosis
from ett_core.fleet.endings import FAILED
from ett_core.fleet.rows import Failure, Rows, rows_of
from ett_core.packed_records import Packed, PackedRecords
from ett_exporter.views import JobView

MOST_ROWS = 60_000
"""Runs and failures kept, together; at about 1 kB each."""
RECOVERING = frozenset(name for name in COMPONENTS if name.startswith("recover."))
"""Components that grow until a job has recovered from its last failure."""


class _Kept(msgspec.Struct, frozen=True):
    known: _Known
    failures_of: _FailuresOf | None
    rows: Rows


class FleetHistory:
    """The rows of all jobs, from their views."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._most = most_rows
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def rows(self, views: Iterable[JobView]) -> list[Rows]:
        """The rows of these jobs; of too many, those of the jobs that ended last."""
        with self._lock:
            found = [self._rows(view) for view in views]
            self._forget()
            return [each for each in found if each.job_id in self._kept]

    def failures(self, views: Iterable[JobView]) -> list[Sequence[Failure]]:
        """The failures of these jobs, by job; of too many jobs, of those that ended last.

        Time alone changes nothing of them once the job trains again.
        """
        with self._lock:
            found = [(view.account.job_id, self._failures(view)) for view in views]
            self._forget()
            return [failures for job_id, failures in found if job_id in self._kept]

    def of_job(self, view: JobView) -> Rows:
        """The rows of one job."""
        with self._lock:
            kept = self._kept.get(view.account.job_id)
            return kept.rows if kept and kept.known == _known(view) else rows_of_view(view)

    def _rows(self, view: JobView) -> Rows:
        job_id, known = view.account.job_id, _known(view)
        kept = self._kept.get(job_id)
        if kept is None or kept.known != known:
            kept = self._kept[job_id] = _Kept(known, _failures_of(view), rows_of_view(view))
        return kept.rows

    def _failures(self, view: JobView) -> Sequence[Failure]:
        kept = self._kept.get(view.account.job_id)
        if kept is not None and kept.failures_of is not None and kept.failures_of == _failures_of(view):
            return kept.rows.failures
        return self._rows(view).failures

    def _forget(self) -> None:
        """Forget the jobs that ended first, while there are too many rows."""
        sizes = {job_id: _size(kept.rows) for job_id, kept in self._kept.items()}
        spare = sum(sizes.values()) - self._most
        if spare <= 0:
            return
        for job_id in sorted(sizes, key=lambda job_id: self._kept[job_id].rows.end):
            if spare <= 0:
                break
            spare -= sizes[job_id]
            del self._kept[job_id]


def rows_of_view(view: JobView) -> Rows:
    """The rows of a job as it was seen."""
    details = view.details
    return rows_of(view.account, view.diagnoses, details.labels, details.starts, details.accelerator_type)


def _size(rows: Rows) -> int:
    return len(rows.runs) + len(rows.failures)


class _Known(NamedTuple):
    """What rows were made of, in small: while it is the same, so are they."""

    as_of: float | None
    """None of a job that is over: time alone changes it no more."""
    end: float
    last_event_at: float
    components: Mapping[str, float]
    labels: Mapping[str, str]
    diagnoses: Sequence[Diagnosis]


def _known(view: JobView) -> _Known:
    account = view.account
    return _Known(
        as_of=None if account.finished else account.as_of,
        end=account.end,
        last_event_at=account.last_event_at,
        components=account.components,
        labels=view.details.labels,
        diagnoses=view.diagnoses,
    )


class _FailuresOf(NamedTuple):
    """What the failures of a job in memory were made of."""

    earlier: Packed[AttemptAccount]
    """All attempts but the last, as one object."""
    last: AttemptAccount | None
    """The last one, where it has failed."""
    recovering_s: Sequence[float]
    failures: Sequence[FailureAccount]
    labels: Mapping[str, str]
    accelerator_type: str
    diagnoses: Sequence[Diagnosis]


def _failures_of(view: JobView) -> _FailuresOf | None:
    attempts, components = view.account.attempts, view.account.components
    if not isinstance(attempts, PackedRecords) or not attempts:
        return None
    last = attempts[-1]
    return _FailuresOf(
        attempts.earlier,
        last if last.outcome == FAILED else None,
        [seconds for name, seconds in components.items() if name in RECOVERING],
        view.account.failures,
        view.details.labels,
        view.details.accelerator_type,
        view.diagnoses,
    )
