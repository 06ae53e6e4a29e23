"""What is known of the compilations of a program: rows that every reader makes and the advice reads."""

from __future__ import annotations

import re

import msgspec

from ett_core.events import CompileInput as Input

__all__ = ["Compilation", "Input", "Symbol", "is_bare", "order", "symbol_of"]

_DIMENSION = re.compile(r"^(?P<source>.+)\.size\(\)\[(?P<dim>\d+)\]$")


_BARE = "inner (external_utils.py"


def is_bare(code: str) -> bool:
    """Whether this is a module of torch's own (`nn.Sequential`) that was compiled as it is.

    Torch compiles a function around it, whose closure is another in every process: it never finds again
    what earlier starts have learnt of it (PGO).
    """
    return code.startswith(_BARE)


class Symbol(msgspec.Struct, frozen=True):
    """What a graph leaves open: a dimension of a tensor, or a whole number (`dim` None)."""

    source: str
    dim: int | None = None


def symbol_of(name: str) -> Symbol:
    """What stands behind a name of torch's.

    >>> symbol_of("L['x'].size()[0]"), symbol_of("L['n']")
    (Symbol(source="L['x']", dim=0), Symbol(source="L['n']", dim=None))
    """
    found = _DIMENSION.match(name)
    return Symbol(found["source"], int(found["dim"])) if found else Symbol(name)


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
