"""How a job that is told to go should leave: with a save, once a save in flight has ended, or at once. Pure.

Each way takes time and loses training. Of those that end within what is left of the grace time, the one
whose sum is least is taken; a save that takes longer than the training that it would keep does not pay.

>>> told = way_to_leave(Standing(unsaved_s=900, save_s=12), left_s=30)
>>> told.way, told.why
('save', 'a save takes 12.0 s of the 30.0 s that are left and keeps 900 s of training')
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

SAVE, WAIT, GO = "save", "wait", "go"
"""Save and leave; leave once the save in flight is durable; leave at once."""
SPARE = 1.25
"""A way has to fit into the grace time so many times as long as it is expected to take."""
END_S = 1.0
"""Seconds of the grace time that are kept for the end of the process."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job stands with its saves, in seconds.

    `unsaved_s`: training since what the newest durable checkpoint holds. `save_s`: from the beginning of
    a save until it is durable; None where none was measured. `in_flight_s`: until the save in flight is
    durable; None without one. `since_capture_s`: training since what that one holds.

    Raises:
        ValueError: a figure is negative or not finite.
    """

    unsaved_s: float
    save_s: float | None = None
    in_flight_s: float | None = None
    since_capture_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse figures that have no meaning."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number, zero or more, not {value:g}")


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """The way to leave: what it takes and what it loses, in seconds, and why it was taken, in words."""

    way: str
    takes_s: float
    loses_s: float
    why: str
    values: dict[str, float]


class _Way(msgspec.Struct, frozen=True, kw_only=True):
    way: str
    takes_s: float
    loses_s: float

    @property
    def costs_s(self) -> float:
        return self.takes_s + self.loses_s

    def fits(self, left_s: float) -> bool:
        return not self.takes_s or SPARE * self.takes_s + END_S <= left_s


def way_to_leave(standing: Standing, left_s: float) -> Leaving:
    """The way that costs least of those that end in the `left_s` seconds that are left.

    Raises:
        ValueError: `left_s` is not finite.

    >>> way_to_leave(Standing(unsaved_s=5, save_s=12), left_s=30).way
    'go'
    """
    if not math.isfinite(left_s):
        raise ValueError(f"what is left of the grace time must be finite, not {left_s:g}")
    left_s = max(left_s, 0.0)
    if not standing.unsaved_s:
        return _told(GO, standing, left_s, 0.0, 0.0, "nothing is unsaved")
    if standing.save_s is None and standing.in_flight_s is None and left_s > END_S:
        why = "no save was measured so far: nothing is lost by trying one"
        return _told(SAVE, standing, left_s, 0.0, 0.0, why)
    ways = list(_ways(standing))
    best = min((way for way in ways if way.fits(left_s)), key=lambda way: way.costs_s)
    why = _why(best, ways, standing, left_s)
    return _told(best.way, standing, left_s, best.takes_s, best.loses_s, why)


def _ways(standing: Standing) -> Iterator[_Way]:
    yield _Way(way=GO, takes_s=0.0, loses_s=standing.unsaved_s)
    if standing.in_flight_s is not None:
        yield _Way(way=WAIT, takes_s=standing.in_flight_s, loses_s=standing.since_capture_s)
    if standing.save_s is not None:
        takes_s = (standing.in_flight_s or 0.0) + standing.save_s
        yield _Way(way=SAVE, takes_s=takes_s, loses_s=0.0)


def _why(best: _Way, ways: list[_Way], standing: Standing, left_s: float) -> str:
    kept = f"{_roughly(standing.unsaved_s)} of training"
    if best.way == SAVE:
        return f"a save takes {best.takes_s:.1f} s of the {left_s:.1f} s that are left and keeps {kept}"
    words = [f"the save in flight is durable in {best.takes_s:.1f} s"] if best.way == WAIT else []
    for way in ways:
        what = f"{'the save in flight' if way.way == WAIT else 'a save'} takes {way.takes_s:.1f} s"
        if way.costs_s < best.costs_s:
            words.append(f"{what}, too long with a quarter to spare: {left_s:.1f} s are left")
        elif way.way == SAVE:
            words.append(f"{what} to keep {_roughly(best.loses_s)} of training, which does not pay")
    return "; ".join(words) or "no save was measured so far, and no time is left to try one"


def _roughly(amount_s: float) -> str:
    """Seconds in words, of which even few are more than none.

    >>> _roughly(1234.5), _roughly(12.3), _roughly(0.318), _roughly(0.004)
    ('1,234 s', '12 s', '0.32 s', 'less than 0.1 s')
    """
    if amount_s >= 10:  # noqa: PLR2004 - below, tenths tell something
        return f"{amount_s:,.0f} s"
    return f"{amount_s:.2g} s" if amount_s >= 0.1 else "less than 0.1 s"  # noqa: PLR2004 - nor do less


def _told(  # noqa: PLR0913, PLR0917 - what is told
    way: str, standing: Standing, left_s: float, takes_s: float, loses_s: float, why: str
) -> Leaving:
    values = {"left_s": left_s, "takes_s": takes_s, "loses_s": loses_s, "unsaved_s": standing.unsaved_s}
    known = {"save_s": standing.save_s, "in_flight_s": standing.in_flight_s}
    values |= {name: value for name, value in known.items() if value is not None}
    return Leaving(way=way, takes_s=takes_s, loses_s=loses_s, why=why, values=values)
