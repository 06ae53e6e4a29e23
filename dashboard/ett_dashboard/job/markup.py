"""Pieces of HTML of the Job page. Pure: rows to strings, every word of a job inert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ett_core.colours import component_colour
from ett_core.components import meaning_of
from ett_dashboard import frames, markup, tiles
from ett_dashboard.job.waterfall import Start, Step, steps_of_start
from ett_dashboard.job.words import start_sentence
from ett_dashboard.markup import link
from ett_dashboard.partition import partition_table
from ett_dashboard.rows import JobDetail
from ett_dashboard.words import duration, percent

LEAST_WIDTH = 0.3
"""No bar is narrower than so many percent of the whole: what took time can be seen."""
TOGETHER = "All of this time: the rows above add up to it."


def standing(job: JobDetail, elsewhere: str) -> str:
    """How a job is: its name and state, the sentence on it, the ways to more, and its figures."""
    head = markup.job_head(job, job.known_at) + markup.purpose_of_job(job) + elsewhere
    return markup.stacked(head, markup.tiles(tiles.job_tiles(job), lead=True))


def partition_head() -> str:
    """What stands above the partition of the wall time."""
    return markup.section(
        "Every second of the job",
        "each belongs to exactly one component; together they are its wall time",
    )


def partition(job: JobDetail, asked: Mapping[str, str]) -> str:
    """The seconds of a job by component, and what is to be said of them.

    Components lead to their definitions, with the settings of what was `asked` for.
    """
    said = ""
    if job.resume_evidence == "unknown":
        said += markup.quiet("Nothing told to which step the job fell back: no training is called lost.")
    if job.not_saved:
        said += markup.quiet("Ended by decision; training after its last checkpoint counts.")
    return markup.stacked(partition_table(frames.partition(job.components), asked), said)


def starts_head() -> str:
    """What stands above the starts."""
    return markup.section("Starts", "of each attempt; choose one to see what its start was made of")


def start(job: JobDetail, chosen: Start) -> str:
    """What one start was made of, in a sentence and row by row."""
    steps = steps_of_start(job, chosen)
    rows = waterfall(steps, f"Start of attempt {chosen.attempt.attempt}")
    number = str(chosen.attempt.attempt)
    file = markup.csv_link("start", f"Start of attempt {number} as CSV", id=job.job_id, attempt=number)
    return markup.said(start_sentence(chosen, steps)) + rows + file


def waterfall(steps: Sequence[Step], title: str) -> str:
    """One row a component with a bar where it owned time; ends with the sum.

    `title` says what is shown, for those who cannot see it.
    """
    whole_s = max((since + length for step in steps for since, length in step.spans), default=0.0)
    total_s = sum(step.seconds for step in steps)
    rows = "".join(_row(step, whole_s, total_s) for step in steps)
    return (
        f'<table class="ett-waterfall" aria-label="{escape(title)}"><tbody>{rows}'
        f'<tr class="ett-together" title="{TOGETHER}"><td>Together</td>'
        f"<td></td><td>{duration(total_s)}</td><td></td></tr>"
        "</tbody></table>"
    )


def ways(links: Sequence[tuple[str, str]], *files: str) -> str:
    """Where more is told of a job: title and address of each page, and ways to files."""
    pages = [link(address, escape(title)) for title, address in links]
    return f'<p class="ett-quiet">{" · ".join([*pages, *files])}</p>'


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
