"""The shipper: carries the journals of a directory to an exporter until they are acknowledged.

Runs in one thread of a launcher or of `ett ship`, never in a trainer. Nothing is lost while it
or the exporter is down: lines stay in the journals, and an offset moves only after the exporter
said that the lines are durable. Two shippers of one directory send some lines twice, which the
exporter counts once.
"""

from __future__ import annotations

import http
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ett_core.reasons import reason_of
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.journal.segments import (
    Segment,
    acknowledge,
    halved,
    journals_in,
    next_segment,
    unsent_bytes,
)
from ett_trainer_hooks.shipping.transport import (
    Post,
    Verdict,
    answer_in_words,
    is_acknowledgement,
    verdict_of,
)

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0
REFUSED_HOLD_S = 60.0
TRY_AGAIN = (http.HTTPStatus.REQUEST_TIMEOUT, http.HTTPStatus.TOO_MANY_REQUESTS)


@dataclass
class Tally:
    """What became of what a shipper has sent so far."""

    lines: int = 0
    """Lines that the exporter has read, the rejected ones included."""
    known: int = 0
    """Those of them that it held already."""
    rejected: int = 0
    """Lines that no exporter will take; they are passed over."""
    first_reason: str = ""
    """Why the first of the rejected lines was."""
    last_answer: str = "none"
    """Status and reason of the last answer, in words."""
    troubles: dict[Path, str] = field(default_factory=dict)
    """What was wrong with the files at the last look."""

    def reject(self, lines: int, reason: str) -> None:
        """Count lines that were rejected."""
        self.first_reason = self.first_reason if self.rejected else reason
        self.rejected += lines


class Shipper:
    """Sends what `exporter` has not acknowledged of the journals in `directory`; see the module.

    `post` sends to the exporter whose address is `exporter` (see `exporter_address`); `find` lists
    the journals of the directory; `tally` tells what became of them. `poll_s` is the pause between
    two looks at the directory while all goes well. A journal that the exporter refuses for good (with
    a status that waiting does not cure) rests for a minute.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        directory: Path,
        post: Post,
        exporter: str,
        *,
        find: Callable[[Path], list[Path]] = journals_in,
        poll_s: float = 0.5,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
        guard: Guard | None = None,
    ) -> None:
        self._directory = directory
        self._post = post
        self._exporter = exporter
        self._find = find
        self.tally = Tally()
        self._poll_s = poll_s
        self._wall = wall
        self._monotonic = monotonic
        self._sleep = sleep
        self._chance = chance
        self._guard = guard or Guard()
        self._failures = 0
        self._held_until_s: dict[Path, float] = {}
        self.is_answered: bool | None = None
        """False while the latest sending found nobody who answers; None before the first has ended."""

    def run(self, stop: threading.Event, drain_s: float = 5.0, *, awaits: bool = True) -> bool:
        """Ship until `stop` is set, then for at most `drain_s` more; True where nothing is left.

        What the exporter refuses for good is not waited for, nor, unless `awaits`, an exporter that does
        not answer once `stop` is set.
        """
        while not stop.wait(self.ship()):
            pass
        deadline_s = self._monotonic() + drain_s
        pause_s = self.ship()
        while (
            (awaits or self.is_answered)
            and self._curable_bytes()
            and (left_s := deadline_s - self._monotonic()) > 0
        ):
            self._sleep(min(pause_s, self._poll_s, left_s))
            pause_s = self.ship()
        return not self.unsent_bytes()

    def unsent_bytes(self) -> int:
        """Bytes of whole lines that the exporter has not acknowledged."""
        return sum(unsent_bytes(journal, self._exporter) for journal in self.journals())

    def journals(self) -> list[Path]:
        """The journals of the directory; none where it cannot be listed."""
        try:
            return self._find(self._directory)
        except OSError as error:
            self._note(self._directory, error)
            return []

    def ship(self) -> float:
        """Send what there is; returns the seconds to wait before the next call.

        A journal that cannot be read, or an offset that cannot be written, is tried again later; so is
        everything after a fault of our own, which is said once.
        """
        faults = self._guard.faults
        pause_s = self._guard.call(self._ship_all)
        if self._guard.faults > faults:
            pause_s = backoff_s(self._failures, self._chance())
        self._failures = 0 if pause_s is None else self._failures + 1
        return self._poll_s if pause_s is None else pause_s

    def _ship_all(self) -> float | None:
        """Send the journals up to their ends; the seconds to wait where one cannot be sent now."""
        self.tally.troubles.clear()
        for journal in self.journals():
            try:
                pause_s = self._ship_journal(journal)
            except OSError as error:
                self._note(journal, error)
                continue
            if pause_s is not None:
                return pause_s
        return backoff_s(self._failures, self._chance()) if self.tally.troubles else None

    def _note(self, path: Path, error: OSError) -> None:
        self.tally.troubles[path] = f"{error.filename or path}: {reason_of(error)}"
        self._guard.say_once("disk", f"{path}: {error}; trying again")

    def _curable_bytes(self) -> int:
        """Bytes that trying again may get acknowledged."""
        waiting = (journal for journal in self.journals() if not self._is_held(journal))
        return sum(unsent_bytes(journal, self._exporter) for journal in waiting)

    def _ship_journal(self, journal: Path) -> float | None:
        """Send a journal up to its end; the seconds to wait where nobody takes it now."""
        while not self._is_held(journal) and (segment := self._next(journal)) is not None:
            if not segment.data:
                self._pass_over(segment)
            elif (pause_s := self._send(segment)) is not None:
                return pause_s
        return None

    def _next(self, journal: Path) -> Segment | None:
        return next_segment(journal, self._exporter)

    def _send(self, segment: Segment) -> float | None:
        try:
            reply = self._post(segment.data, self._wall())
        except OSError as error:
            self.is_answered = False
            self.tally.last_answer = f"none ({reason_of(error)})"
            self._guard.say_once("unreachable", f"exporter not reachable ({error}); journals wait on disk")
            return backoff_s(self._failures, self._chance())
        self.is_answered = True
        self.tally.last_answer = answer_in_words(reply)
        if is_acknowledgement(reply):
            acknowledge(segment.journal, self._exporter, segment.end)
            self._count(segment, verdict_of(reply))
            return None
        if reply.status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            if half := halved(segment):
                return self._send(half)
            self._pass_over(segment)
            return None
        if is_temporary(reply.status):
            return max(backoff_s(self._failures, self._chance()), reply.retry_after_s or 0.0)
        self._hold(segment)
        return None

    def _pass_over(self, segment: Segment) -> None:
        """Give up a line that no exporter takes for its length."""
        acknowledge(segment.journal, self._exporter, segment.end)
        self.tally.reject(1, "a line is too long for an exporter")
        where = f"{segment.journal}: line at byte {segment.start}"
        self._guard.say_once("long", f"{where} is too long for an exporter and passed over")

    def _count(self, segment: Segment, verdict: Verdict) -> None:
        self.tally.lines += segment.data.count(b"\n")
        self.tally.known += verdict.duplicates
        if verdict.rejected:
            first = verdict.rejected[0]
            self.tally.reject(len(verdict.rejected), first.reason)
            text = f"the exporter rejected {len(verdict.rejected)} lines of {segment.journal}: {first.reason}"
            self._guard.say_once("rejected", text)

    def _hold(self, segment: Segment) -> None:
        why = self.tally.last_answer
        self._guard.say_once(
            "refused", f"the exporter refuses {segment.journal} ({why}); trying every minute"
        )
        self._held_until_s[segment.journal] = self._monotonic() + REFUSED_HOLD_S

    def _is_held(self, journal: Path) -> bool:
        until_s = self._held_until_s.get(journal)
        return until_s is not None and self._monotonic() < until_s


def is_temporary(status: int) -> bool:
    """Waiting may cure what the exporter answered.

    >>> is_temporary(503), is_temporary(429), is_temporary(400), is_temporary(501)
    (True, True, False, False)
    """
    if status == http.HTTPStatus.NOT_IMPLEMENTED:
        return False
    return status >= http.HTTPStatus.INTERNAL_SERVER_ERROR or status in TRY_AGAIN


def backoff_s(failures: int, chance: float) -> float:
    """Seconds to wait after so many failures in a row; `chance` in [0, 1) spreads many shippers.

    >>> backoff_s(0, 0.0), backoff_s(3, 0.5), backoff_s(50, 1.0)
    (0.25, 3.0, 30.0)
    """
    longest_s = min(FIRST_BACKOFF_S * 2.0 ** min(failures, 10), LONGEST_BACKOFF_S)
    return longest_s * (0.5 + 0.5 * chance)
