"""The Checkpoints page: how often to save, for a job as it was measured or by hand, and who is far off."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from ett_dashboard import listing, markup, words
from ett_dashboard.addresses import changed, to_job
from ett_dashboard.chart import chart
from ett_dashboard.checkpoints import fields, figures, questions
from ett_dashboard.checkpoints.curve import Supposed, supposed_of
from ett_dashboard.checkpoints.rows import IntervalRow, Intervals
from ett_dashboard.checkpoints.words import advice, by_the_models, fleet_sentence
from ett_dashboard.live import Reading, shared_reads
from ett_dashboard.table import table
from ett_dashboard.views import address, choices, frame

PATH = "checkpoints"
ROWS = 50
BY_HAND = Supposed(failures_a_day=3.0, blocking_s=15.0, upload_s=60.0, recovery_s=600.0)
"""Figures to begin with where no job is chosen."""
DIGITS = 3
LEAST_BLOCKING_S = 0.001
MEANINGS = {
    "failures_a_day": "Failures in a day of training.",
    "blocking_s": "Seconds that one save keeps the trainer from training.",
    "slowed_s": "Seconds by which one save in the background slows the steps beside it.",
    "upload_s": "Seconds from a save to its durability: until then a failure loses what lies before it, too.",
    "recovery_s": "Seconds from a failure back to the loop. It lifts the curve and leaves the best interval.",
}


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
    controls, curve = st.columns([1, 3], gap="large")
    with controls:
        supposed = _sliders(measured, job_id)
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
        link = f'<a href="{escape(to_job(job.job_id, asked))}" target="_self" class="ett-go">its page</a>'
        back = f'<a href="{escape(changed(PATH, asked, job=""))}" target="_self" class="ett-go">by hand</a>'
        facts = f"{words.many(job.saves, 'save')} and {words.many(job.failures, 'failure')}"
        facts += f" in {words.duration(job.loop_s)} of its loop"
        return (
            markup.section(words.plain(job.title, 80), f"as measured: {facts}")
            + f'<p class="ett-quiet">{link} · {back}</p>'
        )
    if job_id := asked.get("job", ""):
        why = "is not known to have saved anything" if is_read else "cannot be read now"
        return markup.section("By hand", f"{words.plain(job_id, 80)} {why}")
    return markup.section("By hand", "choose a job below to begin with its own figures")


def _sliders(measured: Supposed, job_id: str) -> Supposed:
    names = {
        "failures_a_day": ("Failures a day", 0.1),
        "blocking_s": ("Blocking of a save, s", 0.1),
        "slowed_s": ("Slowing by a save, s", 0.1),
        "upload_s": ("Upload of a save, s", 1.0),
        "recovery_s": ("Recovery of a failure, s", 30.0),
    }
    chosen = {
        name: _slider(label, name, getattr(measured, name), step, job_id)
        for name, (label, step) in names.items()
    }
    if all(value == round(getattr(measured, name), DIGITS) for name, value in chosen.items()):
        return measured
    return Supposed(
        failures_a_day=chosen["failures_a_day"],
        blocking_s=max(chosen["blocking_s"], LEAST_BLOCKING_S),
        slowed_s=chosen["slowed_s"],
        upload_s=chosen["upload_s"],
        recovery_s=chosen["recovery_s"],
        interval_s=measured.interval_s,
    )


def _slider(label: str, name: str, value: float, step: float, job_id: str) -> float:
    """A slider that begins at what was measured and reaches to four times of it."""
    start = round(value, DIGITS)
    top = max(4 * start, 20 * step)
    return float(
        st.slider(label, 0.0, top, start, step=step / 10, key=f"{name} {job_id}", help=MEANINGS[name])
    )


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
    known, order = fields.fields(asked), asked.get("sort", "")
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
