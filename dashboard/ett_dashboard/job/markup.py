"""Pieces of HTML of the Job page. Pure: rows to strings, every word of a job inert."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ett_core.colours import component_colour
from ett_core.components import meaning_of
from ett_dashboard.job.waterfall import Step
from ett_dashboard.markup import link
from ett_dashboard.words import duration, percent

LEAST_WIDTH = 0.3
"""No bar is narrower than so many percent of the whole: what took time can be seen."""


def waterfall(steps: Sequence[Step], title: str) -> str:
    """One row a component with a bar where it owned time; ends with the sum.

    `title` says what is shown, for those who cannot see it.
    """
    whole_s = max((since + length for step in steps for since, length in step.spans), default=0.0)
    total_s = sum(step.seconds for step in steps)
    rows = "".join(_row(step, whole_s, total_s) for step in steps)
    return (
        f'<table class="ett-waterfall" aria-label="{escape(title)}"><tbody>{rows}'
        f'<tr class="ett-together"><td>Together</td><td></td><td>{duration(total_s)}</td><td></td></tr>'
        "</tbody></table>"
    )


def ways(links: Sequence[tuple[str, str]]) -> str:
    """Where more is told of a job: title and address of each page."""
    return f'<p class="ett-quiet">{" · ".join(link(address, escape(title)) for title, address in links)}</p>'


def _row(step: Step, whole_s: float, total_s: float) -> str:
    hue = component_colour(step.component)
    bars = "".join(
        f'<i style="left:{100 * since / whole_s:.2f}%;width:{max(100 * length / whole_s, LEAST_WIDTH):.2f}%;'
        f'background:{hue}"></i>'
        for since, length in step.spans
    )
    return (
        f'<tr data-component="{escape(step.component)}" title="{escape(meaning_of(step.component))}">'
        f'<td>{escape(step.component)}</td><td class="ett-track"><div>{bars}</div></td>'
        f"<td>{duration(step.seconds)}</td><td>{percent(100 * step.seconds / total_s)}</td></tr>"
    )
