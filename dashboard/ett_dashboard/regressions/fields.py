"""What the table of families says, and the file of runs to take away. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from functools import partial

from ett_core.components import FAILURE, GROUP_COLOURS
from ett_core.fleet.families import Family
from ett_core.fleet.regressions import Regression
from ett_dashboard.columns import count, exact, exactly, figures, moments, text
from ett_dashboard.listing import Field, Value
from ett_dashboard.regressions.rows import RunRow
from ett_dashboard.regressions.words import MAIN_FIGURES, amount, figure_meaning, figure_name


def families(found: Sequence[Regression], zone: tzinfo, address: Callable[[str], str]) -> list[Field[Family]]:
    """The columns of the table of families; `address` gives that of the history of one."""

    def slower(family: Family) -> str:
        return ", ".join(figure_name(each.figure) for each in found if each.family == family.family)

    return [
        text(
            "family",
            "Family",
            "Jobs that are compared with one another: of one model and configuration family.",
            href=lambda family: address(family.family),
        ),
        text(
            "slower",
            "Slower",
            "Figures that became larger than they were.",
            slower,
            hue=lambda family: GROUP_COLOURS[FAILURE] if slower(family) else "",
        ),
        count("jobs", "Jobs", "Jobs with a run in this time."),
        moments(zone)("latest", "Latest", "When its latest run began."),
        *map(_usual, MAIN_FIGURES),
    ]


def runs(names_of_figures: Sequence[str]) -> list[Field[RunRow]]:
    """The columns of the CSV of runs, exact: one a figure."""
    names = ("start", "job_id", "attempt", "family", "world_size", "config_hash")
    return [*exact(*names), *(exactly(name, partial(_figure, name)) for name in names_of_figures)]


def _usual(figure: str) -> Field[Family]:
    usual = figures(partial(amount, figure))
    meaning = f"{figure_meaning(figure)} Median over its jobs."
    return usual(figure, figure_name(figure), meaning, lambda family: family.usual.get(figure))


def _figure(figure: str, run: RunRow) -> Value:
    return run.figures.get(figure)
