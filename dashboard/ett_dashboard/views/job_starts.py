"""The starts of a job's attempts: the table of attempts, and what one start was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ett_dashboard import listing, markup
from ett_dashboard.job import fields
from ett_dashboard.job.markup import start, starts_head
from ett_dashboard.job.waterfall import Start, starts
from ett_dashboard.job.words import collectives_told
from ett_dashboard.rows import JobDetail
from ett_dashboard.table import Column, Row, table
from ett_dashboard.views import frame

ROWS = 12


def show(job: JobDetail, asked: Mapping[str, str]) -> None:
    """Draw the start that the address chooses with `?attempt=` (else the latest), and all attempts."""
    if said := frame.lacking("what each start was made of"):
        frame.told(starts_head(), said)
        return
    known = starts(job)
    if not known:
        frame.told(starts_head(), markup.quiet("No attempt has begun so far."))
        return
    chosen = chosen_of(known, asked)
    frame.told(starts_head(), start(job, chosen))
    table(*listed(known, chosen, asked), caption="Attempts", key="attempts")
    latest = f"The latest {ROWS} of {len(known):,} attempts; all of them in the CSV."
    collectives = collectives_told(job.counters)
    frame.told(
        markup.quiet(latest) if len(known) > ROWS else "",
        markup.csv_link("attempts", id=job.job_id),
        markup.quiet(collectives) if collectives else "",
    )


def chosen_of(known: Sequence[Start], asked: Mapping[str, str]) -> Start:
    """The start that the address chooses, else the latest."""
    return next((s for s in known if str(s.attempt.attempt) == asked.get("attempt")), known[-1])


def listed(known: Sequence[Start], chosen: Start, asked: Mapping[str, str]) -> tuple[list[Column], list[Row]]:
    """The table of the latest attempts."""
    columns, latest = fields.attempts(asked), known[: -ROWS - 1 : -1]
    mark = str(chosen.attempt.attempt)
    rows = listing.rows(columns, latest, lambda s: str(s.attempt.attempt), chosen=mark)
    return listing.columns(columns, "", None), rows
