"""Tables as files: what `GET /csv/NAME?...` of the app answers.

A file is made when it is asked for, from the readings that the pages share. A download button of
Streamlit would make it anew with each refresh and forget the one that somebody is about to take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ett_dashboard import frames, job_fields, lever_files, listing
from ett_dashboard.failures import files as failure_files
from ett_dashboard.fleet import questions as fleet_questions
from ett_dashboard.job import fields as job_parts
from ett_dashboard.job import questions as job_questions
from ett_dashboard.job.ranks import rank_lines
from ett_dashboard.job.waterfall import starts
from ett_dashboard.live import SharedReads, known

Maker = Callable[[SharedReads, Mapping[str, str]], bytes]


def jobs(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The jobs that are chosen, in the order that is asked for."""
    answer = known(reads.ask(fleet_questions.jobs(asked, asked.get("sort", ""))))
    return listing.as_csv(job_fields.taken_away(answer.as_of), answer.jobs)


def partition(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The seconds of one job by component."""
    job = known(reads.job(asked.get("id", "")))
    return frames.partition_frame(job.components).to_csv(index=False).encode()


def attempts(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The attempts of one job, with how each of them started."""
    job = known(reads.job(asked.get("id", "")))
    return listing.as_csv(job_parts.attempts({}), starts(job))


def ranks(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The ranks of the latest attempt of one job."""
    job_id = asked.get("id", "")
    lines = rank_lines(known(reads.job(job_id)), known(reads.ask(job_questions.ranks(job_id))))
    return listing.as_csv(job_parts.ranks(), lines)


def saves(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The latest saves of one job, and what became of each."""
    return listing.as_csv(job_parts.saves(), known(reads.job(asked.get("id", ""))).checkpoints)


def compilations(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The latest compilations of one job, with why each was made again."""
    answer = known(reads.ask(job_questions.compilations(asked.get("id", ""))))
    return listing.as_csv(job_parts.compilations(), answer.compilations)


def decisions(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The latest decisions of the pipeline of one job."""
    answer = known(reads.ask(job_questions.decisions(asked.get("id", ""))))
    return listing.as_csv(job_parts.decisions(), answer.decisions)


FILES: Mapping[str, Maker] = {
    "jobs": jobs,
    "partition": partition,
    "attempts": attempts,
    "ranks": ranks,
    "saves": saves,
    "compilations": compilations,
    "decisions": decisions,
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
