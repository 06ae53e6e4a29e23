"""Tables of failures and regressions as files, made from the readings that the pages share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone

from ett_dashboard import listing
from ett_dashboard.failures import fields, questions
from ett_dashboard.failures.frames import evidence_lines
from ett_dashboard.live import SharedReads, known
from ett_dashboard.paging import once
from ett_dashboard.regressions import fields as regression_fields

UTC = timezone.utc
USUAL_WINDOW = "7d"


def failures(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """All failures that are asked for."""
    pages = reads.pages(questions.every(_window(asked), asked))
    found = once((failure for page in pages for failure in page.failures), lambda failure: failure.id)
    columns = fields.failures_taken_away(UTC)
    return listing.as_csv(columns, listing.ordered(columns, found, asked.get("sort", "")))


def classes(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The classes of the failures that are asked for, with all their figures."""
    answer = known(reads.ask(questions.failures(_window(asked), asked.get("order", "lost"), asked)))
    return listing.as_csv(fields.groups(), answer.groups)


def nodes(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The nodes at which failures point, with the figures behind each verdict."""
    answer = known(reads.ask(questions.nodes(_window(asked), asked)))
    return listing.as_csv(fields.nodes_taken_away(UTC), answer.nodes)


def evidence(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """All evidence of one failure."""
    answer = known(reads.ask(questions.failure(asked.get("id", ""))))
    return listing.as_csv(fields.evidence(), evidence_lines(answer))


def runs(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The runs of a family with all their figures; of all families where none is asked for."""
    pages = reads.pages(questions.runs(_window(asked), asked, asked.get("family", "")))
    found = once((run for page in pages for run in page.runs), lambda run: (run.job_id, run.attempt))
    figures = sorted({figure for run in found for figure in run.figures})
    return listing.as_csv(regression_fields.runs(figures), found)


def families(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The families with what is usual in each."""
    found = known(reads.ask(questions.regressions(_window(asked), asked))).components
    answer = known(reads.ask(questions.families(_window(asked), asked)))
    return listing.as_csv(regression_fields.families(found, UTC, lambda family: family), answer.families)


def _window(asked: Mapping[str, str]) -> str:
    window = asked.get("window", "")
    if window and window not in questions.BUCKETS:
        raise ValueError(f"window: one of {', '.join(questions.BUCKETS)}, not {window!r}")
    return window or USUAL_WINDOW
