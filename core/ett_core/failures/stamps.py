"""Time stamps in lines of logs: with and without year, date and zone.

Pure. A line may carry any of the usual forms; what a form leaves out (the year, the day) is
taken from the last line before it that said so, and where none did the moment orders lines
without being a time that can be shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import msgspec

DAY_S = 86_400.0
STAMP_WITHIN = 120
"""Characters at the beginning of a line in which its stamp is looked for."""

_CLOCK = r"(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_ISO = re.compile(
    rf"\b(\d{{4}})[-/](\d\d)[-/](\d\d)[T _]{_CLOCK}\s?(Z\b|UTC\b|[+-]\d\d:?\d\d)?", re.IGNORECASE | re.ASCII
)
_GLOG = re.compile(rf"(?:^|[\s\[:])[IWEF](\d{{1,2}})(\d\d) {_CLOCK}", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DMESG = re.compile(
    rf"\b({'|'.join(_MONTHS)})\w* +(\d{{1,2}}),? {_CLOCK} (\d{{4}})\b", re.IGNORECASE | re.ASCII
)
_SYSLOG = re.compile(rf"\b({'|'.join(_MONTHS)})\w* +(\d{{1,2}}) {_CLOCK}", re.IGNORECASE | re.ASCII)
_MONTH_DAY = re.compile(rf"\b(\d\d)[-/](\d\d) {_CLOCK}", re.ASCII)
_TIME_ONLY = re.compile(rf"(?:^|[\s\[(]){_CLOCK}(?=[\s\])|,:]|$)", re.ASCII)


class Stamp(msgspec.Struct, frozen=True):
    """A moment as a line tells it; what the line left out is None. `second_s` counts from midnight."""

    second_s: float
    year: int | None = None
    month: int | None = None
    day: int | None = None
    zone_s: float | None = None


class Moment(msgspec.Struct, frozen=True):
    """`order_s` sorts lines of one collection; `time` is Unix seconds, None where the date is not known."""

    order_s: float
    time: float | None


def stamp_of(line: str) -> Stamp | None:
    """The stamp at the beginning of a line.

    >>> stamp_of("2026-02-18T10:48:25.5Z [rank7]: x")
    Stamp(second_s=38905.5, year=2026, month=2, day=18, zone_s=0.0)
    >>> stamp_of("[rank7]:[E626 05:14:36.5 ProcessGroupNCCL.cpp] x")
    Stamp(second_s=18876.5, year=None, month=6, day=26, zone_s=None)
    >>> stamp_of("20:19:27 WARNING slow").second_s
    73167.0
    >>> stamp_of("no stamp here") is None
    True
    """
    head = line[:STAMP_WITHIN]
    return next((found for form in _FORMS if (found := form(head)) is not None), None)


class Calendar:
    """Turns the stamps of one log, in its order, into moments; remembers the last date that was told.

    `date` is the day to begin with where the log tells none, `zone_s` the seconds east of UTC of
    stamps without a zone.
    """

    def __init__(self, date: datetime | None = None, zone_s: float = 0.0) -> None:
        self._date = date
        self._known = date is not None
        self._zone_s = zone_s
        self._before_s: float | None = None

    def moment(self, stamp: Stamp) -> Moment:
        """Where a stamp lies."""
        told = self._date or datetime(2000, 1, 1, tzinfo=timezone.utc)
        if stamp.month is not None and stamp.day is not None:
            date = _date(stamp.year or told.year, stamp.month, stamp.day) or told
            self._known = self._known or stamp.year is not None
        else:
            date = told
            if self._before_s is not None and stamp.second_s < self._before_s - DAY_S / 2:
                date = told + timedelta(days=1)
        self._date, self._before_s = date, stamp.second_s
        zone_s = self._zone_s if stamp.zone_s is None else stamp.zone_s
        at = date.timestamp() + stamp.second_s - zone_s
        return Moment(at, at if self._known else None)


def _date(year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime(year, month, day, tzinfo=timezone.utc)
    except ValueError:
        return None


def _seconds(hour: str, minute: str, second: str, fraction: str | None) -> float:
    return int(hour) * 3600 + int(minute) * 60 + int(second) + (float(f"0.{fraction}") if fraction else 0.0)


def _zone(text: str | None) -> float | None:
    if not text:
        return None
    if text[0] not in "+-":
        return 0.0
    digits = text[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return float(-seconds if text[0] == "-" else seconds)


def _iso(head: str) -> Stamp | None:
    found = _ISO.search(head)
    if not found:
        return None
    year, month, day, *clock, zone = found.groups()
    return Stamp(_seconds(*clock), int(year), int(month), int(day), _zone(zone))


def _dmesg(head: str) -> Stamp | None:
    found = _DMESG.search(head)
    if not found:
        return None
    month, day, *clock, year = found.groups()
    return Stamp(_seconds(*clock), int(year), _month(month), int(day))


def _named_month(head: str) -> Stamp | None:
    found = _SYSLOG.search(head)
    if not found:
        return None
    month, day, *clock = found.groups()
    return Stamp(_seconds(*clock), None, _month(month), int(day))


def _numbered_month(pattern: re.Pattern[str]) -> Callable[[str], Stamp | None]:
    def read(head: str) -> Stamp | None:
        found = pattern.search(head)
        if not found or not 1 <= int(found[1]) <= len(_MONTHS):
            return None
        month, day, *clock = found.groups()
        return Stamp(_seconds(*clock), None, int(month), int(day))

    return read


def _time_only(head: str) -> Stamp | None:
    found = _TIME_ONLY.search(head)
    return Stamp(_seconds(*found.groups())) if found else None


def _month(name: str) -> int:
    return _MONTHS.index(name[:3].lower()) + 1


_FORMS: tuple[Callable[[str], Stamp | None], ...] = (
    _iso,
    _numbered_month(_GLOG),
    _dmesg,
    _named_month,
    _numbered_month(_MONTH_DAY),
    _time_only,
)
