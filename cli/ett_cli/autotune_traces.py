"""Tunings as torch's structured traces tell of them: which kernel was measured, and for how long.

A line with `chromium_event` is followed by the event, a JSON object on lines that begin with a tab. Such
events come in pairs, begin (`B`) and end (`E`). A trace does not tell what won, and its seconds are of
measuring alone, without compiling what is measured. The only I/O is the reading of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ett_core.tuning import Tuning, add

MEASURED = "CachingAutotuner.benchmark_all_configs"
"""All configurations of a list, once a tuning."""
SEARCHED = ("CachingAutotuner.coordinate_descent_tuning", "CachingAutotuner.combo_sequential_autotune")
"""What may follow from the best of the list on, or come alone where a kernel has no list."""

_HEADER = b'{"chromium_event"'
_WANTED = b'"CachingAutotuner.'
_MICROSECONDS = 1e6


def read_tunings(log: Path) -> list[Tuning]:
    """The tunings of one log, in their order.

    Raises:
        OSError: it cannot be read.
    """
    with log.open("rb") as lines:
        return parse_tunings(lines)


def parse_tunings(lines: Iterable[bytes]) -> list[Tuning]:
    """The tunings that lines of one log tell of; other lines, and what has no end, are passed over."""
    begun: dict[tuple[str, str], float] = {}
    tunings: list[Tuning] = []
    for event in _events(lines):
        name, at = event.get("name"), event.get("ts")
        kernel = str((event.get("args") or {}).get("kernel_name") or "")
        if not isinstance(name, str) or not isinstance(at, int | float):
            continue
        if event.get("ph") == "B":
            begun[name, kernel] = at
        elif (began := begun.pop((name, kernel), None)) is not None:
            if name == MEASURED or name in SEARCHED:
                took_s = (at - began) / _MICROSECONDS
                add(tunings, Tuning(kernel=kernel, config=None, tuned_s=took_s, searched=name in SEARCHED))
    return tunings


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
    if _WANTED in text:
        try:
            event = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return
        if isinstance(event, dict):
            yield event
