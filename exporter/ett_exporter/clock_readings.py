"""Whether events may be deleted by the clock of this machine: only after a week in which it made no leap.

A clock that is wrong by months for a minute would have everything deleted. How it went is kept in the
database, for an exporter may be started again because of such a clock. Pure, but for reading and writing
within the transaction of a connection.
"""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, delete, insert, select

from ett_exporter.schema import clock_readings

DAY_S = 86_400.0
LEAP_S = 3 * DAY_S
"""An exporter may be off for a weekend. What a smaller leap deletes is that much too young, at most."""
STEADY_S = 7 * DAY_S
WRITE_EVERY_S = 3600.0


class Reading(msgspec.Struct, frozen=True):
    """When the clock was read last, and since when it has made no leap (Unix seconds, by that clock)."""

    read_at: float
    steady_since: float

    @property
    def is_steady(self) -> bool:
        """Whether it may be deleted by."""
        return self.read_at - self.steady_since >= STEADY_S


def read_on(last: Reading | None, now: float) -> Reading:
    """The reading that follows; a first one begins a week of waiting, as a leap does, forth or back.

    >>> read_on(Reading(100.0, 0.0), 160.0)
    Reading(read_at=160.0, steady_since=0.0)
    >>> read_on(Reading(100.0, 0.0), 8640000.0), read_on(None, 5.0)
    (Reading(read_at=8640000.0, steady_since=8640000.0), Reading(read_at=5.0, steady_since=5.0))
    """
    is_leap = last is None or abs(now - last.read_at) > LEAP_S
    return Reading(now, now if last is None or is_leap else last.steady_since)


def is_worth_writing(last: Reading | None, reading: Reading) -> bool:
    """Whether the next exporter should know of a reading after the one that was written last."""
    if last is None or last.steady_since != reading.steady_since:
        return True
    return abs(reading.read_at - last.read_at) >= WRITE_EVERY_S


def read(connection: Connection, place: int) -> Reading | None:
    """What was written last of a place."""
    c = clock_readings.c
    row = connection.execute(select(c.read_at, c.steady_since).where(c.place == place)).first()
    return Reading(*row) if row else None


def write(connection: Connection, place: int, reading: Reading) -> None:
    """Put a reading in the place of the one before."""
    connection.execute(delete(clock_readings).where(clock_readings.c.place == place))
    connection.execute(insert(clock_readings).values(place=place, **msgspec.structs.asdict(reading)))
