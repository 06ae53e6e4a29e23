"""The report of one job as text: where its time went, what failed, what to do about it.

Pure: from the JSON object of the query API (or of `ett account --json`, which holds a part of
it) to lines. What the object lacks is left out. Shown seconds and shares are rounded together,
so the parts add up to the total as shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ett_cli.advice import advice_on
from ett_cli.amounts import duration, fine, many, rounded
from ett_cli.failure_words import Job, failure_lines, unrecovered_word
from ett_core.components import GROUPS, TRAINING, group_of, meaning_of
from ett_core.plain_text import one_line
from ett_core.purposes import no_training

_WIDTH = 18
_SLOW_BECAUSE = {
    "step": "its steps are long",
    "data_wait": "it waits for data",
    "stopped": "its process was stopped",
}


def report(job: Job) -> str:
    """The whole report; it ends without a newline."""
    parts = (
        headline(job),
        _ett(job),
        *map(_block, (partition_lines(job.get("components", {})), _figures(job), failure_lines(job))),
        *map(_block, (_stalls(job), _stragglers(job), _caches(job))),
        what_to_do(job),
    )
    return "\n\n".join(part for part in parts if part)


def _block(lines: Iterable[str]) -> str:
    """Lines of the report; what a job tells makes up no further ones."""
    return "\n".join(map(one_line, lines))


def headline(job: Job) -> str:
    """One line: the job, how it is, for how long, over how many attempts.

    >>> headline({"job_id": "j", "state": "succeeded", "wall_s": 100, "failures": 1, "attempts": 2})
    'Job j: succeeded, 1 m 40.0 s of wall time, 2 attempts, 1 failure'
    >>> headline({"job_id": "j", "state": "failed", "wall_s": 9, "failures": 3, "infra_failures": 2})
    'Job j: failed, 9.0 s of wall time, 3 failures (2 of the infrastructure or the platform)'
    """
    state = str(job["state"]).replace("_", " ")
    parts = [f"Job {job['job_id']}: {state}", f"{duration(job['wall_s'])} of wall time"]
    parts += [many(job[name], name[:-1]) for name in ("attempts", "failures") if name in job]
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
    if smaller := len(members) - len(shown):
        yield _row(f"    {smaller} smaller {'one' if smaller == 1 else 'ones'}", 0.0, 0.0)


def what_to_do(job: Job) -> str:
    """One sentence: the largest loss and what to do about it, or that the job is not there to train."""
    return no_training(job.get("labels", {})) or largest_loss(job.get("components", {}))


def largest_loss(components: Mapping[str, float]) -> str:
    """One sentence: the component that lost most, and what to do about it."""
    losses = {name: seconds for name, seconds in components.items() if name != TRAINING and seconds > 0}
    if not losses:
        return ""
    name = max(losses, key=lambda loss: losses[loss])
    share = 100.0 * losses[name] / sum(components.values())
    cost = f"{duration(losses[name])}, {share:.1f} %"
    return f"Largest loss: {name} ({meaning_of(name)}) took {cost}: {advice_on(name)}."


def _ett(job: Job) -> str:
    percent = job.get("ett_percent")
    if percent is None:
        return "ETT unobserved: no rank told anything, so nobody knows how much of it was training"
    return f"ETT {percent:.1f} %: the share of the wall time spent on training that survived"


def _figures(job: Job) -> Iterator[str]:
    if job.get("tts_s") is not None:
        yield _figure("Time to start", duration(job["tts_s"]))
    if job.get("ttr_s"):
        unrecovered = unrecovered_word(job)
        times = (unrecovered if seconds is None else duration(seconds) for seconds in job["ttr_s"])
        yield _figure("Time to recover", ", ".join(times))
    yield _figure("Training lost", _lost(job))
    if job.get("step_times"):
        yield _figure("Steps", _steps(job["step_times"]))
    if job.get("checkpoint_count"):
        yield _figure("Checkpoints", _checkpoints(job))
    if job.get("async_saves"):
        yield _figure("Saves beside steps", beside_steps(job["async_saves"]))


def _lost(job: Job) -> str:
    lost = duration(job.get("components", {}).get("unsaved_training", 0.0))
    at_risk = job.get("unsaved_exposure_s") or 0.0
    return f"{lost} unsaved" + (
        f"; {duration(at_risk)} more would be lost by a failure now" if at_risk else ""
    )


def _steps(times: Mapping[str, float]) -> str:
    """How long steps took, in words.

    >>> _steps({"timed": 1200, "p50_s": 0.0123, "p99_s": 3.62, "max_s": 75.0})
    'half of 1,200 took at most 12.3 ms, 99 % at most 3.6 s, the longest 1 m 15.0 s'
    """
    p50, p99, longest = (_step_length(times[name]) for name in ("p50_s", "p99_s", "max_s"))
    return f"half of {times['timed']:,} took at most {p50}, 99 % at most {p99}, the longest {longest}"


def _step_length(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if round(seconds, 3) < 1.0 else duration(seconds)


def _checkpoints(job: Job) -> str:
    count, blocking_s = job["checkpoint_count"], job["checkpoint_blocking_s"]
    mean = f"{fine(blocking_s / count)} each"
    text = f"{many(count, 'save')}, training blocked for {duration(blocking_s)} in all ({mean})"
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
    noise = f"(give or take {fine(saves['noise_s'])})"
    cost = "no longer than usual"
    if excess_s > saves["noise_s"]:
        cost = f"{100 * (saves['share'] or 0.0):.1f} % longer, by {fine(excess_s)}"
    text = f"{known:,} in flight made steps {cost} {noise}"
    return text if known == count else f"{text}; of {count - known:,} nothing is known"


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
