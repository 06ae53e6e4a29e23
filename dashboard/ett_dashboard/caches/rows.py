"""What the query API answers about caches by run, as immutable rows.

Fields that this version does not know are ignored. Times are Unix seconds, names that end in `_s`
hold seconds, in `_ratio` 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_core.fleet.cache_compare import Difference
from ett_core.fleet.caches import COLD, HOLLOW, CacheRun


class CacheRunRow(CacheRun, frozen=True, kw_only=True):
    """A run with its verdict, and whether it should have been warm."""

    verdict: str = ""
    expected_warm: bool = False
    because: str = ""
    alike: str = ""

    @property
    def is_surprise(self) -> bool:
        """Whether it was expected to be warm and was not."""
        return self.expected_warm and self.verdict in (COLD, HOLLOW)


class CacheRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, the latest first; the counts are of all that match."""

    as_of: float
    runs: Sequence[CacheRunRow]
    total: int
    next_offset: int | None = None
    verdicts: Mapping[str, int] = {}
    surprises: int = 0


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side; `reasons` are about the colder one, `cold`."""

    as_of: float
    one: CacheRunRow
    two: CacheRunRow
    cold: str
    differences: Sequence[Difference]
    reasons: Sequence[str]
