"""Settings and limits of the exporter; every limit is explicit and refused with a clear answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from ett_exporter.owners import Shard

MIB = 1024 * 1024
DAY_S = 86_400.0
SHORTEST_RETENTION_DAYS = 8
"""Longer than the longest trailing window."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much the exporter takes in before it refuses."""

    body_bytes: int = 8 * MIB
    """Bytes of a request body as sent; more is answered 413."""
    segment_bytes: int = 64 * MIB
    """Bytes of a body after decompression; more is answered 413."""
    line_bytes: int = 64 * 1024
    """Bytes of one line; a longer line is rejected, the rest of its segment is kept."""
    segment_lines: int = 20_000
    """Lines of one segment; more are answered 413."""
    jobs: int = 10_000
    """Jobs in the memory of one exporter; a segment of a further job is answered 503."""
    series: int = 2_000_000
    """Series of jobs on /metrics; jobs beyond, the latest to come first, are left out and counted."""
    concurrent_segments: int = 32
    """Segments taken in at the same time; more are answered 503 and tried again by the sender."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set; `ett exporter --help` shows the same."""

    host: str = "127.0.0.1"
    """Address to listen on; the default is this machine only."""
    port: int = 9410
    """Port to listen on; 0 takes a free one."""
    database: str = "ettwatch.sqlite"
    """Path of an SQLite file, or an SQLAlchemy URL."""
    shard: Shard | None = None
    """The share of this replica, where several use one PostgreSQL database; None: all jobs."""
    watch: tuple[Path, ...] = ()
    """Directories whose `*.jsonl` journals are followed."""
    watch_interval_s: float = 1.0
    """Seconds between two looks at the watched directories."""
    ended_grace_s: float = 300.0
    """Seconds that an ended job stays on /metrics."""
    retain_days: float = 90.0
    """Days that the events of a job are kept after its last one; its account stays. 0 keeps all."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Check what the user chose.

        Raises:
            ValueError: a value is out of its range; the message names the option.
        """
        if not 0 <= self.port <= 65_535:  # noqa: PLR2004 - the range of ports
            raise ValueError(f"--port {self.port} is not between 0 and 65535")
        if not self.host:
            raise ValueError("--host needs an address to listen on, such as 127.0.0.1")
        if not self.ended_grace_s >= 0:
            raise ValueError(f"--ended-grace-s needs seconds, at least 0, not {self.ended_grace_s:g}")
        if self.retain_days and not SHORTEST_RETENTION_DAYS <= self.retain_days < math.inf:
            least = f"at least {SHORTEST_RETENTION_DAYS}, or 0 for no end"
            raise ValueError(f"--retain needs days, {least}, not {self.retain_days:g}")
        if not self.watch_interval_s > 0:
            raise ValueError(f"watch_interval_s needs seconds above 0, not {self.watch_interval_s:g}")
        for directory in self.watch:
            if not directory.is_dir():
                raise ValueError(f"--watch {directory}: no such directory")

    @property
    def retain_s(self) -> float:
        """The retention in seconds; 0 keeps all."""
        return self.retain_days * DAY_S
