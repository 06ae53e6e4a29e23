"""Advice on sizes that vary, in words and as an object. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ett_core.shapes import Advice, FrameAdvice, Left, Symbol, is_bare
from ett_core.shapes.sources import VARIABLE, shell_line

SHOWN = 8
"""Values of a size, and reasons of a frame, that are written out."""

_ARGUMENT = re.compile(r"^L\['(\w+)'\]$")
_RESUMED = "torch_dynamo_resume"

_NO_SIZES = "Torch gives as a reason only what differed first; a trace (TORCH_TRACE) tells all that varied."

_COUNSEL: Mapping[str, str] = {
    "small": "torch makes a graph of its own for 0 and for 1; pad or drop such batches",
    "branch": "the code decides by this size; a graph for each way it goes",
    "length": "how many items there are is part of a graph; pad to one number, or stack them",
    "number": "torch holds it constant (an attribute of a module, as a rule); pass it as an argument",
    "fraction": "torch holds a float constant at first; pass a tensor without dimensions",
    "tensor": "make the tensors alike before the call",
    "layout": "make the tensors contiguous before the call",
    "size": "too few sizes came for a graph that leaves it open to pay",
}


def as_object(advice: Advice, torch_version: str) -> dict[str, Any]:
    """What `--json` prints. `counted` tells whether expected graphs are counted or estimated."""
    return {
        "variable": VARIABLE,
        "value": advice.value,
        "torch": torch_version.partition("+")[0] or None,  # the build may be missing
        "processes": advice.processes,
        "graphs": advice.graphs,
        "expected_graphs": advice.expected,
        "counted": advice.counted,
        "frames": [_frame_object(frame) for frame in advice.frames],
        "shared": {source: list(codes) for source, codes in advice.shared.items()},
    }


def render(advice: Advice) -> str:
    """The advice for people: what to set, what it saves, and what remains."""
    blocks = [_first(advice), *map(_frame, advice.frames)]
    if advice.shared:
        blocks.append("\n".join(_shared(advice.shared)))
    return "\n\n".join(blocks)


def _first(advice: Advice) -> str:
    where = "" if advice.processes == 1 else f" in {advice.processes} processes"
    if not advice.frames:
        return f"{_count(advice.graphs, 'graph')}{where}, none compiled again: nothing to advise."
    if not advice.value:
        return (
            f"{_count(advice.graphs, 'graph')}{where}, and none for a size that could be left open: "
            "nothing to set. What was compiled again, and why:"
        )
    how = (
        "counted from the sizes that came" if advice.counted else "estimated from the reasons that torch gave"
    )
    return (
        f"{_count(advice.graphs, 'graph')}{where}; {_expected(advice)} where this is set before the program "
        f"starts ({how}):\n\n  {shell_line(advice.value)}" + ("" if advice.counted else f"\n\n{_NO_SIZES}")
    )


def _expected(told: Advice | FrameAdvice) -> str:
    return str(told.expected) if told.counted else f"at least {told.expected}"


def _frame(frame: FrameAdvice) -> str:
    name = frame.code or f"frame {frame.frame}"
    saved = f", {_expected(frame)} with it" if frame.opened else ""
    lines = [f"{name}: {_count(frame.graphs, 'graph')}{saved}"]
    lines += [f"  left open  {_opened(symbol, values)}" for symbol, values in frame.opened.items()]
    lines += [f"  or in code {line}" for line in in_code(frame)]
    lines += [f"  remains    {_left(each)}" for each in frame.left[:SHOWN]]
    if len(frame.left) > SHOWN:
        lines.append(f"             and {len(frame.left) - SHOWN} more reasons (--json has all)")
    if is_bare(frame.code):
        lines.append(
            "  profile    torch's own modules (nn.Sequential) compiled bare never find what earlier starts "
            "learnt (PGO): wrap them in a class with a forward of its own"
        )
    if frame.at_limit:
        lines.append("  limit      torch runs a frame uncompiled after 8 graphs; more sizes may have come")
    return "\n".join(lines)


def in_code(frame: FrameAdvice) -> list[str]:
    """Calls that do the same for arguments, to be put before the call of what is compiled.

    Such a mark is of a tensor, so that it must be set on each.
    """
    if not frame.code or is_bare(frame.code) or frame.code.startswith(_RESUMED):
        return []
    named = [(_ARGUMENT.match(symbol.source), symbol.dim) for symbol in frame.opened]
    return [
        f"torch._dynamo.maybe_mark_dynamic({found[1]}, {dim})"
        for found, dim in named
        if found is not None and dim is not None
    ]


def _opened(symbol: Symbol, values: Sequence[int]) -> str:
    place = "" if symbol.dim is None else f", dimension {symbol.dim}"
    named = ", ".join(map(str, values[:SHOWN]))
    if len(values) > SHOWN:
        return f"{symbol.source}{place}: {named} and {len(values) - SHOWN} more"
    if len(values) > 1:
        return f"{symbol.source}{place}: {named}"
    return f"{symbol.source}{place}" + (f": {named}, then others" if named else "")


def _left(left: Left) -> str:
    times = "" if left.count == 1 else f" ({left.count} times)"
    counsel = _COUNSEL.get(left.kind)
    return f"{left.text}{times}" + (f": {counsel}" if counsel else "")


def _shared(shared: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "Names belong to frames, and these have an input of the same name whose sizes did not vary:"
    for source, codes in shared.items():
        yield f"  {source}  {', '.join(codes)}"


def _count(count: int, thing: str) -> str:
    """A number of things.

    >>> _count(1, "graph"), _count(1200, "graph")
    ('1 graph', '1,200 graphs')
    """
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def _frame_object(frame: FrameAdvice) -> dict[str, Any]:
    return {
        "frame": frame.frame,
        "code": frame.code or None,
        "graphs": frame.graphs,
        "expected_graphs": frame.expected,
        "counted": frame.counted,
        "opened": [
            {"source": symbol.source, "dim": symbol.dim, "values": list(values)}
            for symbol, values in frame.opened.items()
        ],
        "in_code": in_code(frame),
        "left": [{"kind": each.kind, "reason": each.text, "count": each.count} for each in frame.left],
        "at_limit": frame.at_limit,
    }
