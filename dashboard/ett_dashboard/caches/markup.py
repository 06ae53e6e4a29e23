"""Pieces of HTML about caches. Pure: rows to strings, every word of a job inert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from ett_core.fleet.caches import VERDICTS
from ett_dashboard.addresses import to_job
from ett_dashboard.caches.figures import FIRST, SECOND
from ett_dashboard.caches.frames import comparison_rows
from ett_dashboard.caches.rows import CacheRunRow, Comparison
from ett_dashboard.caches.words import compared_meaning, run_name, surprise_sentence, verdict_colour
from ett_dashboard.failures.markup import mark
from ett_dashboard.markup import link, of_job

NOT_TOLD = "nothing told"


def verdicts() -> str:
    """The colours of the verdicts, each with its meaning on hover."""
    hues = "".join(
        f'<span title="{escape(meaning)}"><i style="background:{verdict_colour(kind)}"></i>{kind}</span>'
        for kind, meaning in VERDICTS.items()
    )
    return f'<div class="ett-hues">{hues}</div>'


def surprises(runs: Sequence[CacheRunRow], compare: Callable[[str, str], str]) -> str:
    """Runs that were expected to be warm and were not, one card each.

    `compare` is the address at which two runs are compared: here with the warm run before it.
    """
    return f'<div class="ett-alarms">{"".join(_surprise(run, compare) for run in runs)}</div>'


def _surprise(run: CacheRunRow, compare: Callable[[str, str], str]) -> str:
    chip = mark(run.verdict, verdict_colour(run.verdict))
    words = f"<b>{of_job(run_name(run), 70)}</b><span>{of_job(surprise_sentence(run), 260)}</span>"
    if not run.alike:
        return f'<div class="ett-alarm">{chip}{words}</div>'
    address = escape(compare(run.alike, run.id))
    return f'<a class="ett-alarm ett-go" href="{address}" target="_self">{chip}{words}<i>compare</i></a>'


def reasons(found: Comparison) -> str:
    """Further reasons why the colder run was cold; the likeliest stands in the sentence."""
    rows = "".join(f"<li>{of_job(reason, 400)}</li>" for reason in found.reasons[1:])
    return f'<p class="ett-quiet">Besides:</p><ul class="ett-reasons">{rows}</ul>' if rows else ""


def comparison_table(found: Comparison, asked: Mapping[str, str] | None = None) -> str:
    """Two runs row by row; what is not the same stands out. Their names lead to their jobs."""
    head = "".join(
        f'<th><i style="background:{colour}"></i>'
        f"{link(to_job(run.job_id, asked), of_job(run_name(run), 60))}</th>"
        for run, colour in ((found.one, FIRST), (found.two, SECOND))
    )
    rows = "".join(
        f'<tr class="{"" if first == second else "ett-differs"}" title="{escape(compared_meaning(what))}">'
        f"<td>{of_job(what, 60)}</td><td>{of_job(first or NOT_TOLD, 90)}</td>"
        f"<td>{of_job(second or NOT_TOLD, 90)}</td></tr>"
        for what, first, second in comparison_rows(found)
    )
    return (
        f'<table class="ett-partition ett-pair"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
