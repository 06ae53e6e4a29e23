"""The fleet in words. Pure."""

from __future__ import annotations

from ett_core.components import FAILURE, TRAINING, group_seconds
from ett_dashboard.failures.rows import Failures
from ett_dashboard.fleet.rows import FleetTime
from ett_dashboard.weights import amount
from ett_dashboard.windows import WITHIN
from ett_dashboard.words import Sentence, many, ratio

NOT_READ = "The source has not answered this yet."


def left_out(count: int) -> str:
    """Of the jobs that are in no figure, as they are not there to train; empty without any.

    >>> left_out(1)
    '1 job that is not there to train is left out of all figures of time.'
    """
    be = "is" if count == 1 else "are"
    return (
        f"{many(count, 'job')} that {be} not there to train {be} left out of all figures of time."
        if count
        else ""
    )


def missing(count: int) -> str:
    """Of the jobs that are in no figure yet, as after a start of the exporter; empty without any.

    >>> missing(1)
    '1 job is not counted here yet: the exporter is still reading it.'
    """
    be, them = ("is", "it") if count == 1 else ("are", "them")
    why = f"the exporter is still reading {them}"
    return f"{many(count, 'job')} {be} not counted here yet: {why}." if count else ""


def no_failures(read: Failures | None, within: str) -> str:
    """What is said where no failures are shown: none are known only where an answer says so.

    >>> no_failures(None, "the last hour")
    'The source has not answered this yet.'
    """
    if read is None:
        return NOT_READ
    return f"Nothing failed within {within}{', as far as is known' if read.missing else ''}."


def summary(found: FleetTime, window: str, weight: str, factor: float) -> Sentence:
    """What was spent within the window, what of it was training, and where most of the rest went."""
    within = WITHIN[window]
    if not found.total:
        return Sentence(f"no job spent any time within {within}")
    who = "jobs" if found.jobs is None else many(found.jobs, "job")
    spent = f"{who} spent {amount(found.total * factor, weight)} within {within}"
    if found.effective_ratio is None:
        return Sentence(f"{spent}, and nobody observed what in")
    failed = group_seconds(found.components)[FAILURE] / found.total
    how = (
        f"{spent}; {ratio(found.effective_ratio)} of it was training whose effect survives, "
        f"{ratio(failed)} was lost to failures"
    )
    lost = {name: value for name, value in found.components.items() if name != TRAINING}
    if not lost:
        return Sentence(how)
    most = max(lost, key=lambda name: lost[name])
    return Sentence(how, f"The largest loss is {most}: {amount(lost[most] * factor, weight)}.")
