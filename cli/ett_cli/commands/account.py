"""`ett account`: where the time of recorded jobs went. Reads journals, folds, prints; no state."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ett_core.accounting import FailureAccount, JobAccount, JobFold
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
        "a directory of such files (*.jsonl, *.json), or - for standard input",
    )
    parser.add_argument(
        "--now",
        type=_moment,
        metavar="UNIX",
        help="account as of this moment, in Unix seconds (default: the clock)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _moment(text: str) -> float:
    moment = float(text)
    if not math.isfinite(moment):
        raise argparse.ArgumentTypeError(f"{text} is no moment in Unix seconds")
    return moment


def run(arguments: argparse.Namespace, *, clock: Callable[[], float] = time.time) -> int:
    """Print the accounts of all jobs found; 1 where there is none."""
    from ett_cli.journals import collector_paused, read_journals

    with collector_paused():
        folds = _fold(_telling(read_journals(arguments.journals)))
    now = clock() if arguments.now is None else arguments.now
    accounts = [account for _, fold in sorted(folds.items()) if (account := fold.account(now)) is not None]
    if arguments.json:
        print(json.dumps({"jobs": [as_json(account) for account in accounts]}, indent=1))
    elif accounts:
        print("\n\n\n".join(render(as_json(account)) for account in accounts))
    else:
        print("ett account: no event of any job in there.", file=sys.stderr)
    return 0 if accounts else 1


def _telling(parts: Iterable[Decoded]) -> Iterable[Decoded]:
    """The same parts; their bad lines are told on standard error as they pass, then counted."""
    count = 0
    for part in parts:
        for bad in part.bad:
            print(bad if bad.line else f"{bad.source}: {bad.reason}", file=sys.stderr)
        count += len(part.bad)
        yield part
    if count:
        print(f"ett account: {count} bad line{'s' if count > 1 else ''}; the rest was used.", file=sys.stderr)


def _fold(parts: Iterable[Decoded]) -> dict[str, JobFold]:
    from ett_core.accounting import JobFold

    folds: dict[str, JobFold] = {}
    for part in parts:
        for job_id, events in by_job(part.events).items():
            if job_id not in folds:
                folds[job_id] = JobFold(job_id)
            folds[job_id].add(events)
    return folds


def by_job(events: Iterable[AnyEvent]) -> dict[str, list[AnyEvent]]:
    """Events by job, in their order."""
    jobs: dict[str, list[AnyEvent]] = {}
    for event in events:
        members = jobs.get(event.job_id)
        if members is None:
            members = jobs[event.job_id] = []
        members.append(event)
    return jobs


def as_json(account: JobAccount) -> dict[str, Any]:
    """What `--json` prints of one job. Times are Unix seconds, `_s` are seconds."""
    return {
        "job_id": account.job_id,
        "state": account.state,
        "state_since": account.state_since,
        "finished": account.finished,
        "start": account.start,
        "end": account.end,
        "wall_s": account.wall_s,
        "components": dict(account.components),
        "groups": account.groups,
        "areas": by_area(account.components),
        "ett_percent": account.ett_percent,
        "resume_evidence": account.resume_evidence,
        "failures": len(account.failures),
        "failure_list": [_failure(failure) for failure in account.failures],
        "survived_failures": account.survived_failures,
        "attempts": len(account.attempts),
        "tts_s": account.tts_s,
        "ttr_s": list(account.ttr_s),
        "unsaved_exposure_s": account.unsaved_exposure_s,
        "not_saved": account.not_saved,
        "step": account.step,
        "last_progress_at": account.last_progress_at,
        "last_event_at": account.last_event_at,
    }


def _failure(failure: FailureAccount) -> dict[str, Any]:
    from msgspec.structs import asdict

    from ett_core.causes import cause_of

    return {**asdict(failure), "cause": cause_of(failure)}


def by_area(components: Mapping[str, float]) -> dict[str, float]:
    """Seconds by area of the training cycle, from seconds by component; every area is present."""
    from ett_core.components import AREAS, area_of

    totals = dict.fromkeys(AREAS, 0.0)
    for component, seconds in components.items():
        totals[area_of(component)] += seconds
    return totals


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
