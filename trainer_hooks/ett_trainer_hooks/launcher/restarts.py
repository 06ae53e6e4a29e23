"""When a launcher starts its command again, and after how long. Pure functions of how it ended.

>>> policy = RestartPolicy(max_restarts=3, on=("oom", "SIGKILL", "75"))
>>> policy.allows(Ending(status=75)), policy.allows(Ending(status=1)), policy.allows(Ending(status=-9))
(True, False, True)
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ett_core.waits import check_wait

FAILED = "failed"
CAUSES = (FAILED, "oom", "killed", "crashed", "preempted")
"""Short words for how a command may end; names of signals and exit codes are causes as well."""
CRASHES = frozenset(
    int(number)
    for number in (
        signal.SIGSEGV,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGSYS,
    )
)
LONGEST_DELAY_S = 300.0
RESTED_AFTER_S = 600.0
"""An attempt that lasted this long begins the delays anew: its failure is not that of a loop."""
MOST_ATTEMPTS = 1000
"""So many numbers lie between two starts by a scheduler."""
HIGHEST_CODE = 255


class Ending(msgspec.Struct, frozen=True):
    """How a command ended: its exit status, and those of its ranks that failed (minus a signal).

    `oom_kills` counts the processes that the kernel ended for want of memory meanwhile.
    """

    status: int
    ranks: tuple[int, ...] = ()
    oom_kills: int = 0


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """Whether a command that failed is started again."""

    max_restarts: int = 0
    """So often at most; 0: never."""
    delay_s: float = 5.0
    """Seconds before the first restart; each further one waits twice as long, at most five minutes."""
    on: Sequence[str] = (FAILED,)
    """Causes of which one must hold: words of `CAUSES`, names of signals (`SIGSEGV`), exit codes (`75`)."""

    def __post_init__(self) -> None:
        """Check what a person has given.

        Raises:
            ValueError: a setting is wrong; the message names it.
        """
        if self.max_restarts < 0:
            raise ValueError(f"max_restarts={self.max_restarts!r} is not 0 or more")
        check_wait("restart_delay", self.delay_s)
        if not self.on:
            raise ValueError("restart_on names no cause")
        for cause in self.on:
            if not is_cause(cause):
                known = ", ".join(CAUSES)
                raise ValueError(
                    f"restart_on={cause!r} is none of {known}, the name of a signal or an exit code"
                )

    def allows(self, ending: Ending) -> bool:
        """The command ended in one of the ways after which it is started again."""
        return not causes_of(ending).isdisjoint(self.on)

    def delay_before(self, restart: int) -> float:
        """Seconds to wait before a restart, the first of a row being number 1.

        >>> [RestartPolicy(delay_s=5.0).delay_before(n) for n in (1, 2, 3, 50)]
        [5.0, 10.0, 20.0, 300.0]
        """
        doubled = self.delay_s * 2.0 ** min(restart - 1, 30)
        return min(doubled, max(LONGEST_DELAY_S, self.delay_s))


def is_cause(word: str) -> bool:
    """The word is one that a command may be started again for.

    >>> is_cause("oom"), is_cause("SIGSEGV"), is_cause("3"), is_cause("0"), is_cause("SIGNONE")
    (True, True, True, False, False)
    """
    if word.isascii() and word.isdecimal():
        return 0 < int(word) <= HIGHEST_CODE
    return word in CAUSES or word in signal.Signals.__members__


def causes_of(ending: Ending) -> frozenset[str]:
    """Every word that is true of how a command ended.

    A rank that got SIGTERM was stopped by whoever started it, because another one had failed.

    >>> sorted(causes_of(Ending(status=1, ranks=(-9, -15), oom_kills=1)))
    ['1', 'SIGKILL', 'failed', 'killed', 'oom']
    >>> sorted(causes_of(Ending(status=143))), sorted(causes_of(Ending(status=0)))
    (['143', 'SIGTERM', 'failed', 'preempted'], [])
    """
    if ending.status == 0:
        return frozenset()
    ranks = [status for status in ending.ranks if status not in (0, -signal.SIGTERM)]
    statuses = [ending.status, *ranks]
    signals = {number for status in statuses if (number := signal_in(status)) is not None}
    found = {FAILED, *(str(status) for status in statuses if status > 0)}
    found |= {signal.Signals(number).name for number in signals}
    found |= {"oom"} if ending.oom_kills else set()
    found |= {"killed"} if signal.SIGKILL in signals else set()
    found |= {"crashed"} if signals & CRASHES else set()
    found |= {"preempted"} if signal_in(ending.status) == signal.SIGTERM else set()
    return frozenset(found)


def signal_in(status: int) -> int | None:
    """The signal in an exit status, also as a shell writes it (128 + n); None where there is none.

    >>> signal_in(-9), signal_in(137), signal_in(1)
    (9, 9, None)
    """
    number = -status if status < 0 else status - 128
    return number if number in signal.Signals.__members__.values() else None
