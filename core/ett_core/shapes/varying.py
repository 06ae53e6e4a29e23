"""What varied between the compilations of one frame, and how many would remain were it left open. Pure.

Torch makes a graph of its own for a size of 0 or 1, whatever is left open; a whole number that is
left open has one graph for all. A dimension pays only where at least two other sizes came.

Where the inputs of every compilation are known, the graphs that would remain are counted: one for
each set of inputs that differ in more than what is open. From reasons alone they are estimated:
torch tells one thing that differed, the first, and there may have been more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ett_core.shapes.facts import Compilation, Input, Symbol, order
from ett_core.shapes.reasons import Reason

Explained = Sequence[tuple[Compilation, Reason | None]]
"""Compilations of one frame in their order, each with its reason."""

_ALWAYS_APART = (0, 1)


def open_ended(explained: Explained) -> dict[Symbol, tuple[int, ...]]:
    """What to leave open in this frame, with the values that came, ascending."""
    values = _seen(explained)
    already = {symbol for item, _ in explained if item.nth == 0 for symbol in item.symbols}
    return {
        symbol: tuple(sorted(values[symbol]))
        for symbol in sorted(values, key=order)
        if symbol not in already and _pays(symbol, values[symbol]) and not _is_constant(symbol, explained)
    }


def remaining(explained: Explained, opened: Mapping[Symbol, object]) -> tuple[int, bool]:
    """How many graphs would remain with these left open, and whether that is counted (or estimated)."""
    graphs = [(item, reason) for item, reason in explained if item.graph]
    if all(item.inputs is not None for item, _ in graphs):
        kept = {(_fits(item.inputs or (), opened), _else(reason, opened)) for item, reason in graphs}
        return len(kept), True
    return _estimate(explained, opened), len(graphs) < 2  # noqa: PLR2004 - nothing varied


def is_apart(reason: Reason) -> bool:
    """Whether a size of 0 or 1 came, or had come before."""
    return reason.kind == "small" or (
        reason.kind == "size" and not {*_ALWAYS_APART}.isdisjoint(reason.values)
    )


def cured(reason: Reason, opened: Mapping[Symbol, object]) -> bool:
    """Whether what differed is left open now."""
    return reason.kind in {"size", "number"} and Symbol(reason.source, reason.dim) in opened


def _seen(explained: Explained) -> dict[Symbol, set[int]]:
    values: defaultdict[Symbol, set[int]] = defaultdict(set)
    sizes: dict[str, tuple[int, ...]] = {}
    for item, reason in explained:
        if reason is not None and reason.kind in {"size", "number"}:
            values[Symbol(reason.source, reason.dim)].update(reason.values)
        for symbol in item.symbols:
            values.setdefault(symbol, set())
        for each in item.inputs or ():
            before = sizes.setdefault(each.source, each.size)
            if len(before) == len(each.size):
                for dim, (old, new) in enumerate(zip(before, each.size, strict=True)):
                    if old != new:
                        values[Symbol(each.source, dim)] |= {old, new}
    return dict(values)


def _pays(symbol: Symbol, values: set[int]) -> bool:
    """Whether fewer graphs come of it; of values that nobody told, torch has seen two."""
    return symbol.dim is None or not values or len(values - {*_ALWAYS_APART}) > 1


def _is_constant(symbol: Symbol, explained: Explained) -> bool:
    """Whether torch holds this number constant whatever it is told: an attribute of a module, as a rule.

    Any other number is left open by torch itself from its second value on.
    """
    if symbol.dim is not None or symbol.source.endswith("]"):
        return False
    if any(symbol in item.symbols for item, _ in explained):
        return False
    told = sum(
        reason.source == symbol.source for _, reason in explained if reason and reason.kind == "number"
    )
    return told > 1 or any(item.inputs is not None for item, _ in explained)


Fit = tuple[str, str, tuple[int | None, ...]]
"""A name, traits, and sizes, None where any fits."""


def _fits(inputs: tuple[Input, ...], opened: Mapping[Symbol, object]) -> frozenset[Fit]:
    return frozenset(
        (
            each.source,
            each.traits,
            tuple(
                None if size not in _ALWAYS_APART and Symbol(each.source, dim) in opened else size
                for dim, size in enumerate(each.size)
            ),
        )
        for each in inputs
    )


def _else(reason: Reason | None, opened: Mapping[Symbol, object]) -> str:
    """What sets a graph apart that its inputs do not tell."""
    if reason is None or cured(reason, opened) or reason.kind in {"size", "small", "tensor"}:
        return ""
    return reason.text


def _estimate(explained: Explained, opened: Mapping[Symbol, object]) -> int:
    many: set[Symbol] = set()
    apart: set[tuple[Symbol, int | None]] = set()
    count = 0
    for _, reason in explained:
        symbol = Symbol("") if reason is None else Symbol(reason.source, reason.dim)
        if reason is None or not (cured(reason, opened) or reason.kind == "small"):
            count += 1
        elif reason.kind == "small":
            count += (symbol, None) not in apart
            apart.add((symbol, None))
        elif symbol.dim is not None:
            before, after = reason.values
            if before not in _ALWAYS_APART:
                many.add(symbol)
            if after in _ALWAYS_APART:
                count += (symbol, after) not in apart
                apart.add((symbol, after))
            else:
                count += before in _ALWAYS_APART and symbol not in many
                many.add(symbol)
    return max(count, 1)  # the first graph may not have been told
