"""What `ett simulate` says: what it begins, how far it is, what it made, and where that is seen."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from ett_cli.amounts import many
from ett_cli.exporter_option import usual_exporter
from ett_cli.simulate.settings import Scenario
from ett_cli.simulate.truth import JobTruth

CLASSES_SHOWN = 6
SAID_EVERY_S = 10.0
LOOKED_EVERY = 256
"""Events between two looks at the clock."""


class Pulse:
    """Says how far something is, at most once in so many seconds of a clock.

    >>> moments = iter([0.0, 4.0, 12.0, 13.0])
    >>> pulse = Pulse(print, lambda: next(moments))
    >>> for number in range(1, 4):
    ...     pulse.beat(lambda: f"{number} of 3")
    2 of 3
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float], every_s: float = SAID_EVERY_S
    ) -> None:
        """The first word comes after the first so many seconds."""
        self._say, self._clock, self._every_s = say, clock, every_s
        self._said_at = clock()

    def beat(self, words: Callable[[], str]) -> None:
        """Say the words if it is time."""
        now = self._clock()
        if now - self._said_at >= self._every_s:
            self._said_at = now
            self._say(words())


def days_words(chosen: Scenario) -> str:
    """The length of the window."""
    return f"{chosen.days:g} day{'' if chosen.days == 1 else 's'}"


def beginning(name: str, chosen: Scenario, verb: str, where: str, speed: float | None) -> str:
    """What is done with the window; with a `speed` the fleet goes on after it.

    >>> print(beginning("small", Scenario(), "sends", "http://127.0.0.1:9410", None))
    ett simulate: sends 1 day of 12 jobs (scenario small) to http://127.0.0.1:9410; this takes a while
    >>> print(beginning("small", Scenario(), "writes", "x", 1.0))
    ett simulate: writes 1 day of 12 jobs (scenario small) to x, then goes on by the clock; Ctrl-C ends it
    """
    window = f"{days_words(chosen)} of {many(chosen.jobs, 'job')} (scenario {name})"
    begins = f"ett simulate: {verb} {window} to {where}"
    if speed is None:
        return f"{begins}; this takes a while"
    pace = "by the clock" if speed == 1 else f"{speed:g} times as fast as the clock"
    return f"{begins}, then goes on {pace}; Ctrl-C ends it"


def of_jobs(jobs: int, total: int, events: int) -> str:
    """How far a fleet is that is told job by job.

    >>> of_jobs(12, 40, 182000)
    '  12 of 40 jobs, 182,000 events so far'
    """
    return f"  {jobs:,} of {many(total, 'job')}, {events:,} events so far"


def of_past(share: float, events: int) -> str:
    """How far a fleet is that is told side by side, as a share of its past.

    >>> of_past(0.251, 182000)
    '  25 % of the past, 182,000 events so far'
    """
    return f"  {100 * share:.0f} % of the past, {events:,} events so far"


def is_now(events: int) -> str:
    """That all of the past has been delivered.

    >>> is_now(182000)
    'ett simulate: the past is delivered, 182,000 events; from now on each comes as it happens'
    """
    return f"ett simulate: the past is delivered, {events:,} events; from now on each comes as it happens"


def to_look_at(exporter_url: str, token_file: Path | None) -> str:
    """How the jobs of an exporter are looked at."""
    usual = usual_exporter()
    words = ["ett", "dashboard"]
    words += [] if exporter_url.rstrip("/") == usual.rstrip("/") else ["--exporter", exporter_url]
    words += [] if token_file is None else ["--token-file", str(token_file)]
    return f"  to look at them: {shlex.join(words)}"


def summary(name: str, chosen: Scenario, end_s: float, truths: Sequence[JobTruth]) -> list[str]:
    """What was made, in a few lines."""
    until = datetime.fromtimestamp(end_s, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    events = sum(truth.events for truth in truths)
    states = Counter(truth.outcome for truth in truths)
    classes = Counter(failure.failure_class for truth in truths for failure in truth.failures)
    wall_s = sum(truth.wall_s for truth in truths)
    trained_s = sum(truth.components.get("training", 0.0) for truth in truths)
    window = days_words(chosen)
    lines = [
        f"ett simulate: scenario {name}, seed {chosen.seed}, {window} until {until}",
        f"  {events:,} events of {len(truths):,} jobs: {_counted(states)}",
        f"  {sum(classes.values()):,} failures: {_counted(classes, CLASSES_SHOWN) or 'none'}",
    ]
    if wall_s:
        lines.append(
            f"  {100 * trained_s / wall_s:.1f} % of {wall_s / 3600:,.1f} job hours were effective training"
        )
    return lines


def silence(running: int) -> str:
    """What becomes of jobs that run at the end of the window, at an exporter that hears no more of them.

    >>> silence(1)
    '1 job still running: silent from now on, so called stalled soon (not with --live)'
    """
    return (
        f"{many(running, 'job')} still running: silent from now on, so called stalled soon (not with --live)"
    )


def _counted(counter: Counter[str], most: int | None = None) -> str:
    shown = counter.most_common(most)
    rest = sum(counter.values()) - sum(count for _, count in shown)
    parts = [f"{count} {name}" for name, count in shown]
    return ", ".join([*parts, many(rest, "other")] if rest else parts)
