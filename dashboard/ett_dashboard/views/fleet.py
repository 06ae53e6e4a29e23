"""The Fleet page: which job is in trouble, and where the fleet loses its hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from ett_dashboard import figures, frames, job_fields, listing, markup, words
from ett_dashboard.addresses import changed
from ett_dashboard.chart import chart
from ett_dashboard.live import shared_reads
from ett_dashboard.rows import FleetAnswer, Job
from ett_dashboard.settings import Settings
from ett_dashboard.table import table
from ett_dashboard.views import choices, frame

MOST_ROWS = 100
MOST_ALARMS = 3
ETT_MEANING = (
    "Share of the wall time of all jobs listed, queueing included, that was spent training with an effect "
    "that survives. Every second of every job weighs the same."
)


def show() -> None:
    """Draw the page."""
    choices.of_jobs()
    asked = st.query_params.to_dict()
    frame.live(lambda: _draw(asked))


def _draw(asked: Mapping[str, str]) -> None:
    reading = shared_reads().jobs()
    answer = reading.value
    st.html(markup.page_head("Fleet", frame.as_of(answer.as_of) if answer else ""))
    frame.signs_of_age(reading)
    with st.container(key="live"):
        if answer is not None and answer.jobs:
            _fleet(answer, asked)
        elif answer is not None:
            st.html(_no_jobs(Settings.from_environment().exporter_url))


def _fleet(answer: FleetAnswer, asked: Mapping[str, str]) -> None:
    jobs = job_fields.most_hurt_first(job_fields.matching(answer.jobs, asked))
    if not jobs:
        st.html(markup.empty("No job is like that", ["Choose fewer words above, or empty the filters."]))
        return
    troubled = [row for row in jobs if words.in_trouble(row)]
    with st.container(key="alarms"):
        _alarms(troubled, answer.as_of)
    st.html(markup.tiles(_tiles(jobs, len(troubled)), lead=True))
    lost, by_state = st.columns([2, 1], gap="large")
    with lost:
        st.html(
            markup.section(
                "Where the time goes that is no training", "share of the wall time of all jobs", legend=True
            )
        )
        _pareto(frames.losses(frames.fleet_components(jobs)))
    with by_state:
        st.html(markup.section("Jobs by state"))
        chart(figures.states(frames.states(jobs)), title="Jobs by state", key="states")
    st.html(
        markup.section(words.many(len(jobs), "job"), "what hurts most comes first; choose one to open it")
    )
    _table(jobs, answer.as_of, asked)


def _alarms(troubled: Sequence[Job], now: float) -> None:
    if troubled:
        st.html(markup.attention(troubled[:MOST_ALARMS], now))


def _tiles(jobs: Sequence[Job], troubled: int) -> list[tuple[str, str, str]]:
    running = [row for row in jobs if not row.finished]
    wall_s = sum(row.wall_s for row in jobs)
    unsaved_s = sum(row.unsaved_exposure_s or 0.0 for row in running)
    return [
        (
            "Effective training time",
            words.percent(frames.fleet_percent(jobs)),
            ETT_MEANING,
        ),
        ("Running", words.whole(len(running)), "Jobs that are not over."),
        (
            "In trouble",
            words.whole(troubled),
            "Running jobs that are lost, stalled, recovering or unobserved.",
        ),
        ("Failures", words.whole(sum(row.failures for row in jobs)), "Attempts of these jobs that failed."),
        (
            "Unsaved now",
            words.duration(unsaved_s),
            "Training that would be lost if all running jobs died now.",
        ),
        ("Wall time", words.duration(wall_s), "From allocation to the end, or to now, of all jobs together."),
    ]


def _pareto(losses: Sequence[frames.Share]) -> None:
    if losses:
        chart(figures.pareto(losses), title="Largest losses by component", key="losses")
    else:
        st.html(markup.quiet("No time is lost so far."))


def _table(jobs: Sequence[Job], now: float, asked: Mapping[str, str]) -> None:
    fields, order = job_fields.fields(now), asked.get("sort", "")
    shown = listing.ordered(fields, jobs, order)[:MOST_ROWS]
    table(
        listing.columns(fields, order, lambda by: changed("", asked, sort=by)),
        listing.rows(fields, shown, lambda job: job.job_id),
        caption="Jobs",
        key="jobs",
    )
    if len(jobs) > len(shown):
        st.html(markup.quiet(f"The first {len(shown):,} of {len(jobs):,} jobs."))
    st.html(markup.csv_link("jobs", **asked))


def _no_jobs(exporter_url: str) -> str:
    return markup.empty(
        "No job has reported yet",
        [
            f"The exporter at {exporter_url} answers and waits.",
            "Start training under observation, and the job appears here within seconds:",
        ],
        f"export ETT_EXPORTER_URL={exporter_url}\nett run -- torchrun --nproc-per-node 2 train.py",
    )
