"""How fast a job trains: figures of now and the rate over its life."""

from __future__ import annotations

import streamlit as st

from ett_dashboard import markup
from ett_dashboard.chart import chart
from ett_dashboard.job.throughput import Pace, between, figure, note, paces, title, unit_of
from ett_dashboard.job.tiles import throughput_tiles
from ett_dashboard.live import shared_reads
from ett_dashboard.prometheus import questions
from ett_dashboard.rows import JobDetail
from ett_dashboard.settings import of_app
from ett_dashboard.views import frame


def show(job: JobDetail) -> None:
    """Draw the figures and, where parts of the job's life are known, the rate in each."""
    st.html(markup.section("Throughput", "how fast it trains"))
    is_whole = of_app().source.is_whole
    st.html(markup.tiles(throughput_tiles(job)[: None if is_whole else 1]))
    frame.lacks("how long steps take")
    known = paces(job) if is_whole else _measured(job)
    if not any(pace.rate(unit_of(known)) for pace in known):
        st.html(markup.quiet("No stretch of reports is complete so far; the rate over time follows."))
        return
    st.html(markup.quiet(note(known)))
    chart(
        figure(known, job.failure_list, (job.start, job.known_at), frame.zone()),
        title=title(known),
        key="throughput",
        revision=job.job_id,
        zoom=True,
    )


def _measured(job: JobDetail) -> list[Pace]:
    """What a server of metrics saw of it."""
    found = shared_reads().ask(questions.history(job.job_id)).value
    return [] if found is None else between(found.samples_per_s)
