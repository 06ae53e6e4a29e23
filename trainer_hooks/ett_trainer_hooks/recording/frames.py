"""Which code a graph was made of, and for what: names, sizes and traits of what came, what is left open.

Torch makes the guards of a graph from the tensors that it has traced; there they are read, once a
compilation. Parameters are left out: their sizes are those of the model.
"""

from __future__ import annotations

from itertools import islice
from pathlib import PurePath
from types import CodeType
from typing import Any

import msgspec

from ett_core.events import CompileInput
from ett_trainer_hooks.torch_private import field


class Frame(msgspec.Struct, frozen=True):
    """A piece of code that a graph was made of; see the fields of `compile` events."""

    code: str = ""
    inputs: tuple[CompileInput, ...] | None = None
    symbols: tuple[str, ...] = ()


UNTOLD = Frame()
"""Of a compilation without a graph, and of one that torch does not let be seen."""
INPUTS_KEPT = 128
"""Of more inputs than this none is told of: with a part of them, graphs would look alike that are not."""
NAME_KEPT = 1024
"""Characters of a name; of what has a longer one nothing is told."""


def frame_in(told: tuple[object, ...]) -> Frame:
    """What is known of a frame for which torch is about to make guards; `UNTOLD` where it holds no graph."""
    code = next((each for each in told if isinstance(each, CodeType)), None)
    graph = next((each for each in told if field(each, "tracked_fakes") is not None), None)
    is_empty = field(graph, "is_empty_graph")
    if code is None or graph is None or (callable(is_empty) and is_empty()):
        return UNTOLD
    inputs: dict[str, CompileInput] = {}
    symbols: list[str] = []
    for tracked in field(graph, "tracked_fakes"):
        source, fake = _source_name(tracked), field(tracked, "fake")
        if not callable(getattr(fake, "size", None)):
            symbols += [source] if _is_open(fake) else []
        elif not field(fake, "_is_param"):
            inputs[source] = _input(source, fake)
            symbols += [f"{source}.size()[{dim}]" for dim, side in enumerate(fake.size()) if _is_open(side)]
    name = f"{code.co_name} ({PurePath(code.co_filename).name}:{code.co_firstlineno})"
    are_all = len(inputs) <= INPUTS_KEPT and all(map(_is_short, inputs))
    return Frame(
        code=name[:NAME_KEPT],
        inputs=tuple(inputs.values()) if are_all else None,
        symbols=tuple(islice(filter(_is_short, dict.fromkeys(symbols)), INPUTS_KEPT)),
    )


def _input(source: str, tensor: Any) -> CompileInput:  # noqa: ANN401 - of torch
    gradient = " with gradient" if tensor.requires_grad else ""
    size = tuple(map(_side, tensor.size()))
    return CompileInput(source, size, f"{tensor.dtype} {tensor.device}{gradient}")


def _source_name(tracked: object) -> str:
    name = field(field(tracked, "source"), "name", "")
    return str(name() if callable(name) else name)


def _is_open(number: object) -> bool:
    """Whether this is a whole number that the graph leaves open."""
    return type(number).__name__ == "SymInt"


def _side(side: object) -> int:
    """A size as it came; -1 where torch does not know it."""
    came = side if isinstance(side, int) else field(field(side, "node"), "hint")
    return came if isinstance(came, int) else -1


def _is_short(name: str) -> bool:
    return len(name) <= NAME_KEPT
