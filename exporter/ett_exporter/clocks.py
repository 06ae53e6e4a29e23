"""How far the clock of each writer is from the receiver's: measured, recorded, never refused.

Pure: the caller holds the last recorded offset of each writer and stores the `clock` event.
"""

from __future__ import annotations

from ett_core.events import LAUNCHER_RANK, Clock, Event

NOTEWORTHY_OFFSET_S = 2.0
"""Below this, clocks count as equal: it may be the way through the network."""
NOTEWORTHY_CHANGE_S = 0.5
LATEST_MOMENT = 4e9


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
