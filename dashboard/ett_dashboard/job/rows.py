"""What the query API answers about the parts of a job, as immutable rows.

Times are Unix seconds; names in `_s` hold seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ett_core.compile_log import CompileLine
from ett_core.decision_log import DecisionLine


class RankRow(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of the latest attempt; `step_s` and `data_wait_s` are means of its latest minute."""

    rank: int
    node: str = ""
    first_batch_at: float | None = None
    last_event_at: float | None = None
    step_s: float | None = None
    data_wait_s: float | None = None
    is_straggler: bool = False


class StragglerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that was slower than the others, `ratio` times as slow; `cause`: step, data_wait or stopped."""

    attempt: int
    rank: int
    node: str = ""
    since: float
    until: float
    ratio: float
    cause: str
    ongoing: bool = False


class Ranks(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/jobs/{job_id}/ranks`."""

    as_of: float
    attempt: int | None = None
    critical_rank: int | None = None
    step_spread: float | None = None
    ranks: Sequence[RankRow] = ()
    stragglers: Sequence[StragglerRow] = ()


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/jobs/{job_id}/decisions`."""

    as_of: float
    decisions: list[DecisionLine] = []
    total: int = 0


class Compilations(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/jobs/{job_id}/compilations`; `count` and `again` are over all ranks."""

    as_of: float
    torch: str = ""
    count: int = 0
    again: int = 0
    compilations: list[CompileLine] = []
