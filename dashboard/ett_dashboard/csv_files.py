"""Tables as files: what `GET /csv/NAME?...` of the app answers.

A file is made when it is asked for, from the readings that the pages share. A download button of
Streamlit would make it anew with each refresh and forget the one that somebody is about to take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ett_dashboard import job_fields, lever_files, listing
from ett_dashboard.failures import files as failure_files
from ett_dashboard.fleet import questions as fleet_questions
from ett_dashboard.job import files as job_files
from ett_dashboard.live import SharedReads, known

Maker = Callable[[SharedReads, Mapping[str, str]], bytes]


def jobs(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The jobs that are chosen, in the order that is asked for."""
    answer = known(reads.ask(fleet_questions.jobs(asked, asked.get("sort", ""))))
    return listing.as_csv(job_fields.taken_away(answer.as_of), answer.jobs)


FILES: Mapping[str, Maker] = {
    "jobs": jobs,
    "partition": job_files.partition,
    "attempts": job_files.attempts,
    "start": job_files.start,
    "recovery": job_files.recovery,
    "ranks": job_files.ranks,
    "saves": job_files.saves,
    "compilations": job_files.compilations,
    "decisions": job_files.decisions,
    "failures": failure_files.failures,
    "classes": failure_files.classes,
    "nodes": failure_files.nodes,
    "evidence": failure_files.evidence,
    "runs": failure_files.runs,
    "families": failure_files.families,
    "cache-runs": lever_files.cache_runs,
    "cache-comparison": lever_files.cache_comparison,
    "checkpoint-intervals": lever_files.checkpoint_intervals,
    "what-if-levers": lever_files.what_if_levers,
    "what-if-parts": lever_files.what_if_parts,
}
"""Every file by its name; what it is asked with stands in the address."""
