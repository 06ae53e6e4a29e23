"""What only a server of metrics is asked, as immutable rows; ratios are 0 to 1, moments Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_dashboard.rows import CacheRow, Job


class JobHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A job over time: moments and its effective ratio by the window that each looks back.

    `samples_per_s`: moments and samples a second before each.
    """

    as_of: float
    effective: Mapping[str, Sequence[tuple[float, float]]]
    samples_per_s: Sequence[tuple[float, float]] = ()


class CacheTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Compile caches: requests by cache and seconds by stage of all jobs in the last hour, and some jobs.

    `is_recorded` is False where no rule records what all jobs did: the totals are then those of `jobs`
    since they began. `compile_of_jobs`: compile seconds of each of them.
    """

    as_of: float
    is_recorded: bool
    caches: Mapping[str, CacheRow]
    compile: Mapping[str, float]
    saved_s: float
    jobs: Sequence[Job]
    compile_of_jobs: Mapping[str, float]
