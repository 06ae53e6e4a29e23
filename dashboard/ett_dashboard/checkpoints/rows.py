"""What the query API answers about checkpoint intervals, as immutable rows; names in `_s` hold seconds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class IntervalRow(msgspec.Struct, frozen=True, kw_only=True):
    """How one job saves, and how it should; `best_s` is null where nothing failed.

    `slowed_s`: by how much one save in the background slows the steps beside it; null where nobody can tell.
    `loop_s`: seconds in which its loop went on, stalls aside; the shares are of these.
    """

    job_id: str
    job_name: str = ""
    team: str = ""
    model: str = ""
    cluster: str = ""
    state: str = ""
    finished: bool = False
    accelerators: int = 1
    saves: int
    failures: int
    wall_s: float
    loop_s: float
    interval_s: float
    blocking_s: float
    slowed_s: float | None = None
    upload_s: float | None = None
    blocked_s: float = 0.0
    unsaved_s: float = 0.0
    recovery_s: float = 0.0
    best_s: float | None = None
    shortest_s: float
    longest_s: float | None = None
    wasted_percent: float
    best_percent: float | None = None
    excess_accelerator_s: float = 0.0

    @property
    def title(self) -> str:
        """The name that people gave the job, else its identity."""
        return self.job_name or self.job_id


class Intervals(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that save, those first whose interval costs most beyond the best."""

    as_of: float
    jobs: Sequence[IntervalRow]
    total: int
    next_offset: int | None = None

    def of(self, job_id: str) -> IntervalRow | None:
        """The row of one job; None where it is not among them."""
        return next((row for row in self.jobs if row.job_id == job_id), None)
