"""The report of a fleet over a window: where its time went, what failed, what became slower. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from functools import partial

import msgspec

from ett_core.components import group_seconds
from ett_core.urgency import urgency
from ett_dashboard import figures, frames, job_fields, markup
from ett_dashboard.columns import accelerator_seconds, count, percentage, text
from ett_dashboard.columns import figures as numbers
from ett_dashboard.failures import fields as failure_fields
from ett_dashboard.failures import figures as failure_figures
from ett_dashboard.failures import markup as failure_markup
from ett_dashboard.failures.frames import by_domain
from ett_dashboard.failures.rows import Failures, Nodes, Regressions
from ett_dashboard.failures.tiles import LOST_MEANING, failures_tiles
from ett_dashboard.failures.words import fleet_sentence
from ett_dashboard.fleet.rows import FleetTime, FleetWindow
from ett_dashboard.fleet.words import left_out, missing
from ett_dashboard.listing import Field
from ett_dashboard.regressions import fields as regression_fields
from ett_dashboard.regressions import figures as regression_figures
from ett_dashboard.regressions import markup as regression_markup
from ett_dashboard.regressions.frames import history, in_order
from ett_dashboard.regressions.rows import Families, Runs
from ett_dashboard.regressions.words import family_name, figure_name
from ett_dashboard.report.pieces import Chart, Columns, Piece, listed
from ett_dashboard.rows import Job
from ett_dashboard.tiles import Tile
from ett_dashboard.windows import WITHIN
from ett_dashboard.words import HOUR_S, compact, hours, percent, plain, when, whole

MOST_JOBS = 50
MOST_FAILURES = 50
MOST_HISTORIES = 8
ETT_MEANING = "Share of the held accelerator time that was training whose effect survives."
HOURS = numbers(lambda seconds: compact(None if seconds is None else seconds / HOUR_S))


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the report of a fleet tells, as the query API answered."""

    window: str
    time: FleetWindow
    jobs: Sequence[Job]
    failures: Failures
    nodes: Nodes
    regressions: Regressions
    families: Families
    runs: Runs


def title(told: FleetReport) -> str:
    """What the file is about."""
    return f"Fleet, {WITHIN[told.window]}: effective training time"


def pieces(told: FleetReport, zone: tzinfo) -> list[Piece]:
    """The report from top to bottom; moments are in `zone`."""
    span = f"{when(told.time.begin, zone)} to {when(told.time.end, zone)}"
    return [
        markup.page_head(f"Fleet, {WITHIN[told.window]}", span),
        markup.tiles(_tiles(told), lead=True),
        *_time(told.time),
        *_failures(told, zone),
        *_slower(told, zone),
        *_jobs(told.jobs, told.time.end),
    ]


def _tiles(told: FleetReport) -> list[Tile]:
    time, lost = told.time.all, told.failures.lost_accelerator_s
    ratio = None if time.effective_ratio is None else 100 * time.effective_ratio
    return [
        (
            "Effective training time",
            percent(ratio),
            ETT_MEANING,
        ),
        ("Held", hours(time.total), "Accelerator-hours that jobs held in this time."),
        ("Jobs", whole(time.jobs), "Jobs with any time in it."),
        ("Failures", whole(told.failures.total), "Attempts that ended before they were through."),
        (
            "Lost to failures",
            hours(lost),
            LOST_MEANING,
        ),
    ]


def _time(window: FleetWindow) -> list[Piece]:
    shares = frames.partition(window.all.components)
    note = "accelerator-hours held; each belongs to exactly one component"
    parts: list[Piece] = [markup.section("Where the time went", note, legend=True)]
    notes = (missing(window.missing), left_out(window.left_out))
    parts += [markup.quiet(note) for note in notes if note]
    if not shares:
        return [*parts, markup.quiet("No job held an accelerator in this time.")]
    ratio = window.all.effective_ratio
    percentage = None if ratio is None else 100 * ratio
    ring = Chart(figures.donut(shares, percentage, _hours), "Partition of the held time")
    lost = frames.losses(window.all.components)
    largest = Chart(figures.pareto(lost, _hours), "Largest losses by component")
    parts.append(Columns(cells=[[ring], [largest]], widths=[1, 2]))
    parts.append(listed("Held time by component", held(), [*shares, frames.whole_of(shares)]))
    if window.fleet:
        parts += [
            markup.section("By team", "of the held accelerator time"),
            listed("Teams", groups(), sorted(window.fleet, key=lambda group: (-_lost(group), group.key))),
        ]
    return parts


def held() -> list[Field[frames.Share]]:
    """The columns of the partition of held accelerator time."""
    return [
        text("component", "Component", "Every second that was held belongs to exactly one."),
        text("group", "Group", "What the published formula counts it towards."),
        failure_fields.SENTENCE("meaning", "What it holds", "Which seconds are meant."),
        HOURS("seconds", "Accelerator-hours", "Hours that accelerators were held, each counting its own."),
        percentage("percent", "Share", "Of all held time; the rows add up to 100.0 %."),
    ]


def groups() -> list[Field[FleetTime]]:
    """The columns of the table of teams."""
    return [
        text("team", "Team", "As labels of its jobs say.", lambda group: plain(group.key) or "(none)"),
        count("jobs", "Jobs", "Jobs with any time within the window."),
        accelerator_seconds("total", "Held", "Accelerator-hours that its jobs held."),
        *(
            percentage(name, title, f"Of its held time: {meaning}.", partial(_share, name))
            for name, (title, meaning) in markup.GROUP_TITLES.items()
        ),
        count("failures", "Failures", "Attempts of its jobs that failed."),
    ]


def _share(name: str, group: FleetTime) -> float | None:
    return 100 * group_seconds(dict(group.components))[name] / group.total if group.total else None


def _lost(group: FleetTime) -> float:
    return group.total * (1.0 - (group.effective_ratio or 0.0))


def _failures(told: FleetReport, zone: tzinfo) -> list[Piece]:
    found, span = told.failures, (told.regressions.begin, told.regressions.end)
    parts: list[Piece] = [markup.section("Failures", "what they cost, when, and what is to blame")]
    parts.append(markup.said(fleet_sentence(found)))
    if not found.total:
        return parts
    parts.append(markup.tiles(failures_tiles(found, told.nodes)))
    outbreaks = told.regressions.outbreaks
    if outbreaks:
        parts.append(failure_markup.outbreaks(outbreaks, zone))
    over_time = failure_figures.over_time(by_domain(found.over_time), outbreaks, span, zone, by_count=True)
    parts += [
        Columns(
            cells=[
                [Chart(failure_figures.pareto(found.groups), "Classes of failures by what they cost")],
                [Chart(over_time, "Failures over time"), failure_markup.domains()],
            ],
            widths=[1, 1],
        ),
    ]
    if told.nodes.nodes:
        parts.append(markup.section("Nodes at which failures point", "suspects first"))
        parts.append(listed("Nodes", failure_fields.nodes(zone), told.nodes.nodes))
    worst = sorted(found.failures, key=lambda failure: (-failure.lost_accelerator_s, failure.id))
    parts.append(markup.section("Failures that cost most"))
    parts.append(listed("Failures", failure_fields.failures(zone), worst, most=MOST_FAILURES))
    return parts


def _slower(told: FleetReport, zone: tzinfo) -> list[Piece]:
    found = told.regressions.components
    parts: list[Piece] = [markup.section("Slower in new runs", "each family of jobs against its own history")]
    if not found:
        parts.append(markup.quiet("No part of a start, a recovery or the loop became longer."))
    else:
        parts.append(regression_markup.alarms(found, zone))
    span = (told.runs.begin, told.runs.end)
    charts = [_history(told, number, span, zone) for number in range(min(len(found), MOST_HISTORIES))]
    parts += [
        Columns(cells=charts[place : place + 2], widths=[1] * len(charts[place : place + 2]))
        for place in range(0, len(charts), 2)
    ]
    if told.families.families:
        fields = regression_fields.families(found, zone, lambda family: family)
        parts.append(listed("Families", fields, in_order(told.families.families, found)))
    return parts


def _history(told: FleetReport, number: int, span: tuple[float, float], zone: tzinfo) -> list[Piece]:
    change = told.regressions.components[number]
    shown = history(told.runs.runs, change.figure, change.family, change)
    name = f"{figure_name(change.figure)} of {family_name(change.family)}"
    return [markup.quiet(name), Chart(regression_figures.history(shown, span, zone), name)]


def _hours(accelerator_s: float) -> str:
    return hours(accelerator_s)


def _jobs(jobs: Sequence[Job], now: float) -> list[Piece]:
    return [
        markup.section("Jobs", "what hurts most comes first"),
        listed("Jobs", job_fields.fields(now), sorted(jobs, key=urgency), most=MOST_JOBS),
    ]
