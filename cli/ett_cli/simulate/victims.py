"""Whom to preempt: what a victim taken at random would lose, and what the one with least unsaved would.

The hint is the one that a scheduler gets, `ett_job_unsaved_exposure_seconds`: the stories of a fleet are
read up to each of some moments and accounted for as of then. Seconds of training that a job would lose are
also accelerator-seconds for each accelerator that it gives free, so that large jobs weigh no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import NamedTuple, cast

import msgspec

from ett_cli.simulate.chance import Chance
from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.stories import Story
from ett_core.accounting.job import JobFold
from ett_core.events import AnyEvent

TRAINING = "training"


class Victims(msgspec.Struct, frozen=True, kw_only=True):
    """Preemptions of one job each at `moments` moments, of `jobs` jobs on average; unsaved seconds.

    `any_s`, `least_s`: expected loss of a victim taken at random, and of the one with least unsaved, at
    each moment. All are empty where never two jobs trained at once.
    """

    jobs: float
    any_s: Sequence[float]
    least_s: Sequence[float]

    @property
    def moments(self) -> int:
        """Moments at which there was a choice."""
        return len(self.any_s)


class _Exposed(NamedTuple):
    moment: int
    unsaved_s: float


def victims(fleet: Fleet, moments: int) -> Victims:
    """What either way would lose at so many moments, drawn evenly over the window of the scenario."""
    chance = Chance(f"{fleet.scenario.seed}/victims")
    at_ms = sorted(chance.randint(0, fleet.scenario.window_ms) for _ in range(moments))
    unsaved: list[list[float]] = [[] for _ in at_ms]
    for story in fleet.stories():
        for exposed in _exposures(fleet, story, at_ms):
            unsaved[exposed.moment].append(exposed.unsaved_s)
    return compared([each for each in unsaved if len(each) > 1])


def compared(unsaved: Sequence[Sequence[float]]) -> Victims:
    """The same from what each of the jobs that train at a moment would lose.

    >>> both = compared([[0.0, 60.0], [30.0, 90.0, 150.0]])
    >>> both.any_s, both.least_s, both.jobs
    ([30.0, 90.0], [0.0, 30.0], 2.5)
    """
    return Victims(
        jobs=fmean(map(len, unsaved)) if unsaved else 0.0,
        any_s=[fmean(each) for each in unsaved],
        least_s=[min(each) for each in unsaved],
    )


def table(found: Victims) -> list[str]:
    r"""The comparison in a few lines.

    >>> print("\n".join(table(compared([[0.0, 60.0], [30.0, 90.0, 150.0]]))))
    Preempting one job at 2 moments, of 2.5 jobs on average:
      victim         unsaved, mean    middle     worst
      any                   60.0 s    60.0 s    90.0 s
      least unsaved         15.0 s    15.0 s    30.0 s
      saved by the choice: 45.0 s of training a preemption (75.0 %)
    """
    if not found.moments:
        return ["Preempting: there were never two jobs to choose from."]
    saved_s = fmean(found.any_s) - fmean(found.least_s)
    share = 100 * saved_s / fmean(found.any_s) if any(found.any_s) else 0.0
    return [
        f"Preempting one job at {found.moments:,} moments, of {found.jobs:.1f} jobs on average:",
        f"  {'victim':<14} unsaved, mean    middle     worst",
        _row("any", found.any_s),
        _row("least unsaved", found.least_s),
        f"  saved by the choice: {saved_s:,.1f} s of training a preemption ({share:.1f} %)",
    ]


def _row(name: str, seconds: Sequence[float]) -> str:
    figures = (f"{fmean(seconds):,.1f} s", f"{median(seconds):,.1f} s", f"{max(seconds):,.1f} s")
    return f"  {name:<14} {figures[0]:>13} {figures[1]:>9} {figures[2]:>9}"


def _exposures(fleet: Fleet, story: Story, at_ms: Sequence[int]) -> Iterator[_Exposed]:
    """What the job would lose at those of the moments at which it trains."""
    fold = JobFold(story.plan.job_id)
    places = iter(enumerate(at_ms))
    place = next(places, None)
    for told_ms, event in story.events(at_ms[-1]):
        while place is not None and told_ms > place[1]:
            yield from _exposed(fleet, fold, *place)
            place = next(places, None)
        fold.add([cast("AnyEvent", event)])
    while place is not None:
        yield from _exposed(fleet, fold, *place)
        place = next(places, None)


def _exposed(fleet: Fleet, fold: JobFold, place: int, at_ms: int) -> Iterator[_Exposed]:
    account = fold.account(fleet.origin.ns(at_ms) / 1e9)
    if account is not None and account.state == TRAINING and account.unsaved_exposure_s is not None:
        yield _Exposed(place, account.unsaved_exposure_s)
