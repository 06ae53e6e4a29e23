"""Tunings and choices as torch's structured traces tell of them: what was measured, and for how long.

A line with `chromium_event` is followed by the event, a JSON object on lines that begin with a tab. Such
events come in pairs, begin (`B`) and end (`E`). Of a kernel that was tuned a trace does not tell what won,
and its seconds are of measuring alone, without compiling what is measured; of a choice among
implementations it tells both. The only I/O is the reading of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ett_core.choosing import Choice
from ett_core.tuning import Tuning, add

MEASURED = "CachingAutotuner.benchmark_all_configs"
"""All configurations of a list, once a tuning."""
SEARCHED = ("CachingAutotuner.coordinate_descent_tuning", "CachingAutotuner.combo_sequential_autotune")
"""What may follow from the best of the list on, or come alone where a kernel has no list."""

CHOSEN = "_template_autotuning"
"""How the measuring of implementations ends in its name, after the operation."""
PREPARED = "_template_precompiling"
"""How the compiling of them does, which comes before."""

_HEADER = b'{"chromium_event"'
_WANTED = (b'"CachingAutotuner.', CHOSEN.encode(), PREPARED.encode())
_MICROSECONDS = 1e6


class _Stats(msgspec.Struct):
    """What is read of `autotune_choices_stats`."""

    best_kernel: str = ""
    num_choices: int | None = None


def read_tunings(log: Path) -> list[Tuning]:
    """The tunings of one log, in their order.

    Raises:
        OSError: it cannot be read.
    """
    with log.open("rb") as lines:
        return parse_tunings(lines)


def read_choices(log: Path) -> list[Choice]:
    """The choices among implementations of one log, in their order.

    Raises:
        OSError: it cannot be read.
    """
    with log.open("rb") as lines:
        return parse_choices(lines)


def parse_tunings(lines: Iterable[bytes]) -> list[Tuning]:
    """The tunings that lines of one log tell of; other lines, and what has no end, are passed over."""
    tunings: list[Tuning] = []
    for name, told, took_s in _spans(lines):
        if name == MEASURED or name in SEARCHED:
            kernel = str(told.get("kernel_name") or "")
            add(tunings, Tuning(kernel=kernel, config=None, tuned_s=took_s, searched=name in SEARCHED))
    return tunings


def parse_choices(lines: Iterable[bytes]) -> list[Choice]:
    """The choices that lines of one log tell of; other lines, and what has no end, are passed over."""
    choices: list[Choice] = []
    prepared_s: dict[str, float] = {}
    for name, told, took_s in _spans(lines):
        if name.endswith(PREPARED):
            operation = name.removesuffix(PREPARED)
            prepared_s[operation] = prepared_s.get(operation, 0.0) + took_s
        elif name.endswith(CHOSEN):
            operation = name.removesuffix(CHOSEN)
            winner, candidates = _chosen(told.get("autotune_choices_stats"))
            whole_s = took_s + prepared_s.pop(operation, 0.0)
            choices.append(Choice(operation=operation, took_s=whole_s, candidates=candidates, winner=winner))
    return choices


def _chosen(told: object) -> tuple[str, int | None]:
    """What won, and among how many, in torch's JSON; nothing where it does not tell."""
    try:
        stats = msgspec.json.decode(told, type=_Stats) if isinstance(told, str) else _Stats()
    except (msgspec.MsgspecError, RecursionError):
        stats = _Stats()
    return stats.best_kernel, stats.num_choices


def _spans(lines: Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any], float]]:
    """What has begun and ended: its name, what its end tells, and its seconds."""
    begun: dict[tuple[str, object], float] = {}
    for event in _events(lines):
        name, at, told = event.get("name"), event.get("ts"), event.get("args") or {}
        if not isinstance(name, str) or not isinstance(at, int | float) or not isinstance(told, dict):
            continue
        key = (name, str(told.get("kernel_name")))
        if event.get("ph") == "B":
            begun[key] = at
        elif (began := begun.pop(key, None)) is not None:
            yield name, told, (at - began) / _MICROSECONDS


def _events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    payload: list[bytes] | None = None
    for line in lines:
        if line.startswith(b"\t"):
            if payload is not None:
                payload.append(line[1:])
            continue
        yield from _decoded(payload)
        payload = [] if _HEADER in line else None
    yield from _decoded(payload)


def _decoded(payload: list[bytes] | None) -> Iterator[dict[str, Any]]:
    text = b"".join(payload or ())
    if any(wanted in text for wanted in _WANTED):
        try:
            event = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return
        if isinstance(event, dict):
            yield event
