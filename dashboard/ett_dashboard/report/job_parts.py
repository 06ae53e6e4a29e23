"""Starts, throughput and decisions in the report of a job, as on its page. Pure."""

from __future__ import annotations

from datetime import tzinfo
from html import escape

from ett_dashboard import markup
from ett_dashboard.job import fields, throughput
from ett_dashboard.job.markup import waterfall
from ett_dashboard.job.rows import Decisions
from ett_dashboard.job.tiles import throughput_tiles
from ett_dashboard.job.told import decisions_table
from ett_dashboard.job.waterfall import Start, starts, steps_of_start
from ett_dashboard.job.words import start_sentence
from ett_dashboard.report.pieces import Chart, Piece, listed
from ett_dashboard.report.rows import ReportedJob

MOST_STARTS = 10
"""The latest starts are taken apart, the others stand in the table only."""
MOST_ATTEMPTS = 40
MOST_DECISIONS = 40


def starts_of(job: ReportedJob) -> list[Piece]:
    """What each of the latest starts was made of, and all attempts with their steps a second."""
    head = markup.section("Starts", "of each attempt: what happened until its loop began")
    known = starts(job)
    if not known:
        return [head, markup.quiet("No attempt has begun so far.")]
    latest = known[: -MOST_STARTS - 1 : -1]
    return [
        head,
        *(_start(job, start, is_open=start is known[-1]) for start in latest),
        markup.section("Attempts", "the latest first"),
        listed("Attempts", fields.attempts({}), known[::-1], most=MOST_ATTEMPTS),
    ]


def _start(job: ReportedJob, start: Start, *, is_open: bool) -> str:
    parts = steps_of_start(job, start)
    told = start_sentence(start, parts)
    drawn = waterfall(parts, f"Start of attempt {start.attempt.attempt}")
    hidden = markup.quiet(told.do) if told.do else ""
    how = f"{told.how[:1].upper()}{told.how[1:]}"
    return f"<details{' open' if is_open else ''}><summary>{escape(how)}</summary>{drawn}{hidden}</details>"


def decisions_of(told: Decisions, zone: tzinfo) -> list[Piece]:
    """What its pipeline decided, and why."""
    head = markup.section("Decisions", "what its pipeline decided, and why; the latest first")
    if not told.decisions:
        return [head, markup.quiet("None: no part of the optimised pipeline told of one.")]
    shown = told.decisions[:MOST_DECISIONS]
    table = markup.scrolled(decisions_table(shown, zone), "Decisions")
    left = told.total - len(shown)
    return [head, table, markup.quiet(f"{left:,} earlier ones are left out.")] if left else [head, table]


def throughput_of(job: ReportedJob, zone: tzinfo) -> list[Piece]:
    """How fast it trains, and over its life."""
    parts: list[Piece] = [
        markup.section("Throughput", "how fast it trains"),
        markup.tiles(throughput_tiles(job)),
    ]
    known = throughput.paces(job)
    if any(pace.rate(throughput.unit_of(known)) for pace in known):
        drawn = throughput.figure(known, job.failure_list, (job.start, job.known_at), zone)
        parts += [markup.quiet(throughput.note(known)), Chart(drawn, throughput.title(known))]
    return parts
