"""What the query API answers to what-if questions, as immutable rows; ratios are 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """Weighted time of all jobs by component, which adds up to `total`."""

    total: float
    effective_ratio: float | None = None
    components: Mapping[str, float]


class LeverRow(msgspec.Struct, frozen=True, kw_only=True):
    """One lever alone."""

    key: str
    supposes: str = ""
    saved: float
    effective_ratio: float | None = None
    gain_ratio: float | None = None


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """The time of all jobs as it is, with all chosen levers together, and with each lever alone."""

    as_of: float
    begin: float
    end: float
    weight: str
    jobs: int
    levers: Sequence[str]
    now: Sum
    together: Sum
    saved: float
    overlap: float
    alone: Sequence[LeverRow]
    warm_runs: int = 0
    between_failures_s: float | None = None
