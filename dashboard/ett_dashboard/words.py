"""Figures and states in words, the same on every page. Pure rules; durations are seconds.

>>> duration(200), ago(3), percent(74.26), whole(12400)
('3 m 20 s', '3 s ago', '74.3 %', '12,400')
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

import msgspec

from ett_dashboard.rows import Job

UNKNOWN_FIGURE = "n/a"
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")

LOOP_FAILURES = 3
"""Failures from which on one may speak of a loop."""
LONG_UNSAVED_S = 1800.0


class Sentence(msgspec.Struct, frozen=True):
    """How a job is, and what to do about it (empty where nothing)."""

    how: str
    do: str = ""


def duration(seconds: float | None) -> str:
    """A length of time in the two largest units that matter.

    >>> duration(0.42), duration(9.04), duration(59.7), duration(7500), duration(200000)
    ('0.4 s', '9.0 s', '1 m 0 s', '2 h 5 m', '2 d 7 h')
    """
    if seconds is None:
        return UNKNOWN_FIGURE
    if abs(seconds) < 9.95:  # noqa: PLR2004 - below this, whole seconds would say too little
        return f"{max(seconds, 0.0):.1f} s" if seconds else "0 s"
    left = round(seconds)
    for index, (unit, size) in enumerate(_UNITS[:-1]):
        if left >= size:
            smaller, smaller_size = _UNITS[index + 1]
            return f"{left // size} {unit} {left % size // smaller_size} {smaller}"
    return f"{left} s"


def ago(seconds: float | None) -> str:
    """How long ago something was, in one unit.

    >>> ago(0.4), ago(75), ago(None)
    ('just now', '1 m ago', 'never')
    """
    if seconds is None:
        return "never"
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def percent(value: float | None) -> str:
    """A percentage with one decimal."""
    return UNKNOWN_FIGURE if value is None else f"{value:.1f} %"


def whole(value: float | None) -> str:
    """A count with thousands separated."""
    return UNKNOWN_FIGURE if value is None else f"{value:,.0f}"


def compact(value: float | None) -> str:
    """An amount in about three digits.

    >>> compact(0.034), compact(9.96), compact(85.3), compact(1234), compact(1.25e6)
    ('0.03', '10.0', '85', '1.2 k', '1.2 M')
    """
    if value is None:
        return UNKNOWN_FIGURE
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size * 0.9995:
            return f"{value / size:.1f}{unit}"
    digits = 0 if abs(value) >= 19.5 or not value else 1 if abs(value) >= 0.95 else 2  # noqa: PLR2004 - as shown
    return f"{value:.{digits}f}"


def accelerator_hours(accelerator_s: float | None) -> str:
    """Accelerator-seconds as hours, in words.

    >>> accelerator_hours(3600), accelerator_hours(4.4e6), accelerator_hours(None)
    ('1.0 accelerator-hours', '1.2 k accelerator-hours', 'n/a')
    """
    return UNKNOWN_FIGURE if accelerator_s is None else f"{compact(accelerator_s / 3600)} accelerator-hours"


def many(count: float, one: str, more: str = "") -> str:
    """A count with its noun.

    >>> many(1, "failure"), many(2, "failure"), many(0, "try", "tries")
    ('1 failure', '2 failures', '0 tries')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def tenths(shares: Mapping[str, float], keep: str = "") -> dict[str, float]:
    """Percentages with one decimal that add up to 100.0, by the largest remainders.

    The one named `keep` is rounded as if it stood alone, so that it reads the same everywhere.

    >>> tenths({"a": 1.0, "b": 1.0, "c": 1.0}), tenths({"a": 1.0, "b": 1.0, "c": 1.0}, keep="a")
    ({'a': 33.4, 'b': 33.3, 'c': 33.3}, {'a': 33.3, 'b': 33.4, 'c': 33.3})
    """
    total = sum(shares.values())
    if total <= 0:
        return dict.fromkeys(shares, 0.0)
    exact = {name: 1000 * amount / total for name, amount in shares.items()}
    points = {name: round(value) if name == keep else int(value) for name, value in exact.items()}
    by_remainder = sorted(
        (name for name in exact if name != keep), key=lambda name: points[name] - exact[name]
    )
    for name in by_remainder[: max(1000 - sum(points.values()), 0)]:
        points[name] += 1
    return {name: value / 10 for name, value in points.items()}


def plain(text: str, limit: int = 120) -> str:
    r"""Text from a job, safe to stand in a line: no control or direction characters, bounded.

    >>> plain("a\u202eb\nc"), plain("x" * 9, limit=5)
    ('ab c', 'xxxx…')
    """
    kept = text if text.isprintable() else _without_controls(text)
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def _without_controls(text: str) -> str:
    return "".join(
        " " if character in "\r\n\t" else character
        for character in text
        if character in "\r\n\t\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )


def markdown_safe(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> print(markdown_safe("![a](b) :red[x]"))
    \!\[a\]\(b\) \:red\[x\]
    """
    return _MARKDOWN.sub(r"\\\1", text)


def sentence(job: Job, now: float) -> Sentence:
    """How a job is at `now` (Unix seconds) and what to do."""
    if job.finished:
        return _over(job)
    return _SENTENCES.get(job.state, _at_work)(job, now)


def _recovering(job: Job, now: float) -> Sentence:
    how = f"recovering{_for(job.state_since, now)} after {_failure(job)}{_reached(job)}"
    if job.failures >= LOOP_FAILURES and list(job.ttr_s[-2:]) == [None, None]:
        return Sentence(how, "It fails again before it trains: stop it and read the evidence below.")
    return Sentence(how, "Nothing to do unless it takes longer than the last time.")


def _stalled(job: Job, now: float) -> Sentence:
    return Sentence(
        f"no progress{_for(job.last_progress_at, now)}{_reached(job)}",
        "Look at what the ranks are doing: a stack of each one shows who waits for whom.",
    )


def _lost(job: Job, now: float) -> Sentence:
    return Sentence(
        f"silent{_for(job.last_event_at, now)}{_last_progress(job, now)}; nobody said that it ended",
        "Look whether its processes still run and can reach the exporter.",
    )


def _unobserved(job: Job, _now: float) -> Sentence:
    return Sentence(
        f"running for {duration(job.wall_s)}, but no rank tells anything",
        "Only the launcher speaks. Let the trainer report, or its time stays unknown.",
    )


def _starting(job: Job, now: float) -> Sentence:
    return Sentence(f"starting{_for(job.state_since, now)}, no step yet")


def _at_work(job: Job, now: float) -> Sentence:
    work = job.state.replace("_", " ")
    doing = work if work == "training" else f"{work}{_for(job.state_since, now)}"
    parts = [doing]
    if job.step is not None:
        parts.append(f"step {whole(job.step)}")
    if job.last_progress_at is not None:
        parts.append(f"last progress {ago(_age(job.last_progress_at, now))}")
    if job.unsaved_exposure_s:
        parts.append(f"{duration(job.unsaved_exposure_s)} unsaved")
    return Sentence(", ".join(parts), _advice_unsaved(job))


def _over(job: Job) -> Sentence:
    ended = {
        "succeeded": "finished",
        "failed": "ended in failure",
        "timed_out": "ended at its time limit",
        "preempted": "ended by preemption",
        "cancelled": "ended by decision",
    }.get(job.state, f"over ({job.state.replace('_', ' ')})")
    share = "" if job.ett_percent is None else f", {percent(job.ett_percent)} of it effective"
    do = "Read the evidence of its last failure." if job.state == "failed" else ""
    return Sentence(f"{ended} after {duration(job.wall_s)}{_reached(job)}{share}", do)


def _advice_unsaved(job: Job) -> str:
    if job.last_durable_at is None and (job.unsaved_exposure_s or 0.0) > LONG_UNSAVED_S:
        return "No checkpoint is durable so far: a failure now would lose all of it."
    return ""


def _failure(job: Job) -> str:
    return f"failure {job.failures}" if job.failures else "a failure"


def _reached(job: Job) -> str:
    return "" if job.step is None else f", at step {whole(job.step)}"


def _last_progress(job: Job, now: float) -> str:
    """What stands for the last word of a job where only its progress is known."""
    if job.last_event_at is not None or job.last_progress_at is None:
        return ""
    return f", last progress {ago(_age(job.last_progress_at, now))}"


def _for(moment: float | None, now: float) -> str:
    """Since when, as an ending; nothing where that is not known."""
    return "" if moment is None else f" for {duration(_age(moment, now))}"


def _age(moment: float | None, now: float) -> float | None:
    return None if moment is None else max(now - moment, 0.0)


_SENTENCES: Mapping[str, Callable[[Job, float], Sentence]] = {
    "recovering": _recovering,
    "stalled": _stalled,
    "lost": _lost,
    "unobserved": _unobserved,
    "starting": _starting,
}
