"""The Job page: how one job is, where its time went, what failed and why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

import streamlit as st

from ett_dashboard import figures, frames, markup, tiles, words
from ett_dashboard.addresses import settings_of, to_failure, to_failures, to_page, to_report
from ett_dashboard.boxes import Box, boxes
from ett_dashboard.chart import chart
from ett_dashboard.client import Question
from ett_dashboard.fleet import questions
from ett_dashboard.job.markup import partition, partition_head, standing, waterfall, ways
from ett_dashboard.job.waterfall import steps_of_recovery
from ett_dashboard.live import shared_reads
from ett_dashboard.rows import EvidenceRow, FailureRow, FleetAnswer, JobDetail
from ett_dashboard.settings import of_app
from ett_dashboard.views import address, choices, details, frame, job_over_time, job_starts, job_timeline

MOST_OFFERED = 100
"""Jobs in the box; a part of a name chooses among more."""
MOST_FAILURES = 10
"""Failures taken apart; the page of failures lists all."""


def show() -> None:
    """Draw the page of the job that the address names with `?id=`."""
    asked = address.asked()
    job_id, text = asked.get("id", ""), asked.get("text", "")
    offered = questions.jobs({"text": text}, most=MOST_OFFERED)
    shared_reads().begin((offered,), job_id)
    above = st.container(key="choosing")
    if job_id:
        frame.live(lambda: _draw(job_id, asked))
    elif shared_reads().ask(offered).value is None:
        frame.live(lambda: _nothing_read(offered, text))
        return
    else:
        frame.live(lambda: frame.signs_of_age(shared_reads().ask(offered)))
        st.html(markup.quiet("Choose a job above; Fleet lists them with those first that hurt most."))
    with above:
        _choose(job_id, text, shared_reads().ask(offered).value)


def _nothing_read(offered: Question[FleetAnswer], text: str) -> None:
    """Until the source answers; a refresh draws the box once it does."""
    reading = shared_reads().ask(offered)
    frame.signs_of_age(reading)
    _choose("", text, reading.value)


def _choose(job_id: str, text: str, answer: FleetAnswer | None) -> None:
    """A box of the jobs that are most urgent; of very many, another box narrows it to a part of a name."""
    titles = {job.job_id: words.plain(job.title, 60) for job in answer.jobs} if answer else {}
    if job_id:
        shown = shared_reads().job(job_id).value
        titles.setdefault(job_id, words.plain(shown.title if shown else job_id, 60))
    options = tuple(titles.items())
    job = Box(name="id", title="Job", kind="find", options=options, hint=_hint(answer), clears=("attempt",))
    is_part = bool(text) or (answer is not None and answer.total > len(answer.jobs))
    part = [choices.words("text", "Text", "Part of a name")] if is_part else []
    boxes([*part, *([job] if titles else [])], key="choose")
    if titles or answer is None:
        return
    if text:
        st.html(markup.quiet("No job has this in its name or labels."))
    else:
        st.html(markup.empty("No job to show", [f"{of_app().source.url} knows of none so far."]))


def _hint(answer: FleetAnswer | None) -> str:
    if answer is None or answer.total <= len(answer.jobs):
        return "Choose a job"
    return f"Choose among {len(answer.jobs)} of {answer.total:,} jobs"


def _draw(job_id: str, asked: Mapping[str, str]) -> None:
    reading = shared_reads().job(job_id)
    if reading.unknown:
        st.html(
            markup.empty(
                f"{of_app().source.name} knows no job of this name",
                [
                    f"Asked for: {words.plain(job_id)}",
                    "It may not have reported yet. Fleet lists those that have.",
                    *([] if of_app().source.is_whole else ["What ended is known for 7 days more."]),
                ],
            )
        )
        return
    frame.signs_of_age(reading)
    with st.container(key="live"):
        if reading.value is not None:
            _job(reading.value, asked)


def _job(job: JobDetail, asked: Mapping[str, str]) -> None:
    if of_app().source.is_whole:
        shared_reads().begin(details.questions_of(job))
    over_time = job_timeline if of_app().source.is_whole else job_over_time
    more = elsewhere(job.job_id, asked, frame.zone())
    frame.told(standing(job, more), over_time.head(frame.as_of(job.known_at)))
    if of_app().source.is_whole:
        job_timeline.show(job, asked)
    else:
        job_over_time.show(job)
    _partition(job, asked)
    job_starts.show(job, asked)
    _failures(job, asked)
    details.show(job, asked)


def elsewhere(job_id: str, asked: Mapping[str, str], zone: tzinfo) -> str:
    """Where more is told of a job, with the settings of the viewer and no filter that it may not fit."""
    settings = settings_of(asked)
    pages = [
        ("Its compile caches", to_page("caches", settings, text=job_id)),
        ("Its checkpoint interval", to_page("checkpoints", settings, job=job_id)),
    ]
    if not of_app().source.is_whole:
        return ways(pages)
    report = markup.to_keep(to_report(id=job_id, zone=str(zone)), "Report as one file")
    return ways([("Its failures", _its_failures(job_id, settings)), *pages], report)


def _its_failures(job_id: str, settings: Mapping[str, str]) -> str:
    return to_failures({**settings, "text": job_id, "window": "90d"})


def _partition(job: JobDetail, asked: Mapping[str, str]) -> None:
    st.html(partition_head())
    ring, table = st.columns([1, 3], gap="medium")
    with ring:
        drawn = figures.donut(frames.partition(job.components), job.ett_percent)
        chart(drawn, title="Partition of the wall time", key="donut")
        st.html(markup.csv_link("partition", id=job.job_id))
    with table:
        st.html(partition(job, asked))


def _failures(job: JobDetail, asked: Mapping[str, str]) -> None:
    failures = job.failure_list
    head = markup.section("Failures", "what ended an attempt, what it cost, and the lines that tell of it")
    lacking = frame.lacking(f"what is known of its {words.many(job.failures, 'failure')}")
    if job.failures and lacking:
        frame.told(head, lacking)
        return
    frame.told(head, "" if failures else markup.quiet("None so far."))
    for number, failure in reversed(list(enumerate(failures, 1))[-MOST_FAILURES:]):
        with st.expander(_failure_title(number, failure), expanded=number == len(failures)):
            frame.told(markup.tiles(tiles.failure_tiles(failure)), _recovery(job, failure))
            more = ways([("Evidence across ranks, and what to do", to_failure(failure.id, asked))])
            frame.told(_evidence(failure), more if failure.id else "")
    if len(failures) > MOST_FAILURES:
        told = f"The latest {MOST_FAILURES} of {len(failures):,} failures."
        everything = _its_failures(job.job_id, settings_of(asked))
        st.html(markup.quiet(told) + ways([("All of its failures", everything)]))


def _recovery(job: JobDetail, failure: FailureRow) -> str:
    steps = steps_of_recovery(job, failure)
    if not steps:
        return ""
    file = markup.csv_link("recovery", "Recovery as CSV", id=job.job_id, attempt=str(failure.attempt))
    return waterfall(steps, f"Recovery from the failure of attempt {failure.attempt}") + file


def _failure_title(number: int, failure: FailureRow) -> str:
    cause = words.markdown_safe(words.plain(failure.cause or "cause unknown", 90))
    return (
        f"**{number}. {cause}**, attempt {failure.attempt}, {words.moment(failure.time, frame.zone())[11:]}"
    )


def _evidence(failure: FailureRow) -> str:
    said = ": ".join(words.plain(word, 2000) for word in (failure.exception, failure.message) if word)
    told = any(failure.message and failure.message in row.text for row in failure.evidence)
    lines = [] if told else [said]
    lines += [_evidence_line(row) for row in failure.evidence]
    kept = [line for line in lines if line]
    return markup.lines("\n".join(kept), "Evidence") if kept else markup.quiet("No line tells of it.")


def _evidence_line(row: EvidenceRow) -> str:
    """One piece of evidence; the lines after its first are indented below it."""
    rank = "" if row.rank is None else "launcher" if row.rank < 0 else f"rank {row.rank}"
    source = " ".join(words.plain(word, 40) for word in (rank, row.node, row.source) if word)
    first, *more = [words.plain(line, 1000) for line in row.text.splitlines()] or [""]
    head = f"{words.moment(row.time, frame.zone())[11:]}  {source}: {first}"
    return "\n".join([head, *(f"    {line}" for line in more)])
