"""What a board says, apart from how Grafana writes it: panels as data. Pure.

A board is sections of panels from left to right on a grid of 24 columns; `drawing` and `board`
turn it into the JSON that Grafana reads.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ett_core.components import EFFECTIVE, FAILURE, GROUP_COLOURS, IDLENESS, UNKNOWN
from ett_grafana.config import Config

COLUMNS = 24
GOOD, WARNING, BAD, NEUTRAL = (GROUP_COLOURS[group] for group in (EFFECTIVE, IDLENESS, FAILURE, UNKNOWN))


class Query(msgspec.Struct, frozen=True):
    """One PromQL expression. `legend` names its series (`{{label}}` stands for a label).

    `instant` asks for the last moment of the time range only.
    """

    expr: str
    legend: str = ""
    instant: bool = False


class Link(msgspec.Struct, frozen=True):
    """Where a value leads to; `url` may hold Grafana's variables."""

    title: str
    url: str


class Limits(msgspec.Struct, frozen=True):
    """From which figure on a value is seen differently: `first` colour below all of `steps`."""

    first: str
    steps: tuple[tuple[float, str], ...]


def lower_is_better(warning: float, bad: float | None = None) -> Limits:
    """Good below `warning`, bad from `bad` on."""
    return Limits(GOOD, ((warning, WARNING), *(((bad, BAD),) if bad is not None else ())))


def higher_is_better(low: float, good: float) -> Limits:
    """Bad below `low`, good from `good` on."""
    return Limits(BAD, ((low, WARNING), (good, GOOD)))


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """What every panel has. `width` of 24 columns, `height` in rows of the grid."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str
    width: int = 8
    height: int = 8
    limits: Limits | None = None
    links: tuple[Link, ...] = ()
    colours: Mapping[str, str] = {}
    """Colour by the name of a series."""
    lowest: float | None = None
    highest: float | None = None
    decimals: int | None = None
    no_value: str | None = None


class Stat(Panel, frozen=True, kw_only=True):
    """The latest value of each series, large; `name_only` shows the name of the series instead."""

    width: int = 4
    height: int = 4
    name_only: bool = False
    sparkline: bool = False


class Lines(Panel, frozen=True, kw_only=True):
    """Series over time; `stacked` adds them up."""

    stacked: bool = False
    many: bool = False
    """Whether there may be many series: their names then stand beside the lines."""


class Bars(Panel, frozen=True, kw_only=True):
    """The latest value of each series as a bar."""


class Donut(Panel, frozen=True, kw_only=True):
    """The latest values as parts of a whole."""


class States(Panel, frozen=True, kw_only=True):
    """Numbers that stand for states over time: `states` has name and colour by number."""

    states: Mapping[int, tuple[str, str]]


class Table(Panel, frozen=True, kw_only=True):
    """The latest values with their labels, one row a series; `columns` has header by label, in order."""

    width: int = 12
    columns: Mapping[str, str]
    values: tuple[str, ...] = ("Value",)
    """Headers of the values of the queries, in their order; none where the labels say it all."""


class Section(msgspec.Struct, frozen=True):
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


class Variable(msgspec.Struct, frozen=True):
    """What a reader chooses: from the values of `label` of the series of `query`, or of `options`.

    `has_all`: everything may be chosen at once.
    """

    name: str
    label: str
    description: str
    query: str = ""
    options: tuple[str, ...] = ()
    chosen: str = ""
    is_multi: bool = False
    has_all: bool = False


class Annotation(msgspec.Struct, frozen=True):
    """Moments marked on every panel: where `expr` has a value, or by `tags` of Grafana's own."""

    name: str
    colour: str
    expr: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """One board. Its `name` is part of its uid and the name of its file."""

    name: str
    title: str
    description: str
    app_page: str
    """Path of the page of the app that shows the same, empty for its first page."""
    variables: tuple[Variable, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    sections: tuple[Section, ...]
    since: str = "now-6h"
    config: Config
