"""Where the time of many jobs went, as the query API answers, as immutable rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class FleetTime(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of some jobs went, in accelerator-seconds that were held.

    `jobs` is None where nobody counted them.
    """

    key: str
    jobs: int | None = None
    total: float
    effective_ratio: float | None = None
    components: Mapping[str, float] = {}
    failures: int = 0


class FleetPart(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of some jobs went between two moments."""

    begin: float
    end: float
    all: FleetTime


class FleetWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/fleet`.

    `left_out`: jobs that are there for something else; `missing`: jobs that are not read yet.
    """

    as_of: float
    begin: float
    end: float
    all: FleetTime
    fleet: Sequence[FleetTime] = ()
    over_time: Sequence[FleetPart] = ()
    left_out: int = 0
    missing: int = 0
