"""The peer's side: ml-goodput-measurement over a log in memory. Prints one JSON object.

    peer.py million STEPS                seconds and goodput% of the same steps
    peer.py scenarios SCENARIOS.json     goodput% of each worked scenario

The log in memory stands for its cloud log and costs it nothing: no network, no parsing, and a
binary search for what is new. Each of our events is told to its recorder as its documentation
has a trainer do it; `tell` says how. Needs only the peer's own environment.
"""

from __future__ import annotations

import bisect
import datetime as dt
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import workload
from ml_goodput_measurement.src import goodput

PREPARATION = ("preproc_creation", "model_init", "sharding_plan", "compile", "cache_load", "checkpoint_load")
TPU_INIT = ("device_init", "process_group")
ORDERLY = ("succeeded", "cancelled", "timed_out")
Record = Callable[[dt.datetime], None]


class MemoryLog:
    """What the peer asks of its cloud log, kept in order of time."""

    def __init__(self) -> None:
        self.moments: list[dt.datetime] = []
        self.entries: list[dict[str, Any]] = []

    def write_cloud_logging_entry(self, entry: dict[str, Any]) -> None:
        moment = goodput.get_timestamp_from_log_entry(entry)
        at = bisect.bisect_right(self.moments, moment)
        self.moments.insert(at, moment)
        self.entries.insert(at, entry)

    def read_cloud_logging_entries(
        self,
        start_time: dt.datetime | None = None,
        end_time: dt.datetime | None = None,
        last_entry_info: object = None,  # noqa: ARG002 - part of the peer's protocol
    ) -> tuple[list[dict[str, Any]], tuple[dt.datetime, str] | tuple[None, None]]:
        low = bisect.bisect_right(self.moments, start_time) if start_time else 0
        high = bisect.bisect_right(self.moments, end_time) if end_time else len(self.moments)
        last = (self.moments[high - 1], str(high)) if high else (None, None)
        return self.entries[low:high], last

    def flush(self) -> None:
        pass


def moment(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, tz=dt.timezone.utc)


def peer_of(job: str, cache_dir: str) -> tuple[goodput.GoodputRecorder, goodput.GoodputCalculator]:
    log = MemoryLog()
    recorder = goodput.GoodputRecorder(job, "log", True, log)  # noqa: FBT003 - the peer's signature
    return recorder, goodput.GoodputCalculator(job, "log", log, cache_dir=cache_dir)


def million(steps: int, cache_dir: str) -> dict[str, Any]:
    """Cold: its first answer over all steps. Refresh: its answer after one more step."""
    recorder, calculator = peer_of("million", cache_dir)
    recorder.record_job_start_time(moment(workload.START))
    for step in range(steps):
        recorder.record_step_start_time(step, moment(workload.step_end(step)))
    begin, cpu = time.perf_counter(), time.process_time()
    calculator.get_job_goodput(include_badput_breakdown=True)
    cold_s, cold_cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    recorder.record_step_start_time(steps, moment(workload.step_end(steps)))
    recorder.record_job_end_time(moment(workload.step_end(steps)))
    begin = time.perf_counter()
    percent, _, _ = calculator.get_job_goodput(include_badput_breakdown=True)
    refresh_s = time.perf_counter() - begin
    return {"cold_s": cold_s, "cold_cpu_s": cold_cpu_s, "refresh_s": refresh_s, "percent": percent}


def scenarios(path: str, cache_dir: str) -> dict[str, Any]:
    return {s["name"]: answer(s, cache_dir) for s in json.loads(Path(path).read_text())}


def answer(scenario: dict[str, Any], cache_dir: str) -> float | str:
    """Its goodput%, asked at the end of the wall time, or the words of its refusal."""
    recorder, calculator = peer_of(scenario["name"], f"{cache_dir}/{scenario['name']}")
    ordered = sorted(unique(scenario["events"]), key=lambda event: event["time"])
    begun = tell(recorder, ordered)
    goodput.datetime = calendar_at(moment(begun + scenario["expect"]["wall_s"]))
    try:
        return calculator.get_job_goodput(include_badput_breakdown=True)[0]
    except (ValueError, ZeroDivisionError, KeyError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        goodput.datetime = dt


def calendar_at(now: dt.datetime) -> SimpleNamespace:
    """The datetime module as the peer uses it, at a moment of the scenario."""

    class Then(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return now.astimezone(tz)

    return SimpleNamespace(datetime=Then, timezone=dt.timezone, timedelta=dt.timedelta)


def unique(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({(event["writer"], event["seq"]): event for event in events}.values())


def tell(recorder: goodput.GoodputRecorder, events: list[dict[str, Any]]) -> float:
    """One run as its documentation has a trainer record it, on the rank that leads; its start.

    Every attempt records a job start. Initialisation phases become its two initialisation
    kinds, data warm-up and data wait its data loading, phases of the loop custom events. A report
    of k steps becomes k step starts, evenly spread; as a courtesy, so that the last step of an
    attempt is not lost, one more starts where it ends. A job end is recorded where the last
    attempt ended in an orderly way.
    """
    begun: float | None = None
    own: list[dict[str, Any]] = []
    for attempt in sorted({event["attempt"] for event in events}):
        own = [event for event in events if event["attempt"] == attempt and event["rank"] == leader(events)]
        if own:
            start = attempt_start(own, first=begun is None)
            begun = start if begun is None else begun
            recorder.record_job_start_time(moment(start))
            tell_phases(recorder, own)
            tell_steps(recorder, own)
    ends = [event for event in own if event["kind"] == "attempt_end" and event["status"] in ORDERLY]
    if ends:
        recorder.record_job_end_time(moment(ends[-1]["time"]))
    return events[0]["time"] if begun is None else begun


def leader(events: Iterable[dict[str, Any]]) -> int:
    return min((event["rank"] for event in events if event["kind"] == "progress"), default=0)


def attempt_start(own: list[dict[str, Any]], *, first: bool) -> float:
    """When the process began; for the first attempt, when its hardware was allocated."""
    said = next((event for event in own if event["kind"] == "attempt_start"), own[0])
    start = said.get("process_started_at") or said["time"]
    return min(said.get("allocated_at") or start, start) if first else start


def tell_phases(recorder: goodput.GoodputRecorder, own: list[dict[str, Any]]) -> None:
    in_loop = False
    for event in own:
        in_loop = in_loop or event["kind"] == "first_batch"
        if event["kind"] in ("phase_begin", "phase_end") and event.get("track", "main") == "main":
            record = recording(recorder, event["phase"], in_loop=in_loop)
            if record is not None:
                record[event["kind"] == "phase_end"](moment(event["time"]))


def recording(r: goodput.GoodputRecorder, phase: str, *, in_loop: bool) -> tuple[Record, Record] | None:
    """What records the begin and the end of a phase."""
    if in_loop:
        begin, end = r.record_custom_badput_event_start_time, r.record_custom_badput_event_end_time
        return partial(begin, custom_badput_event_type=phase), partial(end, custom_badput_event_type=phase)
    if phase in TPU_INIT:
        return r.record_tpu_init_start_time, r.record_tpu_init_end_time
    if phase in PREPARATION:
        return r.record_training_preparation_start_time, r.record_training_preparation_end_time
    if phase == "data_warmup":
        return r.record_data_loading_start_time, r.record_data_loading_end_time
    return None


def tell_steps(recorder: goodput.GoodputRecorder, own: list[dict[str, Any]]) -> None:
    since = next((event["time"] for event in own if event["kind"] == "first_batch"), None)
    last = None
    for event in own:
        if event["kind"] == "progress" and event["steps"] and since is not None:
            recorder.record_data_loading_start_time(moment(since))
            recorder.record_data_loading_end_time(moment(since + event.get("data_wait_s", 0.0)))
            spacing = (event["time"] - since) / event["steps"]
            for number in range(event["steps"]):
                started = event["step"] - event["steps"] + number
                recorder.record_step_start_time(started, moment(since + number * spacing))
            since = last = event["time"]
            step = event["step"]
        elif event["kind"] == "phase_end" and since is not None:
            since = max(since, event["time"])
    if last is not None:
        recorder.record_step_start_time(step, moment(last))


if __name__ == "__main__":
    what, argument = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        print(
            json.dumps(million(int(argument), folder) if what == "million" else scenarios(argument, folder))
        )
