"""Tables of the pages of caches, checkpoint intervals and what-if, as files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone

from ett_dashboard import listing
from ett_dashboard.caches import fields as cache_fields
from ett_dashboard.caches import questions as cache_questions
from ett_dashboard.caches.frames import comparison_rows
from ett_dashboard.caches.words import run_name
from ett_dashboard.checkpoints import fields as interval_fields
from ett_dashboard.checkpoints import questions as interval_questions
from ett_dashboard.live import SharedReads, known
from ett_dashboard.paging import once
from ett_dashboard.what_if import frames as what_if_frames
from ett_dashboard.what_if import questions as what_if_questions
from ett_dashboard.what_if.rows import WhatIf


def cache_runs(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """All runs with their caches, chosen as on their page."""
    pages = reads.pages(cache_questions.runs(asked))
    runs = once((run for page in pages for run in page.runs), lambda run: run.id)
    return listing.as_csv(cache_fields.taken_away(runs, timezone.utc), runs)


def cache_comparison(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """Two runs row by row, in the words of their page."""
    found = known(reads.ask(cache_questions.comparison(asked.get("one", ""), asked.get("two", ""))))
    runs = ("run", run_name(found.one), run_name(found.two))
    return listing.as_csv(cache_fields.compared(), [runs, *comparison_rows(found)])


def checkpoint_intervals(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """All jobs that save, with their intervals."""
    pages = reads.pages(interval_questions.intervals(asked))
    jobs = once((job for page in pages for job in page.jobs), lambda job: job.job_id)
    return listing.as_csv(interval_fields.taken_away(), jobs)


def what_if_levers(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """Each lever alone."""
    return what_if_frames.levers_frame(_supposed(reads, asked)).to_csv(index=False).encode()


def what_if_parts(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The partition as it is and with some levers."""
    return what_if_frames.parts_frame(_supposed(reads, asked)).to_csv(index=False).encode()


def _supposed(reads: SharedReads, asked: Mapping[str, str]) -> WhatIf:
    levers = [key for key in asked.get("levers", "").split(",") if key]
    window, weight = asked.get("window", "7d"), asked.get("weight", "accelerator")
    return known(reads.ask(what_if_questions.what_if(window, weight, levers, asked)))
