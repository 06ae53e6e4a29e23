"""One failure in full: what it means, what it cost, and the lines that tell of it across ranks."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from ett_dashboard import markup, words
from ett_dashboard.addresses import settings_of, to_failures, to_job, to_page
from ett_dashboard.chart import chart
from ett_dashboard.failures import figures, frames, questions, tiles
from ett_dashboard.failures import markup as pieces
from ett_dashboard.failures.rows import FailureDetail
from ett_dashboard.job.markup import ways
from ett_dashboard.live import shared_reads
from ett_dashboard.views import frame


def draw(failure_id: str, chosen: Mapping[str, str], price: float | None) -> None:
    """Draw the failure of this id; links keep what was chosen, an accelerator-hour costs `price`."""
    if frame.lacks("one failure, with its evidence,"):
        st.html(_back(chosen))
        return
    reading = shared_reads().ask(questions.failure(failure_id))
    if reading.unknown:
        lines = [
            f"Asked for: {words.plain(failure_id)}",
            "A failure is called JOB~ATTEMPT; those that are known stand in the list.",
        ]
        st.html(markup.empty("The exporter knows no failure of this name", lines) + _back(chosen))
        return
    frame.signs_of_age(reading)
    with st.container(key="live"):
        if reading.value is not None:
            _failure(reading.value, chosen, price)


def _failure(failure: FailureDetail, chosen: Mapping[str, str], price: float | None) -> None:
    zone = frame.zone()
    st.html(_back(chosen) + pieces.failure_head(failure, zone, chosen) + _elsewhere(failure, chosen))
    st.html(markup.tiles(tiles.cost_tiles(failure, price)))
    lines = frames.evidence_lines(failure)
    note = f"in order of time across ranks; {frame.as_of(failure.as_of)}"
    st.html(markup.section(words.many(len(lines), "piece of evidence", "pieces of evidence"), note))
    if not lines:
        st.html(markup.quiet("No line tells of it: nobody wrote one, or the launcher did not see it."))
    if any(line.rank is not None for line in lines):
        drawn = figures.evidence(lines, zone)
        chart(drawn, title="Evidence by rank over time", key="evidence", revision=failure.id, zoom=True)
        st.html(pieces.roles())
    if lines:
        st.html(markup.scrolled(pieces.evidence_table(lines, zone), "Evidence"))
        st.html(markup.csv_link("evidence", id=failure.id))
    if failure.alike:
        st.html(pieces.alike(failure.alike, chosen))


def _elsewhere(failure: FailureDetail, chosen: Mapping[str, str]) -> str:
    """Where more is told of the job that failed, with the settings of the viewer."""
    settings, job_id = settings_of(chosen), failure.job_id
    pages = [
        ("Its job", to_job(job_id, settings)),
        ("All failures of the job", to_failures({**settings, "text": job_id, "window": "90d"})),
        ("Its compile caches", to_page("caches", settings, text=job_id)),
    ]
    return ways(pages)


def _back(chosen: Mapping[str, str]) -> str:
    return f'<p class="ett-back">{markup.link(to_page("failures", chosen), "All failures")}</p>'
