"""Moments in logs: with or without a time zone, or missing."""

from __future__ import annotations

import datetime as dt

MISSING = ("", "unknown", "none", "null", "nan", "n/a", "notset")
FIRST, LAST = 0.0, 4e9
"""The range of the times of events, in Unix seconds, both ends left out."""


def moment(text: str, zone: dt.tzinfo | None, *, not_before: float | None = None) -> float | None:
    """Unix seconds of a date and time; None where the log says that it has none.

    A time that a change of clocks makes ambiguous is the first of the two, unless that lies before
    `not_before`.

    Args:
        text: such as `2026-11-29 20:42:44`, `2026-11-29T20:42:44.5+08:00`, or Unix seconds.
        zone: of a time that names none; None is the zone of this machine.
        not_before: Unix seconds of what cannot have come later.

    Raises:
        ValueError: it is neither a time nor a word for a missing one.

    >>> moment("2026-11-29T20:42:44", dt.timezone.utc), moment("Unknown", None)
    (1795984964.0, None)
    """
    text = text.strip()
    if text.lower() in MISSING:
        return None
    try:
        if text.isascii() and text.replace(".", "", 1).isdecimal():
            return _in_range(float(text), text)
        found = dt.datetime.fromisoformat(text.replace("_", "T", 1))
        first = _in_range(_seconds(found, zone), text)
        if not_before is not None and first < not_before:
            return max(first, _in_range(_seconds(found.replace(fold=1), zone), text))
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{text[:40]!r} is not a date and time") from error
    return first


def _seconds(found: dt.datetime, zone: dt.tzinfo | None) -> float:
    if found.tzinfo is None:
        found = found.replace(tzinfo=zone) if zone is not None else found.astimezone()
    return found.timestamp()


def _in_range(seconds: float, text: str) -> float:
    if not FIRST < seconds < LAST:
        raise ValueError(text)
    return seconds
