"""Who owns the time of a start, and the time between two attempts: pure, for the books of a simulated job.

Shares are components with their nanoseconds; together they are all of that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ett_cli.simulate.starts import NAMED, Start, owned
from ett_cli.simulate.voices import Origin

Shares: TypeAlias = list[tuple[str, int]]


def shares_of_gap(
    failed_ns: int, torn_ns: int, until_ns: int, allocated_ns: int | None
) -> Iterator[tuple[str, int]]:
    """From a failure to the next attempt, or to the end; `torn_ns`: when the failed one was gone.

    >>> dict(shares_of_gap(0, 3, 20, allocated_ns=15))
    {'recover.teardown': 3, 'recover.queue': 12, 'recover.allocation': 5}
    >>> dict(shares_of_gap(0, 3, 20, allocated_ns=None))
    {'recover.teardown': 3, 'recover.restart': 17}
    """
    torn_ns = max(torn_ns, failed_ns)
    yield "recover.teardown", torn_ns - failed_ns
    if allocated_ns is None or allocated_ns <= failed_ns:
        yield "recover.restart", until_ns - torn_ns
    else:
        yield "recover.queue", max(allocated_ns, torn_ns) - torn_ns
        yield "recover.allocation", until_ns - max(allocated_ns, torn_ns)


def shares_of_start(
    start: Start, origin: Origin, prefix: str, start_ns: int, until: tuple[int, int | None]
) -> tuple[Shares, int]:
    """The start of an attempt up to a moment, at most until all train; and when that is.

    `prefix`: `start` or `recover`. `until`: a moment in milliseconds of the window, and in nanoseconds where
    that is known better than whoever was waited for can say.
    """
    until_ms, until_ns = until
    who = start.who(until_ms)
    if who is None:
        until_ns = origin.ns(until_ms) if until_ns is None else until_ns
        return [("unobserved", until_ns - start_ns)], until_ns
    if who.begun_ms <= until_ms:
        until_ms, until_ns = who.begun_ms, who.voice.ns(who.begun_ms)
    elif until_ns is None:
        until_ns = who.voice.ns(until_ms)
    at = min(who.voice.ns(who.pieces[0].begin_ms), until_ns)
    shares = [(f"{prefix}.process_start", at - start_ns)]
    for begin_ms, end_ms, phase in owned(who, until_ms):
        begin_ns, end_ns = who.voice.ns(begin_ms), min(who.voice.ns(end_ms), until_ns)
        shares.append((f"{prefix}.other", begin_ns - at))
        shares.append((f"{prefix}.{phase if phase in NAMED else 'other'}", end_ns - begin_ns))
        at = end_ns
    return [*shares, (f"{prefix}.other", until_ns - at)], until_ns
