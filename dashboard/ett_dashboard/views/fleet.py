"""The Fleet page: which job is in trouble, and where the fleet loses its hours."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import streamlit as st

from ett_dashboard import figures, frames, job_fields, listing, markup, weights
from ett_dashboard.addresses import changed, to_failures, to_report
from ett_dashboard.chart import chart
from ett_dashboard.client import Question
from ett_dashboard.failures import questions as failure_questions
from ett_dashboard.fleet import figures as fleet_figures
from ett_dashboard.fleet import markup as fleet_markup
from ett_dashboard.fleet import questions, words
from ett_dashboard.fleet.rows import FleetWindow
from ett_dashboard.live import Reading, shared_reads
from ett_dashboard.rows import FleetAnswer
from ett_dashboard.settings import Source, of_app
from ett_dashboard.table import Column, Row, table
from ett_dashboard.views import address, choices, frame
from ett_dashboard.windows import WITHIN

FEW_ROWS, MOST_ROWS = 15, 200


def show() -> None:
    """Draw the page: the jobs in one live area, where their time went in another."""
    asked = address.asked()
    window, weighing = weighed(asked)
    shared_reads().begin(questions_of(asked, weighing))
    choices.of_jobs()
    choices.window_and_weight()
    frame.live(lambda: _jobs(asked, window, weighing))
    frame.live(lambda: _time(asked, window, weighing))


def weighed(asked: Mapping[str, str]) -> tuple[str, questions.Weighing]:
    """The window that the page looks at, and what a second weighs."""
    window, weight = choices.window_and_weight_asked(asked)
    return window, questions.weighing(weight, choices.price_per_hour(asked))


def questions_of(asked: Mapping[str, str], weighing: questions.Weighing) -> list[Question[Any]]:
    """What the page asks first; another order of the table is a question of its own."""
    order, most = order_and_most(asked)
    of_windows = (questions.window(name, weighing, asked) for name in questions.PARTS)
    of_jobs = (questions.jobs(asked, most=FEW_ROWS), questions.jobs(asked, order, most))
    return [*dict.fromkeys(of_jobs), *of_windows]


def _jobs(asked: Mapping[str, str], window: str, weighing: questions.Weighing) -> None:
    shared_reads().begin(questions_of(asked, weighing))
    reading = _most_urgent(asked)
    answer = reading.value
    st.html(markup.page_head("Fleet", frame.as_of(answer.as_of) if answer else ""))
    frame.signs_of_age(reading)
    with st.container(key="live"):
        if answer is None:
            return
        if answer.jobs:
            _listed(answer, asked, window, weighing)
        elif any(map(asked.get, questions.FILTERS)):
            st.html(markup.empty("No job is like that", ["Choose fewer words above, or empty the filters."]))
        else:
            st.html(_no_jobs(of_app().source))


def _most_urgent(asked: Mapping[str, str]) -> Reading[FleetAnswer]:
    return shared_reads().ask(questions.jobs(asked, most=FEW_ROWS))


def _listed(answer: FleetAnswer, asked: Mapping[str, str], window: str, weighing: questions.Weighing) -> None:
    windows = {name: _window(name, asked, weighing) for name in questions.PARTS}
    order, most = order_and_most(asked)
    shown = shared_reads().ask(questions.jobs(asked, order, most)).value or answer
    head = fleet_markup.jobs_head(shown.total, order)
    st.html(markup.stacked(fleet_markup.standing(answer, windows, window, weighing, asked), head))
    table(*listed(shown, asked), caption="Jobs", key="jobs")
    report = markup.to_keep(to_report(window=window, zone=str(frame.zone())), f"Report of {WITHIN[window]}")
    files = [report] if of_app().source.is_whole else []
    st.html(markup.under_table(len(shown.jobs), shown.total, most < MOST_ROWS, asked, files))


def order_and_most(asked: Mapping[str, str]) -> tuple[str, int]:
    """The order of the table of jobs, and how many rows of it are shown."""
    return asked.get("sort", ""), MOST_ROWS if asked.get("rows") == "more" else FEW_ROWS


def listed(answer: FleetAnswer, asked: Mapping[str, str]) -> tuple[list[Column], list[Row]]:
    """The table of jobs."""
    fields = job_fields.fields(answer.as_of, asked, is_whole=of_app().source.is_whole)
    columns = listing.columns(fields, asked.get("sort", ""), lambda by: changed("", asked, sort=by))
    return columns, listing.rows(fields, answer.jobs, lambda job: job.job_id)


def _time(asked: Mapping[str, str], window: str, weighing: questions.Weighing) -> None:
    answer = _most_urgent(asked).value
    with st.container(key="live_time"):
        if answer is None or not answer.jobs:
            return
        over_time = questions.over_time(window, weighing, asked, time.time())
        of_window = questions.window(window, weighing, asked)
        shared_reads().begin((of_window, failure_questions.classes(window, asked), over_time))
        found = shared_reads().ask(of_window)
        if found.value is not None or found.lacks:
            _losses(found, asked, window, weighing)
        over, by_state = st.columns([2, 1], gap="large")
        with by_state:
            st.html(markup.section("Jobs by state", "now"))
            chart(figures.states(frames.states(answer.together.states)), title="Jobs by state", key="states")
        with over:
            _over_time(over_time, window)


def _losses(
    found: Reading[FleetWindow], asked: Mapping[str, str], window: str, weighing: questions.Weighing
) -> None:
    within = WITHIN[window]
    left, right = st.columns(2, gap="large")
    with left:
        st.html(
            markup.section(
                "Where the time goes that is no training",
                f"{weights.UNITS[weighing.name]}, {within}",
                legend=True,
            )
        )
        lost = frames.losses(found.value.all.components) if found.value else []
        if found.lacks:
            st.html(markup.lacking(found.error or ""))
        elif found.value is None:
            st.html(markup.quiet(words.NOT_READ))
        elif lost:
            drawn = figures.pareto(lost, lambda value: weights.short(value * weighing.factor, weighing.name))
            chart(drawn, title="Largest losses by component", key="losses")
        else:
            st.html(markup.quiet("No time is lost so far."))
    with right:
        st.html(markup.section("Lost to failures, by class", f"accelerator-hours, {within}"))
        reading = shared_reads().ask(failure_questions.classes(window, asked))
        failures = reading.value
        if reading.lacks:
            st.html(markup.lacking(reading.error or ""))
        elif failures is not None and failures.groups:
            of_window = {**asked, "window": window}
            ways = [to_failures({**of_window, "failure_class": group.key}) for group in failures.groups]
            price = choices.price_per_hour(asked)
            drawn = figures.leading(fleet_figures.classes(failures.groups, price), ways)
            chart(drawn, title="Classes of failures by what they lost", key="classes")
            way = markup.link(to_failures(of_window), _all_failures())
            st.html(f'<p class="ett-take">{way}</p>')
        else:
            st.html(markup.quiet(words.no_failures(failures, within)))
        if failures is not None and failures.missing:
            st.html(markup.quiet(words.missing(failures.missing)))


def _over_time(question: Question[FleetWindow], window: str) -> None:
    known_then = "" if of_app().source.is_whole else ", as they were known after each hour"
    st.html(markup.section("Over time", f"shares of all time{known_then}; together 100 %", legend=True))
    reading = shared_reads().ask(question)
    found = reading.value
    if reading.lacks:
        st.html(markup.lacking(reading.error or ""))
    elif found is None:
        st.html(markup.quiet(words.NOT_READ))
    elif found.all.total:
        drawn = fleet_figures.over_time(found, frame.zone())
        chart(drawn, title="Shares of time by group", key="over_time", revision=window, zoom=True)
    else:
        st.html(markup.quiet("No time is known within this window."))


def _window(name: str, asked: Mapping[str, str], weighing: questions.Weighing) -> Reading[FleetWindow]:
    return shared_reads().ask(questions.window(name, weighing, asked))


def _all_failures() -> str:
    return "All failures and their evidence" if of_app().source.is_whole else "All classes of failures"


def _no_jobs(source: Source) -> str:
    if not source.is_whole:
        return markup.empty(
            "No series of a job is there",
            [
                f"The server at {source.url} answers, but it has none of the series ett_job_… now.",
                "Let it scrape /metrics of an exporter to which jobs report; look at --prometheus-matcher.",
            ],
        )
    return markup.empty(
        "No job has reported yet",
        [
            f"The exporter at {source.url} answers and waits.",
            "Start training under observation, and the job appears here within seconds:",
        ],
        f"export ETT_EXPORTER_URL={source.url}\nett run -- torchrun --nproc-per-node 2 train.py",
    )
