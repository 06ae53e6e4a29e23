"""How far the clock of each writer is from the receiver's: measured, recorded, never refused.

Pure: the caller holds the last recorded offset of each writer and stores the `clock` event.

A sender says when it sent. What the receiver sees of that is the difference of the clocks less the
time on the way, which nobody knows: a slow way looks like a slow clock. So a sender that has had an
answer before says, too, what it measured there: the answer told when the request had come, the
sender knows when it sent and when the answer was there, and the difference lies in between.
"""

from __future__ import annotations

import msgspec

from ett_core.events import LAUNCHER_RANK, Clock, Event

NOTEWORTHY_OFFSET_S = 2.0
"""Below this, clocks count as equal: it may be the way through the network."""
NOTEWORTHY_CHANGE_S = 0.5
LATEST_MOMENT = 4e9
JUST_AFTER_S = 0.001
LONGEST_WAY_S = 15.0
"""A request is longer on its way than this only if its sender waits longer than ours do."""


class Measured(msgspec.Struct, frozen=True):
    """An offset as a sender measured it with an earlier exchange, right to within `within_s`."""

    offset_s: float
    within_s: float


class Sent(msgspec.Struct, frozen=True):
    """What is known of a sender's clock with one request.

    `seen_s`: the moment it says that it sent less the moment of receipt; the offset is that, or more
    by the time on the way.
    """

    seen_s: float
    measured: Measured | None = None

    @property
    def offset_s(self) -> float | None:
        """The offset, as far as it is beyond doubt; None where a slow way may be all there is.

        >>> Sent(5.0).offset_s, Sent(-3.0).offset_s, Sent(-3600.0).offset_s
        (5.0, None, -3600.0)
        >>> Sent(-3.1, Measured(-3.0, 0.01)).offset_s, Sent(-3.1, Measured(0.0, 0.01)).offset_s
        (-3.0, 0.0)
        >>> Sent(-3.1, Measured(-1.5, 1.6)).offset_s
        """
        measured = self.measured
        if measured is None:
            is_certain = self.seen_s > -NOTEWORTHY_OFFSET_S or self.seen_s < -LONGEST_WAY_S
            return self.seen_s if is_certain else None
        if self.seen_s > measured.offset_s + measured.within_s + NOTEWORTHY_CHANGE_S:
            return self.seen_s
        if measured.within_s <= NOTEWORTHY_CHANGE_S:
            return measured.offset_s
        return measured.offset_s if abs(measured.offset_s) > NOTEWORTHY_OFFSET_S + measured.within_s else None


def parse_measured(text: str | None) -> Measured | None:
    """An `X-Ett-Clock-Offset` header (offset and half the round trip), None where it is none.

    >>> parse_measured("-3.25;within=0.004"), parse_measured("-3"), parse_measured("nan;within=1")
    (Measured(offset_s=-3.25, within_s=0.004), None, None)
    """
    offset, _, within = (text or "").partition(";within=")
    try:
        measured = Measured(float(offset), float(within))
    except ValueError:
        return None
    is_sane = abs(measured.offset_s) < LATEST_MOMENT and 0 <= measured.within_s < LATEST_MOMENT
    return measured if is_sane else None


def parse_sent_at(text: str | None) -> float | None:
    """The Unix seconds of an `X-Ett-Sent-At` header, None where it tells no time.

    >>> parse_sent_at("1764000000.5"), parse_sent_at("soon"), parse_sent_at("nan")
    (1764000000.5, None, None)
    """
    try:
        sent_at = float(text or "")
    except ValueError:
        return None
    return sent_at if 0 < sent_at < LATEST_MOMENT else None


def is_noteworthy(offset_s: float, recorded_s: float | None) -> bool:
    """Whether an offset (writer minus receiver) must be recorded, after the last recorded one.

    >>> is_noteworthy(1.9, None), is_noteworthy(5.0, None), is_noteworthy(5.2, 5.0)
    (False, True, False)

    A writer whose clock was put right is recorded as well:

    >>> is_noteworthy(0.0, 5.0)
    True
    """
    before_s = recorded_s or 0.0
    beyond = max(abs(offset_s), abs(before_s)) > NOTEWORTHY_OFFSET_S
    return beyond and (recorded_s is None or abs(offset_s - before_s) > NOTEWORTHY_CHANGE_S)


def moment_after(noted_at: float | None, now: float) -> float:
    """The time of a `clock` event: after that of the one before, also where our own clock was set back.

    The latest one counts. What a clock that had leapt ahead was made to say would else count until then.

    >>> moment_after(None, 50.0), moment_after(40.0, 50.0), moment_after(90.0, 50.0)
    (50.0, 50.0, 90.001)
    """
    return now if noted_at is None else max(now, noted_at + JUST_AFTER_S)


def clock_event(of: Event, *, writer: str, seq: int, now: float, offset_s: float) -> Clock:
    """The event that says, at `now`, that the writer of `of` is `offset_s` seconds ahead."""
    return Clock(
        job_id=of.job_id,
        writer=writer,
        seq=seq,
        attempt=of.attempt,
        rank=LAUNCHER_RANK,
        time=now,
        of_writer=of.writer,
        offset_s=offset_s,
    )
