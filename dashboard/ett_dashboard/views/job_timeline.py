"""The timeline on the Job page: attempts over time, finer where the viewer zoomed in."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from ett_dashboard import markup, timeline
from ett_dashboard.addresses import changed, to_failure
from ett_dashboard.chart import shown_part, watched_chart
from ett_dashboard.live import shared_reads
from ett_dashboard.rows import FailureRow, JobDetail
from ett_dashboard.views import frame

KEY = "timeline"


def head(as_of: str) -> str:
    """What stands above the timeline."""
    note = f"{as_of}; drag to zoom, double-click for all; choose an attempt or a failure"
    return markup.section("Attempts over time", note, legend=True)


def show(job: JobDetail, asked: Mapping[str, str]) -> None:
    """Draw the timeline; a click on an attempt chooses its start, one on a failure leads to its page."""
    if not job.timeline:
        st.html(markup.quiet("No stretch of time is known so far."))
        return
    zone = frame.zone()
    seen = timeline.seen_of(shown_part(KEY, job.job_id), zone)
    question = timeline.finer(job.job_id, job.timeline, seen, is_over=job.finished)
    finer = None if question is None else shared_reads().ask(question).value
    bars = timeline.drawn(job.timeline, finer.stretches if finer else (), seen)
    watched_chart(
        timeline.figure(bars, job.failure_list, zone, seen, _ways(asked)),
        title="Attempts over time by component",
        key=KEY,
        revision=job.job_id,
    )


def _ways(asked: Mapping[str, str]) -> timeline.Ways:
    def to_failure_of(failure: FailureRow) -> str:
        return to_failure(failure.id, asked) if failure.id else ""

    return timeline.Ways(lambda attempt: changed("job", asked, attempt=str(attempt)), to_failure_of)
