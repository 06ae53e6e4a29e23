"""Our side: fold a journal cold, then refresh after one more event. Prints one JSON object.

ours.py million JOURNAL STEPS        seconds and ETT% of the journal
ours.py scenarios SCENARIOS.json     ETT% of each worked scenario
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import workload

from ett_cli.journals import collector_paused, read_journals
from ett_core.accounting import JobAccount, JobFold
from ett_core.events import decode

REFRESHES = 200


def million(journal: str, steps: int) -> dict[str, Any]:
    """Cold, as `ett account` does it: read, decode, fold, account. Refresh: median of single events."""
    begin, cpu = time.perf_counter(), time.process_time()
    fold = JobFold(workload.said(0, 0.0)["job_id"])
    with collector_paused():
        for part in read_journals([journal]):
            fold.add(part.events)
    account = fold.account(workload.step_end(steps))
    cold_s, cold_cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    refresh_s = sorted(refresh(fold, steps + extra) for extra in range(1, REFRESHES + 1))[REFRESHES // 2]
    return {"cold_s": cold_s, "cold_cpu_s": cold_cpu_s, "refresh_s": refresh_s, "percent": percent(account)}


def refresh(fold: JobFold, step: int) -> float:
    """Seconds from one more line to the new account."""
    line = json.dumps(workload.progress(step))
    begin = time.perf_counter()
    fold.add([decode(line)])
    fold.account(workload.step_end(step))
    return time.perf_counter() - begin


def percent(account: JobAccount | None) -> float | None:
    return None if account is None else account.ett_percent


def scenarios(path: str) -> dict[str, Any]:
    answers = {}
    for scenario in json.loads(Path(path).read_text()):
        fold = JobFold(scenario["events"][0]["job_id"])
        fold.add(decode(json.dumps(event)) for event in scenario["events"])
        now = scenario["now"] or max(event["time"] for event in scenario["events"])
        answers[scenario["name"]] = percent(fold.account(now))
    return answers


if __name__ == "__main__":
    what, path, *more = sys.argv[1:]
    print(json.dumps(million(path, int(more[0])) if what == "million" else scenarios(path)))
