"""The starts of a job's attempts: the table of attempts, and what one start was made of."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from ett_dashboard import listing, markup
from ett_dashboard.job import fields
from ett_dashboard.job.markup import waterfall
from ett_dashboard.job.waterfall import starts, steps_of_start
from ett_dashboard.job.words import collectives_told, start_sentence
from ett_dashboard.rows import JobDetail
from ett_dashboard.table import table
from ett_dashboard.views import frame

ROWS = 12


def show(job: JobDetail, asked: Mapping[str, str]) -> None:
    """Draw the start that the address chooses with `?attempt=` (else the latest), and all attempts."""
    st.html(markup.section("Starts", "of each attempt; choose one to see what its start was made of"))
    if frame.lacks("what each start was made of"):
        return
    known = starts(job)
    if not known:
        st.html(markup.quiet("No attempt has begun so far."))
        return
    chosen = next((s for s in known if str(s.attempt.attempt) == asked.get("attempt")), known[-1])
    steps = steps_of_start(job, chosen)
    st.html(
        markup.said(start_sentence(chosen, steps))
        + waterfall(steps, f"Start of attempt {chosen.attempt.attempt}")
    )
    columns = fields.attempts(asked)
    latest = known[: -ROWS - 1 : -1]
    table(
        listing.columns(columns, "", None),
        listing.rows(columns, latest, lambda s: str(s.attempt.attempt), chosen=str(chosen.attempt.attempt)),
        caption="Attempts",
        key="attempts",
    )
    if len(known) > ROWS:
        st.html(markup.quiet(f"The latest {ROWS} of {len(known):,} attempts; all of them in the CSV."))
    st.html(markup.csv_link("attempts", id=job.job_id))
    if told := collectives_told(job.counters):
        st.html(markup.quiet(told))
