"""What the table of families says, and the file of runs to take away. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from functools import partial
from operator import attrgetter

from ett_core.components import FAILURE, GROUP_COLOURS
from ett_core.fleet.families import Family
from ett_core.fleet.regressions import Regression
from ett_dashboard.frames import moment
from ett_dashboard.listing import Field, Value
from ett_dashboard.regressions.rows import RunRow
from ett_dashboard.regressions.words import MAIN_FIGURES, amount, figure_meaning, figure_name
from ett_dashboard.words import whole


def families(found: Sequence[Regression], zone: tzinfo, address: Callable[[str], str]) -> list[Field[Family]]:
    """The columns of the table of families; `address` gives that of the history of one."""

    def slower(family: Family) -> str:
        return ", ".join(figure_name(each.figure) for each in found if each.family == family.family)

    return [
        Field(
            name="family",
            title="Family",
            help="Jobs that are compared with one another: of one model and configuration family.",
            value=lambda family: family.family,
            href=lambda family: address(family.family),
            end=False,
        ),
        Field(
            name="slower",
            title="Slower",
            help="Figures that became larger than they were.",
            value=slower,
            hue=lambda family: GROUP_COLOURS[FAILURE] if slower(family) else "",
            end=False,
        ),
        Field(
            name="jobs",
            title="Jobs",
            help="Jobs with a run in this time.",
            value=lambda family: family.jobs,
            show=_whole,
        ),
        Field(
            name="latest",
            title="Latest",
            help="When its latest run began.",
            value=lambda family: family.latest,
            show=lambda value: "" if value is None else moment(float(value), zone)[:16],
        ),
        *map(_usual, MAIN_FIGURES),
    ]


def runs(figures: Sequence[str]) -> list[Field[RunRow]]:
    """The columns of the CSV of runs, exact: one a figure."""
    names = ("start", "job_id", "attempt", "family", "world_size", "config_hash")
    facts = [Field[RunRow](name=name, title="", help="", value=attrgetter(name)) for name in names]
    return [*facts, *(Field(name=name, title="", help="", value=partial(_figure, name)) for name in figures)]


def _usual(figure: str) -> Field[Family]:
    return Field(
        name=figure,
        title=figure_name(figure),
        help=f"{figure_meaning(figure)} Median over its jobs.",
        value=lambda family: family.usual.get(figure),
        show=lambda value: amount(figure, None if value is None else float(value)),
    )


def _figure(figure: str, run: RunRow) -> Value:
    return run.figures.get(figure)


def _whole(value: Value) -> str:
    return whole(None if value is None else float(value))
