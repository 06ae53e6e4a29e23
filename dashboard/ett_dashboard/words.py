"""Figures, moments and text in words: units and roundings, the same everywhere. Pure; durations are seconds.

>>> duration(200), ago(3), percent(74.26), whole(12400)
('3 m 20 s', '3 s ago', '74.3 %', '12,400')
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, tzinfo

import msgspec

UNKNOWN_FIGURE = "n/a"
HOUR_S = 3600.0
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_KILO, _BYTES = 1024, ("B", "KiB", "MiB", "GiB", "TiB")
_MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")


class Sentence(msgspec.Struct, frozen=True):
    """How something is, and what to do about it (empty where nothing)."""

    how: str
    do: str = ""


def duration(seconds: float | None) -> str:
    """A length of time in the two largest units that matter.

    >>> duration(0.42), duration(9.04), duration(59.7), duration(7500), duration(200000)
    ('0.4 s', '9.0 s', '1 m 0 s', '2 h 5 m', '2 d 7 h')
    """
    if seconds is None:
        return UNKNOWN_FIGURE
    if abs(seconds) < 9.95:  # noqa: PLR2004 - below this, whole seconds would say too little
        return f"{max(seconds, 0.0):.1f} s" if seconds else "0 s"
    left = round(seconds)
    for index, (unit, size) in enumerate(_UNITS[:-1]):
        if left >= size:
            smaller, smaller_size = _UNITS[index + 1]
            return f"{left // size} {unit} {left % size // smaller_size} {smaller}"
    return f"{left} s"


def step_time(seconds: float | None) -> str:
    """The time of a step.

    >>> step_time(0.2647), step_time(2.5), step_time(None)
    ('265 ms', '2.5 s', 'n/a')
    """
    return f"{1000 * seconds:.0f} ms" if seconds is not None and seconds < 1 else duration(seconds)


def ago(seconds: float | None) -> str:
    """How long ago something was, in one unit.

    >>> ago(0.4), ago(75), ago(None)
    ('just now', '1 m ago', 'never')
    """
    if seconds is None:
        return "never"
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def percent(value: float | None) -> str:
    """A percentage with one decimal."""
    return UNKNOWN_FIGURE if value is None else f"{value:.1f} %"


def ratio(value: float | None) -> str:
    """A share of 0 to 1 as a percentage.

    >>> ratio(0.7426), ratio(None)
    ('74.3 %', 'n/a')
    """
    return percent(None if value is None else 100 * value)


def points(value: float | None) -> str:
    """A difference of shares of 0 to 1, in points of a percentage.

    >>> points(0.123), points(-0.001), points(None)
    ('+12.3 points', '-0.1 points', 'n/a')
    """
    return UNKNOWN_FIGURE if value is None else f"{100 * value:+.1f} points"


def whole(value: float | None) -> str:
    """A count with thousands separated."""
    return UNKNOWN_FIGURE if value is None else f"{value:,.0f}"


def compact(value: float | None) -> str:
    """An amount in about three digits.

    >>> compact(0.034), compact(9.96), compact(85.3), compact(1234), compact(1.25e6)
    ('0.03', '10.0', '85', '1.2 k', '1.2 M')
    """
    if value is None:
        return UNKNOWN_FIGURE
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size * 0.9995:
            return f"{value / size:.1f}{unit}"
    digits = 0 if abs(value) >= 19.5 or not value else 1 if abs(value) >= 0.95 else 2  # noqa: PLR2004 - as shown
    return f"{value:.{digits}f}"


def hours(accelerator_s: float | None, unit: str = "h") -> str:
    """Accelerator-seconds as hours, where it is said beside them of what.

    >>> hours(3600), hours(4.4e6), hours(None)
    ('1.0 h', '1.2 k h', 'n/a')
    """
    return UNKNOWN_FIGURE if accelerator_s is None else f"{compact(accelerator_s / HOUR_S)} {unit}"


def accelerator_hours(accelerator_s: float | None) -> str:
    """The same where it stands alone.

    >>> accelerator_hours(3600), accelerator_hours(None)
    ('1.0 accelerator-hours', 'n/a')
    """
    return hours(accelerator_s, "accelerator-hours")


def size(amount: float) -> str:
    """An amount of bytes.

    >>> size(0), size(1536), size(180 * 2**20)
    ('none told', '1.5 KiB', '180.0 MiB')
    """
    if not amount:
        return "none told"
    unit = 0
    while amount >= _KILO and unit < len(_BYTES) - 1:
        amount, unit = amount / _KILO, unit + 1
    return f"{amount:.1f} {_BYTES[unit]}" if unit else f"{amount:.0f} B"


def when(unix_s: float, zone: tzinfo) -> str:
    """A moment of some day, for the viewer.

    >>> from datetime import timezone
    >>> when(1764000000.0, timezone.utc)
    '24 Nov 16:00'
    """
    return f"{datetime.fromtimestamp(unix_s, zone):%-d %b %H:%M}"


def moment(unix_s: float, zone: tzinfo) -> str:
    """A moment as the clock on the wall shows it, in the viewer's zone.

    >>> from datetime import timezone
    >>> moment(1764000000.4, timezone.utc)
    '2025-11-24 16:00:00'
    """
    return datetime.fromtimestamp(unix_s, zone).strftime("%Y-%m-%d %H:%M:%S")


def many(count: float, one: str, more: str = "") -> str:
    """A count with its noun.

    >>> many(1, "failure"), many(2, "failure"), many(0, "try", "tries")
    ('1 failure', '2 failures', '0 tries')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def tenths(shares: Mapping[str, float], keep: str = "") -> dict[str, float]:
    """Percentages with one decimal that add up to 100.0, by the largest remainders.

    The one named `keep` is rounded as if it stood alone, so that it reads the same everywhere.

    >>> tenths({"a": 1.0, "b": 1.0, "c": 1.0}), tenths({"a": 1.0, "b": 1.0, "c": 1.0}, keep="a")
    ({'a': 33.4, 'b': 33.3, 'c': 33.3}, {'a': 33.3, 'b': 33.4, 'c': 33.3})
    """
    total = sum(shares.values())
    if total <= 0:
        return dict.fromkeys(shares, 0.0)
    exact = {name: 1000 * amount / total for name, amount in shares.items()}
    points = {name: round(value) if name == keep else int(value) for name, value in exact.items()}
    by_remainder = sorted(
        (name for name in exact if name != keep), key=lambda name: points[name] - exact[name]
    )
    for name in by_remainder[: max(1000 - sum(points.values()), 0)]:
        points[name] += 1
    return {name: value / 10 for name, value in points.items()}


def plain(text: str, limit: int = 120) -> str:
    r"""Text from a job, safe to stand in a line: no control or direction characters, bounded.

    >>> plain("a\u202eb\nc"), plain("x" * 9, limit=5)
    ('ab c', 'xxxx…')
    """
    kept = text if text.isprintable() else _without_controls(text)
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def _without_controls(text: str) -> str:
    return "".join(
        " " if character in "\r\n\t" else character
        for character in text
        if character in "\r\n\t\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )


def markdown_safe(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> print(markdown_safe("![a](b) :red[x]"))
    \!\[a\]\(b\) \:red\[x\]
    """
    return _MARKDOWN.sub(r"\\\1", text)
