"""Settings and limits of the exporter; every limit is explicit and refused with a clear answer."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ett_core.events import LABEL_CHARACTERS, MOST_LABELS
from ett_exporter.owners import Shard

MIB = 1024 * 1024
DAY_S = 86_400.0
SHORTEST_RETENTION_DAYS = 8
"""Longer than the longest trailing window."""
LOG_FORMATS = ("text", "json")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much the exporter takes in before it refuses."""

    body_bytes: int = 8 * MIB
    """Bytes of a request body as sent; more is answered 413."""
    segment_bytes: int = 64 * MIB
    """Bytes of a body after decompression; more is answered 413."""
    segment_memory_bytes: int = 256 * MIB
    """Bytes of memory that a body may take once it is decoded, as is estimated; more is answered 413."""
    small_bytes: int = 16 * MIB
    """Bytes of such memory up to which a body is a small one."""
    line_bytes: int = 64 * 1024
    """Bytes of one line; a longer line is rejected, the rest of its segment is kept."""
    segment_lines: int = 20_000
    """Lines of one segment; more are answered 413."""
    jobs: int = 10_000
    """Jobs in the memory of one exporter; a segment of a further job is answered 503."""
    closed_views: int = 10_000
    """Jobs that are over, and behind every window, whose answers stay in memory once they were read."""
    series: int = 2_000_000
    """Series of jobs on /metrics; jobs beyond, the latest to come first, are left out and counted."""
    labels: int = MOST_LABELS
    """Labels of an `attempt_start`; a line with more is rejected."""
    label_characters: int = LABEL_CHARACTERS
    """Characters of a label's name or value; a line with a longer one is rejected."""
    concurrent_segments: int = 32
    """Segments taken in at the same time; others wait for their turn."""
    concurrent_large: int = 2
    """The same of bodies that are not small; they wait beside the others."""
    waiting_large: int = 16
    """Such bodies that wait for their turn; more are answered 503."""
    waiting_large_of_sender: int = 8
    """The same of one sender (token or address); more are answered 429."""
    waiting_segments: int = 2000
    """Segments that wait for their turn; more are answered 503."""
    waiting_of_sender: int = 400
    """The same of one sender (token or address); more are answered 429."""
    unread_bytes: int = 256 * MIB
    """Bytes of all bodies that are being read or wait; more are answered 503."""
    head_s: float = 20.0
    """Seconds for the head of a request; a connection that is slower is closed."""
    head_bytes: int = 64 * 1024
    """Bytes for the head of a request, and for what comes beside its body; more is answered 431, or not."""
    body_s: float = 30.0
    """Seconds for the body of a request; a slower one is answered 408."""
    send_s: float = 60.0
    """Seconds in which a client that has stopped reading its answer must read on; else it is closed."""
    read_bytes_per_s: int = 8 * 1024
    """Bytes of its answer that a client must read a second, but for `send_s` seconds; else it is closed."""
    polls: int = 5000
    """Readers that wait for changes at the same time; further ones are answered at once."""


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
    """Directories whose journals (`*.jsonl`, `*.jsonl.gz`) are followed."""
    watch_interval_s: float = 1.0
    """Seconds between two looks at the watched directories."""
    ended_grace_s: float = 300.0
    """Seconds that an ended job stays on /metrics."""
    retain_days: float = 90.0
    """Days that the events of a job are kept after its last one; its account stays. 0 keeps all."""
    tokens: Path | None = None
    """File of the tokens that senders and readers need; None: nobody needs one."""
    insecure: bool = False
    """Whether to listen beyond this machine without tokens."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """What an hour of an accelerator costs, by its type."""
    log_format: str = "text"
    """`text` or `json`: how the log is written."""
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
        self._check_doors()
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

    def _check_doors(self) -> None:
        if self.tokens is None and not self.insecure and not is_loopback(self.host):
            raise ValueError(
                f"--host {self.host} lets other machines in: give --tokens FILE "
                "('ett exporter token' makes one), or say --insecure to let everybody read and write"
            )
        if self.log_format not in LOG_FORMATS:
            raise ValueError(f"--log-format {self.log_format!r} is neither of {', '.join(LOG_FORMATS)}")
        for kind, price in self.prices.items():
            if not 0 <= price < math.inf:
                raise ValueError(f"--price {kind}={price:g} is no price of an hour")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("node1")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
