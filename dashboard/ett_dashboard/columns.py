"""The kinds of columns that lists are made of: how each kind of value is shown is said here, once. Pure.

>>> waited = seconds("wait_s", "Waited", "For the first batch.", lambda job: job["wait_s"])
>>> waited.show(waited.value({"wait_s": 75.0})), waited.show(None), waited.end
('1 m 15 s', 'n/a', True)
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from ett_dashboard import words
from ett_dashboard.listing import Field, Value, shown_as_text

T = TypeVar("T")


class Kind(msgspec.Struct, frozen=True):
    """Makes fields that show their values alike; those of an `end` stand at the right."""

    show: Callable[[Value], str]
    end: bool = True

    def __call__(  # noqa: PLR0913 - one argument a fact of a field
        self,
        name: str,
        title: str,
        meaning: str,
        value: Callable[[T], Value] | None = None,
        *,
        hue: Callable[[T], str] | None = None,
        href: Callable[[T], str] | None = None,
        hint: Callable[[T], str] | None = None,
        share: Callable[[T], float | None] | None = None,
    ) -> Field[T]:
        """A column of that title; its value is by default the attribute of its name."""
        return Field(
            name=name,
            title=title,
            help=meaning,
            value=value or attrgetter(name),
            show=self.show,
            hue=hue,
            href=href,
            hint=hint,
            share=share,
            end=self.end,
        )


def figures(words_of: Callable[[float | None], str]) -> Kind:
    """A kind of numbers, by what puts one into words."""
    return Kind(lambda value: words_of(None if value is None else float(value)))


text = Kind(shown_as_text, end=False)
seconds = figures(words.duration)
step_seconds = figures(words.step_time)
age = figures(words.ago)
count = figures(words.whole)
amount = figures(words.compact)
percentage = figures(words.percent)
accelerator_seconds = figures(words.hours)


def moments(zone: tzinfo) -> Kind:
    """Moments (Unix seconds) in the viewer's zone, to a minute."""
    return Kind(lambda at: "" if at is None else words.when(float(at), zone))


def numbered(noun: str) -> Kind:
    """Numbers of things that are called by them, at the left.

    >>> numbered("rank").show(3.0), numbered("rank").show(None)
    ('rank 3', '')
    """
    return Kind(lambda value: "" if value is None else f"{noun} {value:.0f}", end=False)


def exact(*names: str) -> list[Field[Any]]:
    """Columns that only files have, by the attributes of these names."""
    return [exactly(name, attrgetter(name)) for name in names]


def exactly(name: str, value: Callable[[Any], Value]) -> Field[Any]:
    """A column that only files have."""
    return Field(name=name, title="", help="", value=value)
