"""The report of one job as text: where its time went, what failed, what to do about it.

Pure: from the JSON object of the query API (or of `ett account --json`, which holds a part of
it) to lines. What the object lacks is left out. Shown seconds and shares are rounded together,
so the parts add up to the total as shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ett_cli.advice import advice_on
from ett_core.components import GROUPS, TRAINING, group_of, meaning_of
from ett_core.evidence_log import STALL_SOURCES
from ett_core.failures.words import REPEATED_WORDS, RETRY_WORDS

Job: TypeAlias = Mapping[str, Any]

_MINUTE_S = 60.0
_WIDTH = 18
_WORDS_SHOWN = 300
_NO_OUTPUT = ("failure", *STALL_SOURCES)
_SLOW_BECAUSE = {
    "step": "its steps are long",
    "data_wait": "it waits for data",
    "stopped": "its process was stopped",
}
_DECIDED = ("preempted", "cancelled", "timed_out")
_UNRECOVERED_WORDS = {
    "never": "never recovered",
    "not yet": "not recovered yet",
    "unknown": "recovered at an unknown time",
}
_RANK_MARK = re.compile(r"^\[rank\d+\]:")
_EXCEPTION_LINE = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?:: \S.*)?")
_WORD = re.compile(r"[^\W\d_]{2}")


def report(job: Job) -> str:
    """The whole report; it ends without a newline."""
    parts = (
        headline(job),
        _ett(job),
        "\n".join(partition_lines(job.get("components", {}))),
        "\n".join(_figures(job)),
        "\n".join(_failures(job)),
        "\n".join(_stalls(job)),
        "\n".join(_stragglers(job)),
        "\n".join(_caches(job)),
        largest_loss(job.get("components", {})),
    )
    return "\n\n".join(part for part in parts if part)


def headline(job: Job) -> str:
    """One line: the job, how it is, for how long, over how many attempts.

    >>> headline({"job_id": "j", "state": "succeeded", "wall_s": 100, "failures": 1, "attempts": 2})
    'Job j: succeeded, 1 m 40.0 s of wall time, 2 attempts, 1 failure'
    >>> headline({"job_id": "j", "state": "failed", "wall_s": 9, "failures": 3, "infra_failures": 2})
    'Job j: failed, 9.0 s of wall time, 3 failures (2 of the infrastructure or the platform)'
    """
    state = str(job["state"]).replace("_", " ")
    parts = [f"Job {job['job_id']}: {state}", f"{duration(job['wall_s'])} of wall time"]
    parts += [_many(job[name], name[:-1]) for name in ("attempts", "failures") if name in job]
    if job.get("infra_failures"):
        parts[-1] += f" ({job['infra_failures']:,} of the infrastructure or the platform)"
    return ", ".join(parts)


def partition_lines(components: Mapping[str, float]) -> list[str]:
    """The partition by component with group subtotals; as shown, it adds up to its total."""
    names = [name for name, seconds in components.items() if seconds]
    if not names:
        return []
    amounts = [components[name] for name in names]
    seconds = dict(zip(names, rounded(amounts, round(sum(amounts), 1)), strict=True))
    shares = dict(zip(names, rounded(amounts, 100.0), strict=True))
    lines = ["Where the time went"]
    for group in GROUPS:
        members = [name for name in names if group_of(name) == group]
        if members:
            lines.append(_row(f"  {group}", _total(seconds, members), _total(shares, members)))
            lines += _member_rows(members, seconds, shares)
    return [*lines, _row("  wall time", _total(seconds, names), _total(shares, names))]


def _member_rows(
    members: Sequence[str], seconds: Mapping[str, float], shares: Mapping[str, float]
) -> Iterator[str]:
    shown = [name for name in members if seconds[name] or shares[name]]
    for name in shown:
        yield _row(f"    {name}", seconds[name], shares[name])
    if len(shown) < len(members):
        yield _row(f"    {len(members) - len(shown)} smaller ones", 0.0, 0.0)


def largest_loss(components: Mapping[str, float]) -> str:
    """One sentence: the component that lost most, and what to do about it."""
    losses = {name: seconds for name, seconds in components.items() if name != TRAINING and seconds > 0}
    if not losses:
        return ""
    name = max(losses, key=lambda loss: losses[loss])
    share = 100.0 * losses[name] / sum(components.values())
    cost = f"{duration(losses[name])}, {share:.1f} %"
    return f"Largest loss: {name} ({meaning_of(name)}) took {cost}: {advice_on(name)}."


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


def rounded(amounts: Sequence[float], total: float) -> list[float]:
    """The amounts scaled to `total` and rounded to tenths, so that they add up to it as shown.

    The tenths that rounding down leaves over go to the largest remainders.

    >>> rounded([1.0, 1.0, 1.0], 100.0)
    [33.4, 33.3, 33.3]
    """
    whole = sum(amounts)
    exact = [10 * total * amount / whole for amount in amounts]
    tenths = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: tenths[index] - exact[index])
    for index in by_remainder[: round(10 * total) - sum(tenths)]:
        tenths[index] += 1
    return [value / 10 for value in tenths]


def duration(seconds: float) -> str:
    """A length of time in words.

    >>> duration(9.04), duration(100), duration(7384)
    ('9.0 s', '1 m 40.0 s', '2 h 3 m 4 s')
    """
    tenths = round(seconds, 1)
    if tenths < _MINUTE_S:
        return f"{tenths:.1f} s"
    minutes, left_s = divmod(tenths, _MINUTE_S)
    if minutes < _MINUTE_S:
        return f"{minutes:.0f} m {left_s:.1f} s"
    hours, left_m = divmod(minutes, 60)
    return f"{hours:.0f} h {left_m:.0f} m {left_s:.0f} s"


def _ett(job: Job) -> str:
    percent = job.get("ett_percent")
    if percent is None:
        return "ETT unobserved: no rank told anything, so nobody knows how much of it was training"
    return f"ETT {percent:.1f} %: the share of the wall time spent on training that survived"


def _figures(job: Job) -> Iterator[str]:
    if job.get("tts_s") is not None:
        yield _figure("Time to start", duration(job["tts_s"]))
    if job.get("ttr_s"):
        unrecovered = _unrecovered(job)
        times = (unrecovered if seconds is None else duration(seconds) for seconds in job["ttr_s"])
        yield _figure("Time to recover", ", ".join(times))
    yield _figure("Training lost", _lost(job))
    if job.get("step_times"):
        yield _figure("Steps", _steps(job["step_times"]))
    if job.get("checkpoint_count"):
        yield _figure("Checkpoints", _checkpoints(job))
    if job.get("async_saves"):
        yield _figure("Saves beside steps", beside_steps(job["async_saves"]))


def _unrecovered(job: Job) -> str:
    """When a job recovered from a failure after which no rank told of training; one that succeeded has."""
    if job.get("state") == "succeeded":
        return "unknown"
    return "never" if job.get("finished") else "not yet"


def _lost(job: Job) -> str:
    lost = duration(job.get("components", {}).get("unsaved_training", 0.0))
    at_risk = job.get("unsaved_exposure_s") or 0.0
    return f"{lost} unsaved" + (
        f"; {duration(at_risk)} more would be lost by a failure now" if at_risk else ""
    )


def _steps(times: Mapping[str, float]) -> str:
    """How long steps took, in words.

    >>> _steps({"timed": 1200, "p50_s": 0.0123, "p99_s": 0.5, "max_s": 75.0})
    'half of 1,200 took at most 12.3 ms, 99 % at most 500 ms, the longest 1 m 15.0 s'
    """
    p50, p99, longest = (_step_length(times[name]) for name in ("p50_s", "p99_s", "max_s"))
    return f"half of {times['timed']:,} took at most {p50}, 99 % at most {p99}, the longest {longest}"


def _step_length(seconds: float) -> str:
    return duration(seconds) if seconds >= 10.0 else f"{1000 * seconds:.3g} ms"  # noqa: PLR2004 - seconds from here


def _checkpoints(job: Job) -> str:
    count, blocking_s = job["checkpoint_count"], job["checkpoint_blocking_s"]
    mean = f"{1000 * blocking_s / count:.0f} ms each"
    text = f"{_many(count, 'save')}, training blocked for {duration(blocking_s)} in all ({mean})"
    if (durable := job.get("last_durable_step")) is not None:
        text += f", the last durable one at step {durable}"
    if failed := job.get("checkpoint_failed_count"):
        why_not = " ".join((job.get("checkpoint_failed_why") or "no reason told").split())
        text += f"; {failed} failed, the last for: {why_not}"
    return text


def beside_steps(saves: Mapping[str, Any]) -> str:
    """What asynchronous saves cost the steps beside them, in words.

    >>> beside_steps({"saves": 5, "known": 4, "excess_s": 12.0, "share": 0.25, "noise_s": 1.5})
    '4 in flight made steps 25.0 % longer, by 12.0 s (give or take 1.5 s); of 1 nothing is known'
    >>> beside_steps({"saves": 1, "known": 1, "excess_s": 0.1, "share": 0.001, "noise_s": 0.5})
    '1 in flight made steps no longer than usual (give or take 500 ms)'
    >>> beside_steps({"saves": 2, "known": 0, "excess_s": None, "share": None, "noise_s": None})
    'of 2 in flight nothing is known: too few steps were reported with, or without, a save in flight'
    """
    count, known, excess_s = saves["saves"], saves["known"], saves["excess_s"]
    if excess_s is None:
        why = "too few steps were reported with, or without, a save in flight"
        return f"of {count:,} in flight nothing is known: {why}"
    noise = f"(give or take {_fine(saves['noise_s'])})"
    cost = "no longer than usual"
    if excess_s > saves["noise_s"]:
        cost = f"{100 * (saves['share'] or 0.0):.1f} % longer, by {_fine(excess_s)}"
    text = f"{known:,} in flight made steps {cost} {noise}"
    return text if known == count else f"{text}; of {count - known:,} nothing is known"


def _fine(seconds: float) -> str:
    """A length of time in words, below a second in milliseconds.

    >>> _fine(0.0172), _fine(0.9999), _fine(12.0)
    ('17 ms', '1000 ms', '12.0 s')
    """
    return f"{1000 * seconds:.0f} ms" if seconds < 1.0 else duration(seconds)


def _stalls(job: Job) -> Iterator[str]:
    stalls = [line for line in job.get("stalls") or () if line["source"] == "stall"]
    if stalls:
        yield "Stalls"
    for line in stalls:
        node = f" on {line['node']}" if line["node"] else ""
        yield f"  {duration(max(line['time'] - job['start'], 0.0))} in{node}: {line['text']}"


def _stragglers(job: Job) -> Iterator[str]:
    stragglers: Sequence[Mapping[str, Any]] = job.get("stragglers") or ()
    if stragglers:
        yield "Slow ranks"
    for each in stragglers:
        ongoing = each["ongoing"] and not job.get("finished")
        yield f"  {straggler_line({**each, 'ongoing': ongoing}, job['start'])}"


def straggler_line(each: Mapping[str, Any], start: float) -> str:
    """A straggler in words; `start` of the job in Unix seconds.

    >>> slow = {"attempt": 0, "rank": 6, "node": "n3", "since": 1900.0, "until": 2020.0, "ratio": 1.54}
    >>> straggler_line({**slow, "cause": "step", "ongoing": False}, 100.0)
    'rank 6 on n3, attempt 0: 1.5 times the usual step for 2 m 0.0 s, from 30 m 0.0 s on; its steps are long'
    """
    who = f"rank {each['rank']} on {each['node']}" if each.get("node") else f"rank {each['rank']}"
    begun, long = duration(max(each["since"] - start, 0.0)), duration(each["until"] - each["since"])
    lasting = f"from {begun} on, still slow" if each["ongoing"] else f"for {long}, from {begun} on"
    cause = _SLOW_BECAUSE.get(each["cause"], each["cause"])
    factor = f"{each['ratio']:.1f} times the usual step"
    return f"{who}, attempt {each['attempt']}: {factor} {lasting}; {cause}"


def _failures(job: Job) -> Iterator[str]:
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
        yield f"     {_consequence(failure, _unrecovered(job))}"


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


def _caches(job: Job) -> Iterator[str]:
    caches: Mapping[str, Mapping[str, int]] = job.get("caches") or {}
    if caches:
        yield "Compile caches, over all ranks and attempts"
    for name, totals in caches.items():
        asked = totals["hits"] + totals["misses"] + totals["bypasses"]
        rate = f"{100 * totals['hits'] / asked:.0f} % hits" if asked else "not asked"
        counts = ", ".join(f"{totals[name]:,} {name}" for name in ("hits", "misses", "bypasses"))
        yield _figure(f"  {name}", f"{counts} ({rate})")
    stages = {stage: seconds for stage, seconds in (job.get("compile") or {}).items() if seconds}
    if stages:
        text = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in stages.items())
        yield _figure("  seconds by stage", text)


def _figure(name: str, text: str) -> str:
    return f"{name:<{_WIDTH}} {text}"


def _row(name: str, seconds: float, share: float) -> str:
    return f"{name:<32}{seconds:>10.1f} s {share:>7.1f} %"


def _total(amounts: Mapping[str, float], names: Sequence[str]) -> float:
    return round(sum(amounts[name] for name in names), 1)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
