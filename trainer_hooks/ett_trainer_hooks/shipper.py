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
from pathlib import Path

from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.segments import (
    Segment,
    acknowledge,
    halved,
    journals_in,
    next_segment,
    unsent_bytes,
)
from ett_trainer_hooks.transport import Post, Reply, Verdict, verdict_of

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0
REFUSED_HOLD_S = 60.0
TRY_AGAIN = (http.HTTPStatus.REQUEST_TIMEOUT, http.HTTPStatus.TOO_MANY_REQUESTS)


class Shipper:
    """Sends what is unsent in `directory` by `post`; see the module.

    `poll_s` is the pause between two looks at the directory while all goes well. A journal that
    the exporter refuses for good (a 4xx that waiting does not cure) rests for a minute.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        directory: Path,
        post: Post,
        *,
        poll_s: float = 0.5,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
        guard: Guard | None = None,
    ) -> None:
        self._directory = directory
        self._post = post
        self._poll_s = poll_s
        self._wall = wall
        self._monotonic = monotonic
        self._sleep = sleep
        self._chance = chance
        self._guard = guard or Guard()
        self._failures = 0
        self._held_until_s: dict[Path, float] = {}

    def run(self, stop: threading.Event, drain_s: float = 5.0) -> bool:
        """Ship until `stop` is set, then for at most `drain_s` more; True where nothing is left."""
        while not stop.wait(self.ship()):
            pass
        deadline_s = self._monotonic() + drain_s
        pause_s = self.ship()
        while self.unsent_bytes() and (left_s := deadline_s - self._monotonic()) > 0:
            self._sleep(min(pause_s, self._poll_s, left_s))
            pause_s = self.ship()
        return not self.unsent_bytes()

    def unsent_bytes(self) -> int:
        """Bytes of whole lines that the exporter has not acknowledged."""
        return unsent_bytes(self._directory)

    def ship(self) -> float:
        """Send what there is; returns the seconds to wait before the next call.

        A journal that cannot be read, or an offset that cannot be written, is tried again later.
        """
        try:
            pause_s = self._ship_all()
        except OSError as error:
            self._guard.say_once("disk", f"{self._directory}: {error}; trying again")
            pause_s = backoff_s(self._failures, self._chance())
        self._failures = 0 if pause_s is None else self._failures + 1
        return self._poll_s if pause_s is None else pause_s

    def _ship_all(self) -> float | None:
        """Send the journals up to their ends; the seconds to wait where nobody takes them now."""
        for journal in journals_in(self._directory):
            pause_s = self._ship_journal(journal)
            if pause_s is not None:
                return pause_s
        return None

    def _ship_journal(self, journal: Path) -> float | None:
        """Send a journal up to its end; the seconds to wait where nobody takes it now."""
        while not self._is_held(journal) and (segment := next_segment(journal)) is not None:
            if not segment.data:
                self._pass_over(segment)
            elif (pause_s := self._send(segment)) is not None:
                return pause_s
        return None

    def _send(self, segment: Segment) -> float | None:
        try:
            reply = self._post(segment.data, self._wall())
        except OSError as error:
            self._guard.say_once("unreachable", f"exporter not reachable ({error}); journals wait on disk")
            return backoff_s(self._failures, self._chance())
        if reply.status == http.HTTPStatus.OK:
            self._warn_of_rejected(segment, verdict_of(reply))
            acknowledge(segment.journal, segment.end)
            return None
        if reply.status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            if half := halved(segment):
                return self._send(half)
            self._pass_over(segment)
            return None
        if is_temporary(reply.status):
            return max(backoff_s(self._failures, self._chance()), reply.retry_after_s or 0.0)
        self._hold(segment, reply)
        return None

    def _pass_over(self, segment: Segment) -> None:
        """Give up a line that no exporter takes for its length."""
        where = f"{segment.journal}: line at byte {segment.start}"
        self._guard.say_once("long", f"{where} is too long for an exporter and passed over")
        acknowledge(segment.journal, segment.end)

    def _warn_of_rejected(self, segment: Segment, verdict: Verdict) -> None:
        if verdict.rejected:
            first = verdict.rejected[0]
            text = f"the exporter rejected {len(verdict.rejected)} lines of {segment.journal}: {first.reason}"
            self._guard.say_once("rejected", text)

    def _hold(self, segment: Segment, reply: Reply) -> None:
        why = verdict_of(reply).error
        text = (
            f"the exporter refuses {segment.journal} with status {reply.status} ({why}); trying every minute"
        )
        self._guard.say_once("refused", text)
        self._held_until_s[segment.journal] = self._monotonic() + REFUSED_HOLD_S

    def _is_held(self, journal: Path) -> bool:
        until_s = self._held_until_s.get(journal)
        return until_s is not None and self._monotonic() < until_s


def is_temporary(status: int) -> bool:
    """Waiting may cure what the exporter answered.

    >>> is_temporary(503), is_temporary(429), is_temporary(400)
    (True, True, False)
    """
    return status >= http.HTTPStatus.INTERNAL_SERVER_ERROR or status in TRY_AGAIN


def backoff_s(failures: int, chance: float) -> float:
    """Seconds to wait after so many failures in a row; `chance` in [0, 1) spreads many shippers.

    >>> backoff_s(0, 0.0), backoff_s(3, 0.5), backoff_s(50, 1.0)
    (0.25, 3.0, 30.0)
    """
    longest_s = min(FIRST_BACKOFF_S * 2.0 ** min(failures, 10), LONGEST_BACKOFF_S)
    return longest_s * (0.5 + 0.5 * chance)
