"""What is known of the compilations of a program: rows that every reader makes and the advice reads."""

from __future__ import annotations

import msgspec


class Input(msgspec.Struct, frozen=True):
    """A tensor that a graph was compiled for.

    Args:
        source: its name as torch's frame knows it, such as `L['x']`.
        size: its sizes, one a dimension.
        traits: what else must be the same for a graph to fit: dtype, device, whether it needs a gradient.
    """

    source: str
    size: tuple[int, ...]
    traits: str = ""


class Symbol(msgspec.Struct, frozen=True):
    """What a graph leaves open: a dimension of a tensor, or a whole number (`dim` None)."""

    source: str
    dim: int | None = None


def order(symbol: Symbol) -> tuple[str, int]:
    """By name, then by dimension."""
    return symbol.source, -1 if symbol.dim is None else symbol.dim


class Compilation(msgspec.Struct, frozen=True, kw_only=True):
    """One compilation of one frame (a piece of Python code) in one process.

    Args:
        process: whatever tells processes apart.
        frame: torch's number of the frame.
        nth: which of the frame's compilations, from 0.
        code: the function and where it is; empty where nobody said.
        reason: why the graphs there were did not fit, in torch's words; None for a first one.
        inputs: the tensors it was compiled for; None where nobody recorded them.
        symbols: what it leaves open.
        graph: whether a graph came of it (a frame that holds nothing to compile gives none).
    """

    process: str
    frame: int
    nth: int
    code: str = ""
    reason: str | None = None
    inputs: tuple[Input, ...] | None = None
    symbols: frozenset[Symbol] = frozenset()
    graph: bool = True
