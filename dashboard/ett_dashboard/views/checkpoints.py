"""The Checkpoints page: how often to save, for a job as it was measured or by hand, and who is far off."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ett_dashboard import listing, markup, words
from ett_dashboard.addresses import changed, to_job
from ett_dashboard.boxes import boxes
from ett_dashboard.chart import chart
from ett_dashboard.checkpoints import fields, figures, questions
from ett_dashboard.checkpoints.curve import Supposed, supposed_of
from ett_dashboard.checkpoints.rows import IntervalRow, Intervals
from ett_dashboard.checkpoints.sliders import SLIDERS, slider, supposed_in, without
from ett_dashboard.checkpoints.words import advice, by_the_models, fleet_sentence
from ett_dashboard.live import Reading, shared_reads
from ett_dashboard.table import table
from ett_dashboard.views import address, choices, frame

PATH = "checkpoints"
ROWS = 50
BY_HAND = Supposed(failures_a_day=3.0, blocking_s=15.0, upload_s=60.0, recovery_s=600.0)
"""Figures to begin with where no job is chosen."""


def show() -> None:
    """Draw the page; the address may name a job, `?job=`."""
    chosen, asked = choices.jobs_asked(), address.asked()
    shared_reads().begin((questions.intervals(chosen),))
    choices.of_jobs()
    job_id = asked.get("job", "")
    read = _known(job_id)
    job = read.value.of(job_id) if read.value else None
    measured = BY_HAND if job is None else supposed_of(job)
    st.html(markup.page_head("Checkpoints", ""))
    with st.container(key="curve-head"):
        st.html(_head(job, asked, is_read=read.value is not None))
    supposed = supposed_in(asked, measured)
    controls, curve = st.columns([1, 3], gap="large")
    with controls:
        boxes([slider(name, measured, supposed) for name in SLIDERS], key="supposed")
        if supposed != measured:
            back = markup.link(changed(PATH, without(asked)), "as it began")
            st.html(f'<p class="ett-quiet">{back}</p>')
    with curve, st.container(key="curve-box"):
        st.html(markup.said(advice(supposed)))
        chart(
            figures.wasted_time(supposed),
            title="Share of the training time wasted, by the time between two saves",
            key="curve",
            revision=job_id or "by hand",
            zoom=True,
        )
        if models := by_the_models(supposed):
            st.html(markup.quiet(models))
    frame.live(lambda: _draw(chosen, asked))


def _known(job_id: str) -> Reading[Intervals]:
    """What is known of the saves of the job of an identity."""
    return shared_reads().ask(questions.intervals({"text": job_id})) if job_id else Reading()


def _head(job: IntervalRow | None, asked: dict[str, str], *, is_read: bool) -> str:
    if job is not None:
        page = markup.link(to_job(job.job_id, asked), "its page")
        back = markup.link(changed(PATH, without(asked), job=""), "by hand")
        facts = f"{words.many(job.saves, 'save')} and {words.many(job.failures, 'failure')}"
        facts += f" in {words.duration(job.loop_s)} of its loop"
        return (
            markup.section(words.plain(job.title, 80), f"as measured: {facts}")
            + f'<p class="ett-quiet">{page} · {back}</p>'
        )
    if job_id := asked.get("job", ""):
        why = "is not known to have saved anything" if is_read else "cannot be read now"
        return markup.section("By hand", f"{words.plain(job_id, 80)} {why}")
    return markup.section("By hand", "choose a job below to begin with its own figures")


def _draw(chosen: dict[str, str], asked: dict[str, str]) -> None:
    reading = shared_reads().ask(questions.intervals(chosen))
    answer = reading.value
    frame.signs_of_age(reading)
    with st.container(key="live"):
        if answer is not None:
            _jobs(answer, chosen, asked)


def _jobs(answer: Intervals, chosen: dict[str, str], asked: dict[str, str]) -> None:
    jobs: Sequence[IntervalRow] = answer.jobs
    st.html(
        markup.section("Jobs and their intervals", f"{frame.as_of(answer.as_of)}; the dearest first")
        + markup.said(fleet_sentence(list(jobs), is_chosen=bool(chosen)))
    )
    if not jobs:
        return
    known, order = fields.fields(without(asked)), asked.get("sort", "")
    shown = listing.ordered(known, jobs, order)[:ROWS]
    table(
        listing.columns(known, order, lambda by: changed(PATH, asked, sort=by)),
        listing.rows(known, shown, lambda job: job.job_id, asked.get("job", "")),
        caption="Jobs and their checkpoint intervals",
        key="intervals",
    )
    if answer.total > len(shown):
        st.html(markup.quiet(f"{len(shown):,} of {answer.total:,} jobs; all of them in the CSV."))
    st.html(markup.csv_link("checkpoint-intervals", **chosen))
    frame.lacks("how long uploads take")
