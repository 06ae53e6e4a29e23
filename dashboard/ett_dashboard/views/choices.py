"""What a viewer chooses, kept in the address.

The address is the one place that holds a choice, so that links, the back button and a reload all lead to
the same view: `boxes` shows and changes it, here is read what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal
from zoneinfo import available_timezones

from ett_core.purposes import LABEL
from ett_dashboard.boxes import Box, boxes
from ett_dashboard.client import Question
from ett_dashboard.job_fields import FILTERS
from ett_dashboard.live import shared_reads
from ett_dashboard.rows import Groups
from ett_dashboard.settings import of_app
from ett_dashboard.views import address
from ett_dashboard.words import plain

WINDOWS: Mapping[str, str] = {"1h": "1 hour", "24h": "24 hours", "7d": "7 days"}
USUAL_WINDOW = "24h"
WEIGHTS: Mapping[str, str] = {"accelerator": "Accelerator-hours", "job": "Jobs", "cost": "Cost"}
USUAL_WEIGHT = "accelerator"
WEIGHT_MEANING = (
    "What a second of a job weighs. Accelerator-hours: as many as accelerators it holds. Jobs: every job "
    "the same. Cost: the accelerators it holds times their price."
)
DEAREST = 1e6
LONGEST_WORD = 40
MOST_AT_A_GLANCE = 20
"""Of more options than this one is looked for by a part of its name."""


def of_jobs() -> dict[str, str]:
    """The filters of jobs: label or "text" to what was chosen; those that choose nothing are left out."""
    shared_reads().begin(map(_question_of, FILTERS))
    labels = [any_of(name, name.capitalize(), _told(name)) for name in FILTERS]
    boxes([*labels, words("text", "Text", "Part of a name")], key="filters")
    return jobs_asked()


def jobs_asked() -> dict[str, str]:
    """What the address says of the filters of jobs."""
    return chosen((*FILTERS, "text"))


def window_and_weight() -> None:
    """Choose how far back the page looks, and what a second of a job weighs."""
    windows = few("window", "Window", WINDOWS, USUAL_WINDOW)
    weights = few("weight", "Weighted by", WEIGHTS, USUAL_WEIGHT, WEIGHT_MEANING)
    boxes([windows, weights], key="weighing")


def window_and_weight_asked(asked: Mapping[str, str]) -> tuple[str, str]:
    """How far back the page looks (1h, 24h, 7d) and what a second of a job weighs: accelerator, job, cost."""
    window, weight = asked.get("window", ""), asked.get("weight", "")
    return window if window in WINDOWS else USUAL_WINDOW, weight if weight in WEIGHTS else USUAL_WEIGHT


def settings() -> None:
    """The settings of the viewer: time zone and price."""
    own = of_app().price_per_hour
    told = f"{own:g}, as the app was told" if own else "none, unless the exporter knows one"
    price = Box(
        name="price",
        title="Price of an accelerator-hour",
        kind="amount",
        most=DEAREST,
        hint=told,
        meaning="Turns accelerator-hours into money on every page. Empty: that of the app or the exporter.",
        titled=True,
    )
    boxes(
        [one_of("zone", "Time zone", _zones(), titled=True), price],
        key="settings",
    )


def price_per_hour(asked: Mapping[str, str]) -> float | None:
    """The price of an accelerator-hour that the viewer or the app says; None where neither does."""
    return _number(asked.get("price", "")) or of_app().price_per_hour


def few(name: str, title: str, options: Mapping[str, str], usual: str, meaning: str = "") -> Box:
    """A choice between few, by the words of the address."""
    shown = tuple(options.items())
    return Box(name=name, title=title, kind="few", options=shown, usual=usual, meaning=meaning, titled=True)


def any_of(name: str, title: str, options: Iterable[str]) -> Box:
    """A choice among many words that come from jobs, or none of them."""
    known = sorted({*options, address.asked().get(name, "")} - {""})
    shown = [("", f"Any {title.lower()}"), *((word, plain(word, LONGEST_WORD)) for word in known)]
    return one_of(name, title, shown)


def one_of(name: str, title: str, options: Sequence[str | tuple[str, str]], *, titled: bool = False) -> Box:
    """A choice among many, or among very many."""
    kind: Literal["many", "find"] = "many" if len(options) <= MOST_AT_A_GLANCE else "find"
    return Box(name=name, title=title, kind=kind, options=options, titled=titled)


def words(name: str, title: str, hint: str) -> Box:
    """Free words."""
    return Box(name=name, title=title, kind="words", hint=hint)


def chosen(names: Sequence[str]) -> dict[str, str]:
    """What the address says of these; those that choose nothing are left out."""
    asked = address.asked()
    return {name: asked[name] for name in names if name in asked}


@cache
def _zones() -> Sequence[str | tuple[str, str]]:
    """All time zones; to find them costs a walk through the files of the system."""
    return [("", "That of the browser"), *sorted(available_timezones())]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value <= DEAREST else None


def _question_of(name: str) -> Question[Groups]:
    """Which words jobs of the latest week bear as one of their labels."""
    every = (("purpose", ""),) if name == LABEL else ()
    parameters = (("window", "7d"), ("weight", "job"), ("group_by", name), *every)
    return Question("/api/v1/fleet", Groups, parameters)


def _told(name: str) -> list[str]:
    answer = shared_reads().ask(_question_of(name)).value
    return [group.key for group in answer.fleet if group.key] if answer else []
