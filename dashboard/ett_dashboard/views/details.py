"""The lower part of the Job page: caches, compilation, ranks, checkpoints, areas, versions."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from ett_core.accounting.account import AttemptAccount
from ett_dashboard import frames, markup, words
from ett_dashboard.rows import JobDetail
from ett_dashboard.views import frame

MOST_CHECKPOINTS = 100
ROW_HEIGHT, TALLEST = 35, 290


def show(job: JobDetail) -> None:
    """Draw the tables under the partition of a job."""
    left, right = st.columns(2, gap="large")
    with left:
        _caches(job)
        _areas(job)
    with right:
        _ranks(job)
        _checkpoints(job)
    if job.versions or job.labels:
        st.html(markup.section("Versions and labels"))
        st.html(markup.versions(job))


def _caches(job: JobDetail) -> None:
    st.html(markup.section("Compile caches", "with the seconds that compiling took all the same"))
    if job.caches:
        table = frames.caches_frame(job.caches)
        _table(table.style.format({"Hit rate": _share}), "caches", len(table))
    if job.compile:
        table = frames.compile_frame(job.compile)
        _table(table.style.format({"Seconds": _seconds}), "compile", len(table))
    if not job.caches and not job.compile:
        _quiet("Nothing was compiled or looked up so far, or the trainer does not report it.")


def _areas(job: JobDetail) -> None:
    if job.areas:
        st.html(markup.section("The training cycle", "the same seconds, cut by who looks after them"))
        st.html(markup.area_table(job.areas))


def _ranks(job: JobDetail) -> None:
    st.html(markup.section("Ranks", "the last attempt that trained; last to start comes first"))
    attempt = _last_that_trained(job)
    if attempt is None:
        _quiet("No rank has begun its first batch so far.")
        return
    table = frames.ranks_frame(attempt)
    _table(table.style.format({"First batch after": _seconds}), "ranks", len(table))
    if job.hidden:
        parts = ", ".join(f"{words.plain(phase, 40)} {words.duration(s)}" for phase, s in job.hidden.items())
        st.text(f"Hidden by work beside it: {parts}")


def _checkpoints(job: JobDetail) -> None:
    st.html(markup.section("Checkpoints", "latest first"))
    if not job.checkpoints:
        _quiet("None so far: a failure takes back everything since the start.")
        return
    table = frames.checkpoints_frame(job.checkpoints[-MOST_CHECKPOINTS:], frame.zone())
    formats: dict[str, Any] = {"Blocking": _seconds, "Durable after": _seconds, "Step": "{:,}"}
    _table(table.style.format(formats), "checkpoints", len(table))


def _last_that_trained(job: JobDetail) -> AttemptAccount | None:
    return next((attempt for attempt in reversed(job.attempt_list) if attempt.first_batch_at), None)


def _table(styled: Styler, key: str, rows: int) -> None:
    height = min(ROW_HEIGHT * (rows + 1) + 3, TALLEST)
    st.dataframe(
        styled, key=key, hide_index=True, width="stretch", height=height, placeholder=words.UNKNOWN_FIGURE
    )


def _quiet(text: str) -> None:
    st.html(markup.quiet(text))


def _seconds(value: Any) -> str:  # noqa: ANN401 - a cell of a table
    return words.duration(None if pd.isna(value) else value)


def _share(value: Any) -> str:  # noqa: ANN401 - a cell of a table
    return words.percent(None if pd.isna(value) else value)
