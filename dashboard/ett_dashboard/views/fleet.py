"""The Fleet page: which job is in trouble, and where the fleet loses its hours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler
from streamlit.delta_generator import DeltaGenerator

from ett_core.colours import state_group
from ett_core.components import GROUP_COLOURS
from ett_dashboard import figures, frames, markup, words
from ett_dashboard.chart import chart
from ett_dashboard.rows import FleetAnswer, Job
from ett_dashboard.settings import Settings
from ett_dashboard.views import frame, job

TABLE, SHOWN, CHOSEN = "jobs", "jobs_shown", "job_chosen"
MOST_ALARMS = 3
ETT_MEANING = (
    "Share of the wall time of all jobs listed, queueing included, that was spent training with an effect "
    "that survives. Every second of every job weighs the same."
)


def show() -> None:
    """Draw the page."""
    _go_to_chosen()
    head, aside = st.columns([9, 1], vertical_alignment="center")
    with aside:
        frame.pause_toggle()
    title = head.empty()
    frame.live(lambda: _draw(title))


def _draw(title: DeltaGenerator) -> None:
    _go_to_chosen()
    reading = frame.reads().jobs()
    frame.signs_of_age(reading)
    answer = reading.value
    title.html(markup.page_head("Fleet", frame.as_of(answer.as_of) if answer else ""))
    with st.container(key="live"):
        if answer is not None and answer.jobs:
            _fleet(answer)
        elif answer is not None:
            st.html(_no_jobs(Settings.from_environment().exporter_url))


def _fleet(answer: FleetAnswer) -> None:
    jobs = frames.most_hurt_first(answer.jobs)
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
        markup.section(
            words.many(len(jobs), "job"), "what hurts most comes first; choose a row to open the job"
        )
    )
    _table(jobs, answer.as_of)


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


def _table(jobs: Sequence[Job], now: float) -> None:
    st.session_state[SHOWN] = [row.job_id for row in jobs]
    st.dataframe(
        _styled(frames.jobs_frame(jobs, now)),
        key=TABLE,
        on_select=_chosen,
        selection_mode=["single-row", "single-cell"],
        hide_index=True,
        placeholder=words.UNKNOWN_FIGURE,
        width="stretch",
        height=min(36 * (len(jobs) + 1) + 2, 560),
        column_config=_columns(),
    )


def _styled(table: pd.DataFrame) -> Styler:
    durations = ["For", "Time to start", "Unsaved now", "Wall time"]
    formats: dict[str, Any] = dict.fromkeys(durations, _duration)
    formats |= {"ETT": _percent, "Last progress": _ago}
    colour = {
        state: f"color: {GROUP_COLOURS[state_group(state)]}; font-weight: 600" for state in table["State"]
    }
    return table.style.format(formats).map(lambda state: colour[state], subset=["State"])


def _columns() -> dict[str, Any]:
    helps = {
        "State": "The first that applies of: over, lost, recovering, stalled, at work.",
        "For": "How long the job has been in this state.",
        "ETT": "Share of the job's wall time spent training with an effect that survives.",
        "Time to start": "From the beginning of the wall time to the first training loop.",
        "Failures": "Attempts that failed.",
        "Unsaved now": "Training that would be lost if the job died now.",
        "Last progress": "When a step was last reported.",
        "Wall time": "From the allocation of hardware to the end, or to now.",
    }
    columns: dict[str, Any] = {name: st.column_config.Column(help=text) for name, text in helps.items()}
    return {
        "Job": st.column_config.Column(width="medium", help="Name of the job, else its identity."),
        **columns,
    }


def _chosen() -> None:
    selection = st.session_state[TABLE].selection
    rows = [*selection.rows, *(row for row, _ in selection.cells)]
    shown = st.session_state.get(SHOWN, [])
    if rows and rows[0] < len(shown):
        st.session_state[CHOSEN] = shown[rows[0]]


def _go_to_chosen() -> None:
    job_id = st.session_state.pop(CHOSEN, None)
    if job_id is not None:
        st.switch_page(st.Page(job.show, url_path=job.URL_PATH), query_params={"id": job_id})


def _duration(seconds: float) -> str:
    return words.UNKNOWN_FIGURE if pd.isna(seconds) else words.duration(seconds)


def _percent(value: float) -> str:
    return words.UNKNOWN_FIGURE if pd.isna(value) else words.percent(value)


def _ago(seconds: float) -> str:
    return words.ago(None if pd.isna(seconds) else seconds)


def _no_jobs(exporter_url: str) -> str:
    return markup.empty(
        "No job has reported yet",
        [
            f"The exporter at {exporter_url} answers and waits.",
            "Start training under observation, and the job appears here within seconds:",
        ],
        f"export ETT_EXPORTER_URL={exporter_url}\nett run -- torchrun --nproc-per-node 2 train.py",
    )
