"""The lower part of the Job page: ranks, throughput, caches, areas, checkpoints, decisions, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st

from ett_dashboard import frames, listing, markup
from ett_dashboard.addresses import settings_of, to_page
from ett_dashboard.checkpoints import questions as interval_questions
from ett_dashboard.checkpoints.curve import supposed_of
from ett_dashboard.checkpoints.rows import Intervals
from ett_dashboard.checkpoints.words import advice
from ett_dashboard.client import Question
from ett_dashboard.job import fields, questions
from ett_dashboard.job.markup import ways
from ett_dashboard.job.ranks import rank_lines, rank_sentences
from ett_dashboard.job.tiles import checkpoint_tiles
from ett_dashboard.live import shared_reads
from ett_dashboard.partition import area_table
from ett_dashboard.report import pieces
from ett_dashboard.rows import JobDetail
from ett_dashboard.settings import of_app
from ett_dashboard.table import table
from ett_dashboard.views import frame, job_throughput, job_told

MOST_CHECKPOINTS = 100
MOST_RANKS = 16


def questions_of(job: JobDetail) -> Iterator[Question[Any]]:
    """What is asked of the query API of an exporter beside the job itself."""
    yield questions.ranks(job.job_id, is_over=job.finished)
    yield questions.decisions(job.job_id, is_over=job.finished)
    if job.compile:
        yield questions.compilations(job.job_id, is_over=job.finished)
    if job.checkpoints or job.checkpoint_count:
        yield _interval_of(job)


def show(job: JobDetail, asked: Mapping[str, str]) -> None:
    """Draw the tables under the partition of a job."""
    _ranks(job)
    left, right = st.columns(2, gap="large")
    with left:
        job_throughput.show(job)
        frame.told(*_caches(job))
        frame.told(*job_told.compiled_again(job))
        frame.told(*_areas(job))
    with right:
        _checkpoints(job, asked)
    frame.told(*job_told.decisions(job), *_versions(job))


def _caches(job: JobDetail) -> list[str]:
    """As in a report: what Streamlit makes of a styled frame took two fifths of a refresh of the page."""
    parts = [markup.section("Compile caches", "with the seconds that compiling took all the same")]
    if job.caches:
        parts.append(pieces.listed("Compile caches by kind", fields.caches(), sorted(job.caches.items())))
    if job.compile:
        parts.append(pieces.listed("Compile stages", fields.stages(), frames.stages(job.compile)))
    if not job.caches and not job.compile:
        nothing = "Nothing was compiled or looked up so far, or the trainer does not report it."
        parts.append(markup.quiet(nothing))
    elif job.caches and of_app().source.is_whole:
        parts.append(markup.csv_link("cache-runs", text=job.job_id))
    return parts


def _areas(job: JobDetail) -> list[str]:
    if not job.areas:
        return []
    note = "the same seconds, cut by who looks after them"
    return [markup.section("The training cycle", note), area_table(job.areas)]


def _versions(job: JobDetail) -> list[str]:
    told = job.versions or job.labels
    return [markup.section("Versions and labels"), markup.versions(job)] if told else []


def _ranks(job: JobDetail) -> None:
    head = markup.section("Ranks", "who is slow, who was last to start, who died first")
    if lacking := frame.lacking("what each rank does"):
        frame.told(head, lacking)
        return
    ranks = shared_reads().ask(questions.ranks(job.job_id, is_over=job.finished)).value
    if ranks is None:
        frame.told(head, markup.quiet("The ranks of this job cannot be read now."))
        return
    lines = rank_lines(job, ranks)
    told = "".join(map(markup.quiet, rank_sentences(job.failure_list, ranks)))
    if not lines:
        frame.told(head, told, markup.quiet("No rank of the latest attempt has told anything so far."))
        return
    frame.told(head, told)
    known = fields.ranks()
    table(
        listing.columns(known, "", None),
        listing.rows(known, lines[:MOST_RANKS], lambda line: str(line.row.rank)),
        caption="Ranks",
        key="ranks",
    )
    some = markup.quiet(f"{MOST_RANKS} of {len(lines):,} ranks; all of them in the CSV.")
    frame.told(some if len(lines) > MOST_RANKS else "", markup.csv_link("ranks", id=job.job_id))


def _checkpoints(job: JobDetail, asked: Mapping[str, str]) -> None:
    head = markup.section("Checkpoints", "how often it saves, and should; the latest saves first")
    if not job.checkpoints and not job.checkpoint_count:
        frame.told(head, markup.quiet("None so far: a failure takes back everything since the start."))
        return
    answer = shared_reads().ask(_interval_of(job)).value
    interval = answer.of(job.job_id) if answer else None
    verdict = markup.said(advice(supposed_of(interval))) if interval else ""
    address = to_page("checkpoints", settings_of(asked), job=job.job_id)
    curve = ways([("What other intervals would waste", address)])
    figures = markup.tiles(checkpoint_tiles(job, interval)) + verdict + curve
    lacking = frame.lacking("each save, and what became of it,")
    frame.told(head, figures, lacking)
    if lacking:
        return
    latest = frames.latest_saves(job.checkpoints)
    saves = pieces.listed("Saves", fields.saves(frame.zone()), latest, most=MOST_CHECKPOINTS)
    st.html(f'<div class="ett-saves">{saves}</div>{markup.csv_link("saves", id=job.job_id)}')


def _interval_of(job: JobDetail) -> Question[Intervals]:
    return interval_questions.intervals({"text": job.job_id})
