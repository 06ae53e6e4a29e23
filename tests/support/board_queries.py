"""Queries of boards: found in their JSON, and with Grafana's variables filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

PANELS_OF_DATA = ("timeseries", "stat", "bargauge", "piechart", "state-timeline", "table")
BUILT_IN: Mapping[str, str] = {"__rate_interval": "1m", "__range": "1h", "__range_s": "3600"}


class Asked(msgspec.Struct, frozen=True):
    """One query of a board, and where it stands."""

    board: str
    panel: str
    ref: str
    expr: str
    instant: bool
    legend: str

    def __str__(self) -> str:
        return f"{self.board} / {self.panel} / {self.ref}"


def queries_of(board: Mapping[str, Any]) -> Iterator[Asked]:
    """The queries of the panels of a board."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield Asked(
                board=board["uid"].removeprefix("ettwatch-"),
                panel=panel["title"],
                ref=target["refId"],
                expr=target["expr"],
                instant=target["instant"],
                legend=target["legendFormat"],
            )


def filled(expr: str, values: Mapping[str, str]) -> str:
    """An expression with its variables replaced, as Grafana replaces them.

    >>> filled('rate(a{b=~"$c"}[$__rate_interval])', {"c": "x|y"})
    'rate(a{b=~"x|y"}[1m])'

    Raises:
        KeyError: a variable has no value.
    """
    every = {**BUILT_IN, **values}
    return re.sub(r"\$\{?(\w+)\}?", lambda found: every[found[1]], expr)
