"""What is compared: each row is two ways to start the same job, and the figure that is read of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jobs import Start, compile_s, plan_s, tts_s

from ett_core.accounting import JobAccount

SIDE_BY_SIDE = "stages,toolchain,fast_batch"


@dataclass(frozen=True)
class Row:
    """One comparison; `figure` is seconds, less is better."""

    words: str
    rival: Start
    ours: Start
    figure: Callable[[JobAccount], float]


def plain(warmup_s: float = 0.0) -> Start:
    """A trainer without any part."""
    return Start(warmup_s=warmup_s)


def tts_row(parts: str, warmup_s: float, words: str, *, primed: bool = False) -> Row:
    """Time to start against a plain trainer."""
    told = f"time to start, {words}, data warm up for {warmup_s:.0f} s"
    return Row(told, plain(warmup_s), Start(parts=parts, warmup_s=warmup_s, primed=primed), tts_s)


ROWS: dict[str, Row] = {
    **{
        f"tts-{warmup_s}": tts_row(SIDE_BY_SIDE, warmup_s, f"`{SIDE_BY_SIDE}`, nothing cached")
        for warmup_s in (0, 15, 60)
    },
    "tts-all-15": tts_row("all", 15, "`all`, nothing cached"),
    "tts-kept-15": tts_row("all", 15, "`all`, with the store of an earlier start", primed=True),
    "compile-kept": Row(
        "compile seconds, `bundle` with the store of an earlier start",
        plain(),
        Start(parts="bundle", primed=True),
        compile_s,
    ),
    "plan-kept": Row(
        "seconds of the sharding plan, `stored_plan` with the store of an earlier start",
        plain(),
        Start(parts="stored_plan", primed=True),
        plan_s,
    ),
}
"""Every row by name."""
