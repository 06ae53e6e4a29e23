"""Running totals of many jobs over one trailing window: a query adds up groups, not jobs.

Whole nanoseconds, so that what a job's older view gave is taken away exactly when a newer one
comes. Held by one thread at a time (the caller locks).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ett_core.accounting import FailureAccount
from ett_core.accounting.account import nanoseconds
from ett_exporter.live import JobView


class Kind(NamedTuple):
    """What jobs are grouped and chosen by; jobs of one kind share their totals."""

    cluster: str
    team: str
    model: str
    scheduler: str
    accelerator_type: str
    state: str


class Total:
    """The jobs of one kind: how many, and their nanoseconds by component, plain and times accelerators."""

    __slots__ = ("held_ns", "jobs", "wall_ns")

    def __init__(self) -> None:
        self.jobs = 0
        self.wall_ns: dict[str, int] = {}
        self.held_ns: dict[str, int] = {}


class Part(NamedTuple):
    """What one job gave to the totals."""

    view: JobView
    kind: Kind
    start: tuple[float, float] | None
    """When it began to train, and how long that took."""
    failures: Sequence[FailureAccount]


class FleetTotals:
    """The totals over one of the windows of the views."""

    def __init__(self, window: str) -> None:
        self._window = window
        self._parts: dict[str, Part] = {}
        self._totals: dict[Kind, Total] = {}

    def update(self, views: Sequence[JobView]) -> None:
        """Make the totals those of `views`; what a view gave that is still the same stays."""
        parts = self._parts
        for view in views:
            job_id = view.account.job_id
            known = parts.get(job_id)
            if known is None or known.view is not view:
                self._replace(job_id, known, view)
        if len(parts) > len(views):
            there = {view.account.job_id for view in views}
            for job_id in [job_id for job_id in parts if job_id not in there]:
                self._add(parts.pop(job_id), -1)

    def by_kind(self) -> Iterator[tuple[Kind, Total]]:
        """Each kind of which there is a job with time in the window, and its totals."""
        return ((kind, total) for kind, total in self._totals.items() if total.jobs)

    def parts(self) -> Iterable[Part]:
        """What each job gave."""
        return self._parts.values()

    def _replace(self, job_id: str, known: Part | None, view: JobView) -> None:
        if known is not None:
            self._add(known, -1)
        part = self._parts[job_id] = part_of(view)
        self._add(part, 1)

    def _add(self, part: Part, sign: int) -> None:
        components = part.view.windows[self._window]
        if not components:
            return
        total = self._totals.get(part.kind)
        if total is None:
            total = self._totals[part.kind] = Total()
        total.jobs += sign
        accelerators = part.view.accelerator_weight
        wall, held = total.wall_ns, total.held_ns
        for name, seconds in components.items():
            amount = sign * nanoseconds(seconds)
            wall[name] = wall.get(name, 0) + amount
            held[name] = held.get(name, 0) + amount * accelerators
        if not total.jobs:
            del self._totals[part.kind]


def part_of(view: JobView) -> Part:
    """What a job gives."""
    account, label = view.account, view.label
    kind = Kind(
        label("cluster"),
        label("team"),
        label("model"),
        label("scheduler"),
        view.details.accelerator_type,
        account.state,
    )
    start = None if account.tts_s is None else (account.start + account.tts_s, account.tts_s)
    return Part(view, kind, start, account.failures)
