"""Failures of a job in words: what they were, whether to try again, what they cost.

Pure: from the JSON objects of the query API (or of `ett account --json`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ett_cli.amounts import duration
from ett_core.evidence_log import STALL_SOURCES
from ett_core.failures.words import REPEATED_WORDS, RETRY_WORDS

Job: TypeAlias = Mapping[str, Any]

_WORDS_SHOWN = 300
_NO_OUTPUT = ("failure", *STALL_SOURCES)
_DECIDED = ("preempted", "cancelled", "timed_out")
_UNRECOVERED_WORDS = {
    "never": "never recovered",
    "not yet": "not recovered yet",
    "unknown": "recovered at an unknown time",
}
_RANK_MARK = re.compile(r"^\[rank\d+\]:")
_EXCEPTION_LINE = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?:: \S.*)?")
_WORD = re.compile(r"[^\W\d_]{2}")


def failure_lines(job: Job) -> Iterator[str]:
    """The failures of a job, each with its cause, its last words and what it cost."""
    failures: Sequence[Mapping[str, Any]] = job.get("failure_list") or ()
    if failures:
        yield "Failures"
    for number, failure in enumerate(failures, 1):
        yield f"  {number}. attempt {failure['attempt']}: {failure['cause']}"
        said = last_words(failure)
        if said:
            yield f"     last words: {said}"
        if diagnosis := failure.get("diagnosis"):
            yield f"     {why(diagnosis)}"
        if again := recurrence_line(failure, job.get("start", 0.0)):
            yield f"     {again}"
        yield f"     {_consequence(failure, unrecovered_word(job))}"


def end_of(job: Job) -> str:
    """One sentence: what a job that failed ended with, and whether to try again; empty for any other.

    >>> known = {"failure_class": "host_oom", "domain": "workload", "confidence": "likely"}
    >>> failure = {"cause": "rank 3 was killed by SIGKILL", "signal": 9}
    >>> failure["diagnosis"] = {**known, "retry": "unknown"}
    >>> end_of({"state": "failed", "failure_list": [failure]})
    'Failed: rank 3 was killed by SIGKILL. Cause: host_oom (likely), of the workload.'
    >>> end_of({"state": "succeeded", "failure_list": [failure]})
    ''
    """
    failures = job.get("failure_list")
    if job["state"] != "failed" or not failures:
        return ""
    last = failures[-1]
    how = ": ".join(part.rstrip(".") for part in (last["cause"], last_words(last)) if part)
    diagnosis = last.get("diagnosis")
    if not diagnosis or diagnosis["failure_class"] == "unknown":
        return f"Failed: {how}."
    return f"Failed: {how}. Cause: {why(diagnosis)}."


def unrecovered_word(job: Job) -> str:
    """When a job recovered from a failure after which no rank told of training; one that succeeded has."""
    if job.get("state") == "succeeded":
        return "unknown"
    return "never" if job.get("finished") else "not yet"


def why(diagnosis: Mapping[str, Any]) -> str:
    """The class of a failure and whether to try again, in words.

    >>> known = {"domain": "workload", "confidence": "certain", "retry": "with_change"}
    >>> why({"failure_class": "gpu_oom", **known})
    'gpu_oom (certain), of the workload; it will fail again until something is changed'
    >>> why({"failure_class": "unknown", "domain": "unknown", "confidence": "unknown", "retry": "unknown"})
    'cause unknown'
    """
    name, domain, retry = (diagnosis[field] for field in ("failure_class", "domain", "retry"))
    if name == "unknown":
        return "cause unknown"
    whose = "" if domain == "unknown" else f", of the {domain}"
    again = "" if retry == "unknown" else f"; it {RETRY_WORDS[retry]}"
    return f"{name} ({diagnosis['confidence']}){whose}{again}"


def recurrence_line(failure: Mapping[str, Any], start: float) -> str:
    """That a failure had come before, and what that says about trying again; empty where it is new.

    >>> row = {"count": 3, "since": 400.0, "crash_loop": True, "same_node": False}
    >>> recurrence_line({"recurrence": row, "retry": "stop"}, 100.0)
    'a crash loop: 3 times in a row since 5 m 0.0 s, nothing kept in between; stop trying until it is changed'
    >>> recurrence_line({"recurrence": {**row, "count": 1}, "retry": "with_change"}, 100.0)
    ''
    """
    again = failure.get("recurrence") or {"count": 1}
    if again["count"] == 1:
        return ""
    times = f"{again['count']} times in a row since {duration(max(again['since'] - start, 0.0))}"
    where = " on the same node" if again["same_node"] else ""
    told = REPEATED_WORDS.get(failure.get("retry", ""))
    advice = f"; {told}" if told else ""
    if again["crash_loop"]:
        return f"a crash loop: {times}{where}, nothing kept in between{advice}"
    return f"{times}{where}{advice}"


def last_words(failure: Mapping[str, Any]) -> str:
    r"""The line of its evidence that tells most where the cause is an exit status; empty elsewhere.

    That is the root that the diagnosis found, else the last one that names an exception, else the
    last that holds any word and is not the cause itself.

    >>> text = "Traceback (most recent call last):\nValueError: bad shape\n~~~~"
    >>> last_words({"cause": "the command exited with status 1", "evidence": [{"text": text}]})
    'ValueError: bad shape'
    """
    by_signal = failure.get("signal") or (failure.get("exit_code") or 0) < 0
    if failure.get("exception") or by_signal or failure.get("status") in _DECIDED:
        return ""
    texts = (line["text"] for line in failure.get("evidence", ()) if line.get("source") not in _NO_OUTPUT)
    lines = [line for text in texts for line in map(_unmarked, text.splitlines())]
    found = (failure.get("diagnosis") or {}).get("evidence", ())
    roots = [_unmarked(line["text"]) for line in found if line["role"] == "root"]
    for said in roots:
        if said in lines and said not in failure["cause"]:
            return said[:_WORDS_SHOWN]
    named = [line for line in lines if _EXCEPTION_LINE.fullmatch(line)]
    worded = [line for line in lines if _WORD.search(line) and line not in failure["cause"]]
    return (named or worded or [""])[-1][:_WORDS_SHOWN]


def _unmarked(line: str) -> str:
    return _RANK_MARK.sub("", line).strip()


def _consequence(failure: Mapping[str, Any], unrecovered: str) -> str:
    step, lost = failure.get("fallback_step"), f"{duration(failure['unsaved_s'])} of training lost"
    if failure["ttr_s"] is None:
        saved = "" if step is None else f"saved up to step {step}, "
        return f"{saved}{lost}, {_UNRECOVERED_WORDS[unrecovered]}"
    fallback = "resumed from an unknown step" if step is None else f"resumed from step {step}"
    return f"{fallback}, {lost}, recovered in {duration(failure['ttr_s'])}"
