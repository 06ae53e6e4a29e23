"""What the query API answers about runs and their families, as immutable rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_core.fleet.families import Family


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt whose loop began: `figures` in seconds, or shares of the loop (0 to 1)."""

    job_id: str
    attempt: int
    start: float
    family: str
    cluster: str = ""
    owner: str = ""
    accelerator_type: str = ""
    world_size: int = 0
    config_hash: str = ""
    versions: Mapping[str, str] = {}
    figures: Mapping[str, float] = {}


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/runs`."""

    as_of: float
    begin: float
    end: float
    runs: Sequence[RunRow]
    total: int
    next_offset: int | None = None


class Families(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /api/v1/families`."""

    as_of: float
    begin: float
    end: float
    families: Sequence[Family]
