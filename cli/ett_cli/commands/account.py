"""`ett account`: where the time of recorded jobs went. Reads journals, folds, prints; no state."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ett_cli.saying import complain, remark, say

if TYPE_CHECKING:
    from ett_cli.recorded import Recorded
    from ett_core.events import AnyEvent
    from ett_core.lines import Decoded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett account`."""
    parser.epilog = (
        "Bad lines are told on standard error as FILE:LINE: REASON and stop nothing. "
        "Exit status: 0 if any job could be accounted for, 1 if none, 2 for a wrong command line."
    )
    parser.add_argument(
        "journals",
        nargs="+",
        metavar="JOURNAL",
        help="a journal (events, one a line), a file holding one JSON array of events, "
        "a directory of such files (*.jsonl, *.json), or - for standard input; what ends in .gz is unpacked",
    )
    parser.add_argument(
        "--now",
        metavar="UNIX",
        help="account of running jobs as of this moment, in Unix seconds (default: the clock)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace, *, clock: Callable[[], float] = time.time) -> int:
    """Print the accounts of all jobs found; 1 where there is none, 2 for a moment that is none."""
    from ett_cli.journals import collector_paused, read_journals

    try:
        now = clock() if arguments.now is None else _moment(arguments.now)
    except ValueError as error:
        return complain("account", error, 2)
    told = _Told()
    with collector_paused():
        jobs = _fold(told.telling(read_journals(arguments.journals)))
    answers = [answer for _, job in sorted(jobs.items()) if (answer := job.as_json(now)) is not None]
    if arguments.json:
        print(json.dumps({"jobs": answers}, indent=1))
    elif answers:
        print("\n\n\n".join(map(render, answers)))
    elif not told.anything:
        say("account", "no event of any job in there.")
    return 0 if answers else 1


def _moment(text: str) -> float:
    """A moment in Unix seconds, in the range of the times in events."""
    try:
        moment = float(text)
    except ValueError:
        moment = math.nan
    if not abs(moment) < 1e11:  # noqa: PLR2004 - the range of times in events
        raise ValueError(f"--now needs Unix seconds, not {text!r}")
    return moment


class _Told:
    """Tells on standard error of what could not be read, as it passes."""

    def __init__(self) -> None:
        self.anything = False

    def telling(self, parts: Iterable[Decoded]) -> Iterable[Decoded]:
        """The same parts; at their end the bad lines are counted."""
        count = 0
        for part in parts:
            for bad in part.bad:
                remark("account", bad)
                self.anything = True
            count += sum(1 for bad in part.bad if bad.line)
            yield part
        if count:
            lines = "bad line" if count == 1 else "bad lines"
            say("account", f"{count:,} {lines}; the rest was used.")


def _fold(parts: Iterable[Decoded]) -> dict[str, Recorded]:
    from ett_cli.recorded import Recorded

    jobs: dict[str, Recorded] = {}
    for part in parts:
        for job_id, events in by_job(part.events).items():
            if job_id not in jobs:
                jobs[job_id] = Recorded(job_id)
            jobs[job_id].add(events)
    return jobs


def by_job(events: Iterable[AnyEvent]) -> dict[str, list[AnyEvent]]:
    """Events by job, in their order."""
    jobs: dict[str, list[AnyEvent]] = {}
    for event in events:
        members = jobs.get(event.job_id)
        if members is None:
            members = jobs[event.job_id] = []
        members.append(event)
    return jobs


def render(job: Mapping[str, Any]) -> str:
    """One job as its report, and what its figures must be read with."""
    from ett_cli.report import report

    return "\n".join([report(job), *_remarks(job)])


def _remarks(job: Mapping[str, Any]) -> Iterable[str]:
    if job["resume_evidence"] == "unknown":
        yield "Where it resumed is unknown, as no checkpoint was spoken of: nothing is called lost."
    if job["not_saved"]:
        yield "It ended by decision, with training that no checkpoint holds."
    if job["survived_failures"]:
        yield f"Failures of single ranks that training outlived: {job['survived_failures']}."
