"""Progress reports one by one, as the folds of details take in those of a rank that came together."""

from __future__ import annotations

from ett_core.runs import rows_of


def refused(event, error):
    """No report of a test is refused."""
    raise AssertionError(f"refused: {event}") from error


def timed(event):
    """Attempt, rank and rows of a report, without any row where it tells no step times."""
    rows = rows_of([event], refused)
    return event.attempt, event.rank, [row for row in rows if row[4]]
