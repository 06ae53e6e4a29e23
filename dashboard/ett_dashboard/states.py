"""How a job is, in words, and what to do about it. Pure rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ett_core.purposes import TRAINING
from ett_dashboard.rows import Job
from ett_dashboard.words import Sentence, ago, duration, percent, whole

LOOP_FAILURES = 3
"""Failures from which on one may speak of a loop."""
LONG_UNSAVED_S = 1800.0


def sentence(job: Job, now: float) -> Sentence:
    """How a job is at `now` (Unix seconds) and what to do."""
    if job.finished:
        return _over(job)
    return _SENTENCES.get(job.state, _at_work)(job, now)


def _recovering(job: Job, now: float) -> Sentence:
    how = f"recovering{_for(job.state_since, now)} after {_failure(job)}{_reached(job)}"
    if job.failures >= LOOP_FAILURES and list(job.ttr_s[-2:]) == [None, None]:
        return Sentence(how, "It fails again before it trains: stop it and read the evidence below.")
    return Sentence(how, "Nothing to do unless it takes longer than the last time.")


def _stalled(job: Job, now: float) -> Sentence:
    return Sentence(
        f"no progress{_for(job.last_progress_at, now)}{_reached(job)}",
        "Look at what the ranks are doing: a stack of each one shows who waits for whom.",
    )


def _lost(job: Job, now: float) -> Sentence:
    return Sentence(
        f"silent{_for(job.last_event_at, now)}{_last_progress(job, now)}; nobody said that it ended",
        "Look whether its processes still run and can reach the exporter.",
    )


def _unobserved(job: Job, _now: float) -> Sentence:
    return Sentence(
        f"running for {duration(job.wall_s)}, but no rank tells anything",
        "Only the launcher speaks. Let the trainer report, or its time stays unknown.",
    )


def _starting(job: Job, now: float) -> Sentence:
    return Sentence(f"starting{_for(job.state_since, now)}, no step yet")


def _at_work(job: Job, now: float) -> Sentence:
    work = job.state.replace("_", " ")
    doing = work if work == "training" else f"{work}{_for(job.state_since, now)}"
    parts = [doing]
    if job.step is not None:
        parts.append(f"step {whole(job.step)}")
    if job.last_progress_at is not None:
        parts.append(f"last progress {ago(_age(job.last_progress_at, now))}")
    if job.unsaved_exposure_s:
        parts.append(f"{duration(job.unsaved_exposure_s)} unsaved")
    return Sentence(", ".join(parts), _advice_unsaved(job))


def _over(job: Job) -> Sentence:
    ended = {
        "succeeded": "finished",
        "failed": "ended in failure",
        "timed_out": "ended at its time limit",
        "preempted": "ended by preemption",
        "cancelled": "ended by decision",
    }.get(job.state, f"over ({job.state.replace('_', ' ')})")
    trains = job.purpose == TRAINING and job.ett_percent is not None
    share = f", {percent(job.ett_percent)} of it effective" if trains else ""
    do = "Read the evidence of its last failure." if job.state == "failed" else ""
    return Sentence(f"{ended} after {duration(job.wall_s)}{_reached(job)}{share}", do)


def _advice_unsaved(job: Job) -> str:
    if job.last_durable_at is None and (job.unsaved_exposure_s or 0.0) > LONG_UNSAVED_S:
        return "No checkpoint is durable so far: a failure now would lose all of it."
    return ""


def _failure(job: Job) -> str:
    return f"failure {job.failures}" if job.failures else "a failure"


def _reached(job: Job) -> str:
    return "" if job.step is None else f", at step {whole(job.step)}"


def _last_progress(job: Job, now: float) -> str:
    """What stands for the last word of a job where only its progress is known."""
    if job.last_event_at is not None or job.last_progress_at is None:
        return ""
    return f", last progress {ago(_age(job.last_progress_at, now))}"


def _for(moment: float | None, now: float) -> str:
    """Since when, as an ending; nothing where that is not known."""
    return "" if moment is None else f" for {duration(_age(moment, now))}"


def _age(moment: float | None, now: float) -> float | None:
    return None if moment is None else max(now - moment, 0.0)


_SENTENCES: Mapping[str, Callable[[Job, float], Sentence]] = {
    "recovering": _recovering,
    "stalled": _stalled,
    "lost": _lost,
    "unobserved": _unobserved,
    "starting": _starting,
}
