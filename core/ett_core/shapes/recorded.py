"""Compilations as the events of a job tell of them. Pure.

Where torch lets the hooks see, an event names the code and has the sizes of what came; elsewhere it
has a reason at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ett_core.compile_log import CompileLine
from ett_core.events import AnyEvent, AttemptStart, Compile
from ett_core.shapes.facts import Compilation, symbol_of

_GRAPH = re.compile(r"(?:^|/)(\d+)/(\d+)(?:_\d+)?$")


def compilations_of(told: Iterable[AnyEvent | CompileLine]) -> Iterator[Compilation]:
    """What `compile` events of one job tell, or what is kept of them; those without a graph are passed over.

    A backward that is compiled later comes under the name of its forward, and is no graph of its own.
    In a process that tells which code it compiled, no graph came of what has none.
    """
    compiles = [each for each in told if isinstance(each, Compile | CompileLine)]
    telling = {event.writer for event in compiles if event.code}
    for event in compiles:
        if found := _GRAPH.search(event.graph):
            yield Compilation(
                process=event.writer,
                frame=int(found[1]),
                nth=int(found[2]),
                code=event.code,
                reason=event.recompile_reason,
                inputs=event.inputs,
                symbols=frozenset(map(symbol_of, event.symbols)),
                graph=bool(event.code) or event.writer not in telling,
            )


def torch_version_of(events: Iterable[AnyEvent]) -> str:
    """The oldest torch that processes of a job have told of; empty where none did."""
    return oldest(event.versions.get("torch", "") for event in events if isinstance(event, AttemptStart))


def oldest(versions: Iterable[str]) -> str:
    """The oldest version that is told, so that all understand what is advised.

    >>> oldest(["2.13.0+cpu", "", "2.9.1"]), oldest([])
    ('2.9.1', '')
    """
    return min(set(versions) - {""}, key=_numbers, default="")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
