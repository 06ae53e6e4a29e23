"""The effective share of a job over time, where its stretches of time are not known."""

from __future__ import annotations

import streamlit as st

from ett_dashboard import markup
from ett_dashboard.chart import chart
from ett_dashboard.live import shared_reads
from ett_dashboard.prometheus import figures, questions
from ett_dashboard.rows import JobDetail
from ett_dashboard.views import frame


def head(as_of: str) -> str:
    """What stands above the share over time."""
    note = f"{as_of}; drag to zoom, double-click for all"
    return markup.section("Effective training time over time", note) + figures.legend()


def show(job: JobDetail) -> None:
    """Draw the share since the job began and within the hour before each moment."""
    found = shared_reads().ask(questions.history(job.job_id)).value
    if found is not None and any(len(points) > 1 for points in found.effective.values()):
        drawn = figures.effective(found, frame.zone())
        chart(
            drawn, title="Effective training time over time", key="effective", revision=job.job_id, zoom=True
        )
    else:
        st.html(markup.quiet("The server of metrics has seen too little of this job so far."))
    frame.lacks("what each attempt did, and when,")
