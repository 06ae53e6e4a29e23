"""Tables of one job as files, made from the readings that its page shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ett_dashboard import frames, listing
from ett_dashboard.client import LacksError
from ett_dashboard.job import fields, questions
from ett_dashboard.job.ranks import rank_lines
from ett_dashboard.job.waterfall import spans, starts, steps, time_of_recovery
from ett_dashboard.live import SharedReads, known
from ett_dashboard.rows import JobDetail
from ett_dashboard.settings import of_app

T = TypeVar("T")


def partition(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The seconds of one job by component."""
    return frames.partition_frame(_job(reads, asked).components).to_csv(index=False).encode()


def attempts(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The attempts of one job, with how each of them started."""
    job = _in_full(reads, asked, "what each attempt did")
    return listing.as_csv(fields.attempts({}), starts(job))


def start(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """What the start of one attempt was made of; of the latest one where none is asked for."""
    job = _in_full(reads, asked, "what each start was made of")
    chosen = _attempt(asked, {one.attempt.attempt: (one.begin, one.end) for one in starts(job)})
    return _taken_apart(reads, job, chosen)


def recovery(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """What the recovery from the failure of one attempt was made of; the latest where none is asked for."""
    job = _in_full(reads, asked, "what each recovery was made of")
    known_of = {failure.attempt: time_of_recovery(job, failure) for failure in job.failure_list}
    return _taken_apart(reads, job, _attempt(asked, known_of))


def ranks(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The ranks of the latest attempt of one job."""
    lines = rank_lines(_job(reads, asked), known(reads.ask(questions.ranks(asked.get("id", "")))))
    return listing.as_csv(fields.ranks(), lines)


def saves(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The latest saves of one job, and what became of each."""
    job = _in_full(reads, asked, "each save, and what became of it,")
    return listing.as_csv(fields.saves_taken_away(), job.checkpoints)


def compilations(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The latest compilations of one job, with why each was made again."""
    answer = known(reads.ask(questions.compilations(asked.get("id", ""))))
    return listing.as_csv(fields.compilations(), answer.compilations)


def decisions(reads: SharedReads, asked: Mapping[str, str]) -> bytes:
    """The latest decisions of the pipeline of one job."""
    answer = known(reads.ask(questions.decisions(asked.get("id", ""))))
    return listing.as_csv(fields.decisions(), answer.decisions)


def _job(reads: SharedReads, asked: Mapping[str, str]) -> JobDetail:
    return known(reads.job(asked.get("id", "")))


def _in_full(reads: SharedReads, asked: Mapping[str, str], what: str) -> JobDetail:
    """A job with its lists.

    Raises:
        LacksError: metrics are read, which have none of them: an empty table would say that there is nothing.
    """
    if not of_app().source.is_whole:
        raise LacksError(f"{what} needs the exporter's API")
    return _job(reads, asked)


def _attempt(asked: Mapping[str, str], known_of: Mapping[int, T]) -> tuple[int, T] | None:
    """The attempt that is asked for, and what is known of it; the latest, or None where there is none.

    Raises:
        ValueError: nothing is known of that attempt.
    """
    if "attempt" not in asked:
        return max(known_of.items(), key=lambda item: item[0], default=None)
    named = {str(number): number for number in known_of}
    if asked["attempt"] not in named:
        there = f"one of {', '.join(named)}" if named else "there is none"
        raise ValueError(f"attempt: {there}, not {asked['attempt']!r}")
    number = named[asked["attempt"]]
    return number, known_of[number]


def _taken_apart(reads: SharedReads, job: JobDetail, chosen: tuple[int, tuple[float, float]] | None) -> bytes:
    """The bars of that time; its timeline is asked for anew, as that of a long job is joined."""
    if chosen is None:
        return listing.as_csv(fields.spans(), [])
    attempt, (begin, end) = chosen
    if begin >= end:
        return listing.as_csv(fields.spans(), [])
    found = known(reads.ask(questions.stretches(job.job_id, begin, end))).stretches
    return listing.as_csv(fields.spans(), spans(attempt, begin, steps(found, begin, end)))
