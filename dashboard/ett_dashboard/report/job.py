"""The report of a job: the same words and figures as its page, in one file. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from html import escape

from ett_core.accounting.account import AttemptAccount
from ett_core.colours import DOMAIN_COLOURS
from ett_dashboard import figures, frames, markup, tiles, timeline
from ett_dashboard.failures import markup as failure_markup
from ett_dashboard.failures.frames import evidence_lines
from ett_dashboard.failures.rows import JobFailure
from ett_dashboard.failures.words import failure_sentence, recurrence
from ett_dashboard.job import fields
from ett_dashboard.job.markup import waterfall
from ett_dashboard.job.rows import Decisions
from ett_dashboard.job.waterfall import steps_of_recovery
from ett_dashboard.partition import area_table, partition_table
from ett_dashboard.report.job_parts import decisions_of, starts_of, throughput_of
from ett_dashboard.report.pieces import Chart, Columns, Piece, listed
from ett_dashboard.report.rows import ReportedJob
from ett_dashboard.rows import StretchRow
from ett_dashboard.words import moment, plain

TIMELINE_COLUMNS = 640
MOST_BARS = 2000
"""A timeline with more rectangles than this is drawn more coarsely."""
MOST_FAILURES = 20
"""The latest failures are shown with their evidence, the others in one line each."""
MOST_LINES = 25
MOST_CHARACTERS = 600
"""Of each failure and each of its lines."""
MOST_ROWS = 100


def title(job: ReportedJob) -> str:
    """What the file is about."""
    return f"{plain(job.title)}: effective training time"


def pieces(job: ReportedJob, decided: Decisions, zone: tzinfo) -> list[Piece]:
    """The report from top to bottom; moments are in `zone`."""
    shares = frames.partition(job.components)
    return [
        markup.job_head(job, job.known_at) + markup.purpose_of_job(job),
        markup.tiles(tiles.job_tiles(job), lead=True),
        *_timeline(job, zone),
        markup.section("Every second of the job", "each belongs to exactly one component"),
        Columns(
            cells=[
                [Chart(figures.donut(shares, job.ett_percent), "Partition of the wall time")],
                [partition_table(shares)],
            ],
            widths=[1, 3],
        ),
        *_failures(job, zone),
        *starts_of(job),
        *throughput_of(job, zone),
        *_details(job, zone),
        *decisions_of(decided, zone),
        *_versions(job),
    ]


def _timeline(job: ReportedJob, zone: tzinfo) -> list[Piece]:
    head = markup.section("Attempts over time", "drag to zoom, double-click for all", legend=True)
    if not job.timeline:
        return [head, markup.quiet("No stretch of time is known so far.")]
    drawn = timeline.figure(_bars(job.timeline, TIMELINE_COLUMNS), job.failure_list, zone)
    return [head, Chart(drawn, "Attempts over time by component")]


def _bars(stretches: Sequence[StretchRow], columns: int) -> list[frames.Bar]:
    bars = frames.bars(stretches, columns)
    return bars if len(bars) <= MOST_BARS or columns == 1 else _bars(stretches, columns // 2)


def _failures(job: ReportedJob, zone: tzinfo) -> list[Piece]:
    failures = job.failure_list
    head = markup.section("Failures", "what ended an attempt, what it cost, and the lines that tell of it")
    if not failures:
        return [head, markup.quiet("None so far.")]
    numbered = list(enumerate(failures, 1))
    recent, earlier = numbered[-MOST_FAILURES:], numbered[:-MOST_FAILURES]
    shown: list[Piece] = [head]
    for number, failure in reversed(recent):
        shown.append(failure_part(job, number, failure, zone))
    if earlier:
        lines = "".join(
            f"<li>{_one_line(number, failure, zone)}</li>" for number, failure in reversed(earlier)
        )
        shown.append(f"<details><summary>{len(earlier):,} earlier ones</summary><ul>{lines}</ul></details>")
    return shown


def failure_part(job: ReportedJob, number: int, failure: JobFailure, zone: tzinfo) -> str:
    """One failure: what it means, what it cost, what its recovery took, and its evidence across ranks."""
    is_open = number == len(job.failure_list)
    lines = evidence_lines(failure, MOST_CHARACTERS)
    domain = failure.diagnosis.domain
    hue = DOMAIN_COLOURS.get(domain, DOMAIN_COLOURS["unknown"])
    marks = failure_markup.mark(f"{domain}, {failure.diagnosis.confidence}", hue)
    steps = steps_of_recovery(job, failure)
    recovery = waterfall(steps, f"Recovery from the failure of attempt {failure.attempt}") if steps else ""
    again = "" if failure.recurrence.count == 1 else failure_markup.mark(recurrence(failure), hue)
    return (
        f"<details{' open' if is_open else ''}><summary>{_one_line(number, failure, zone)}</summary>"
        f"<p>{marks} {again}</p>{markup.said(failure_sentence(failure))}"
        f"{markup.tiles(tiles.failure_tiles(failure))}{recovery}"
        f"{failure_markup.evidence_table(lines, zone, most=MOST_LINES)}</details>"
    )


def _one_line(number: int, failure: JobFailure, zone: tzinfo) -> str:
    cause = markup.of_job(failure.cause or "cause unknown", 160)
    at = moment(failure.time, zone)
    return f"{number}. {escape(failure.diagnosis.failure_class)}, attempt {failure.attempt}, {at}: {cause}"


def _details(job: ReportedJob, zone: tzinfo) -> list[Piece]:
    caches: list[Piece] = [
        markup.section("Compile caches", "with the seconds that compiling took all the same")
    ]
    if job.caches:
        caches.append(listed("Compile caches", fields.caches(), sorted(job.caches.items())))
    if job.compile:
        caches.append(listed("Compile stages", fields.stages(), frames.stages(job.compile)))
    if not job.caches and not job.compile:
        caches.append(markup.quiet("Nothing was compiled or looked up so far, or nobody reports it."))
    if job.areas:
        note = "the same seconds, cut by who looks after them"
        caches += [markup.section("The training cycle", note), area_table(job.areas)]
    ranks: list[Piece] = [markup.section("Ranks", "the last attempt that trained; last to start comes first")]
    attempt = _last_that_trained(job)
    if attempt is None:
        ranks.append(markup.quiet("No rank has begun its first batch so far."))
    else:
        shown = frames.first_batches(attempt)
        ranks.append(listed("Ranks", fields.first_batches(), shown, most=MOST_ROWS // 4))
    ranks.append(markup.section("Checkpoints", "latest first"))
    if job.checkpoints:
        saves = frames.latest_saves(job.checkpoints)
        ranks.append(listed("Checkpoints", fields.saves(zone), saves, most=MOST_ROWS // 4))
    else:
        ranks.append(markup.quiet("None so far: a failure takes back everything since the start."))
    return [Columns(cells=[caches, ranks], widths=[1, 1])]


def _versions(job: ReportedJob) -> list[Piece]:
    told = job.versions or job.labels
    return [markup.section("Versions and labels"), markup.versions(job)] if told else []


def _last_that_trained(job: ReportedJob) -> AttemptAccount | None:
    return next((attempt for attempt in reversed(job.attempt_list) if attempt.first_batch_at), None)
