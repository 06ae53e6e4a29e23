"""Jobs and their checkpoint intervals to tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ett_dashboard.checkpoints.rows import IntervalRow
from ett_dashboard.checkpoints.words import is_far
from ett_dashboard.words import plain

COLUMNS = (
    "Job",
    "Interval",
    "Best",
    "Best, at least",
    "Best, at most",
    "Wasted",
    "At best",
    "Could save",
    "Blocking",
    "Upload",
    "Saves",
    "Failures",
    "Verdict",
)
NUMBERS = (*COLUMNS[1:10],)


def intervals_frame(jobs: Sequence[IntervalRow]) -> pd.DataFrame:
    """Jobs in the order given; times in seconds, shares in percent, savings in accelerator-seconds."""
    rows = [
        (
            plain(job.title, 60),
            job.interval_s,
            job.best_s,
            job.shortest_s,
            job.longest_s,
            job.wasted_percent,
            job.best_percent,
            job.excess_accelerator_s,
            job.blocking_s,
            job.upload_s,
            job.saves,
            job.failures,
            verdict(job),
        )
        for job in jobs
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(NUMBERS, "float64"))


def verdict(job: IntervalRow) -> str:
    """Whether a job saves as often as it should, as far as its failures tell."""
    if job.best_s is None:
        return "no failure yet"
    if not is_far(job):
        return "near the best"
    return "too seldom" if job.interval_s > job.best_s else "too often"
