"""Asks an exporter for everything that a report tells, and writes the file."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from html import escape
from pathlib import Path

from ett_dashboard.chart import plotly_file
from ett_dashboard.client import Api, Question
from ett_dashboard.failures import questions
from ett_dashboard.fleet.questions import by_group, jobs
from ett_dashboard.fleet.rows import FleetWindow
from ett_dashboard.job.questions import decisions
from ett_dashboard.report import fleet, job, rows
from ett_dashboard.report.fleet import FleetReport
from ett_dashboard.report.page import document
from ett_dashboard.report.pieces import Piece
from ett_dashboard.windows import WINDOWS_S

READ_FOR_S = 60.0
"""So long a report waits until the exporter has read all jobs; then it says how many it lacks."""


def job_report(api: Api, job_id: str, zone: tzinfo) -> bytes:
    """The report of a job as a file of HTML.

    Raises:
        UnknownJobError: the exporter knows no such job.
        ExporterError: no usable answer.
    """
    told = api.ask(rows.job(job_id))
    decided = api.ask(decisions(job_id))
    return _file(job.title(told), job.pieces(told, decided, zone), told.known_at, zone)


def fleet_report(api: Api, window: str, zone: tzinfo, now: float) -> bytes:
    """The report of a fleet over one of the windows of failures before `now`, as a file of HTML.

    Raises:
        ValueError: there is no such window.
        ExporterError: no usable answer.
    """
    if window not in WINDOWS_S:
        raise ValueError(f"window: one of {', '.join(WINDOWS_S)}, not {window!r}")
    begin = now - WINDOWS_S[window]
    told = FleetReport(
        window=window,
        time=whole(api, by_group(window, "team", now)),
        jobs=[row for row in api.ask(jobs({})).jobs if row.end >= begin],
        failures=api.ask(questions.failures(window, "lost", {})),
        nodes=api.ask(questions.nodes(window, {})),
        regressions=api.ask(questions.regressions(window, {})),
        families=api.ask(questions.families(window, {})),
        runs=api.ask(questions.runs(window, {}, "")),
    )
    return _file(fleet.title(told), fleet.pieces(told, zone), told.time.as_of, zone)


def whole(
    api: Api, question: Question[FleetWindow], monotonic: Callable[[], float] = time.monotonic
) -> FleetWindow:
    """Where the time went; one asks again while the exporter reads jobs for it, up to a limit."""
    until_s = monotonic() + READ_FOR_S
    told = api.ask(question)
    while told.missing and monotonic() < until_s:
        told = api.ask(question)
    return told


def write(path: Path, content: bytes) -> None:
    """Put a file in its place whole, or not at all.

    Raises:
        OSError: it cannot be written there.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _file(title: str, pieces: Sequence[Piece], as_of: float, zone: tzinfo) -> bytes:
    at = datetime.fromtimestamp(as_of, zone)
    foot = f"Told by ettwatch as of {at:%Y-%m-%d %H:%M:%S} {at.tzname() or ''}; times are in this zone."
    plotly = plotly_file().read_text(encoding="utf-8")
    return document(title, [*pieces, f'<footer class="ett-foot">{escape(foot)}</footer>'], plotly)
