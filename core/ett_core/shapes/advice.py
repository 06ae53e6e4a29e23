"""Advice on sizes that vary: what to leave open, how many graphs remain, and what no setting cures. Pure.

The names that torch takes belong to frames, not to programs: what is left open for one frame is
left open for every other that has an input of that name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ett_core.shapes import sources
from ett_core.shapes.facts import Compilation, Symbol
from ett_core.shapes.reasons import Kind, Reason, parse
from ett_core.shapes.varying import Explained, cured, is_apart, open_ended, remaining

LIMIT = 8
"""After how many graphs of a frame torch runs it uncompiled, unless told otherwise."""


class Left(msgspec.Struct, frozen=True):
    """A reason that nothing left open would have cured, and how often it came."""

    kind: Kind
    text: str
    count: int


class FrameAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """One frame, over all processes.

    Args:
        frame: torch's number of it.
        code: the function and where it is; empty where nobody said.
        graphs: how many there were.
        expected: how many remain.
        counted: whether `expected` is counted from the inputs (else estimated from reasons).
        opened: what to leave open, with the values that came.
        left: what remains, most frequent first.
        at_limit: whether torch gave up on it in some process, so that more sizes may have come.
    """

    frame: int
    code: str
    graphs: int
    expected: int
    counted: bool
    opened: Mapping[Symbol, tuple[int, ...]]
    left: tuple[Left, ...]
    at_limit: bool


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """All of it.

    Args:
        value: for TORCH_COMPILE_DYNAMIC_SOURCES; empty where it would cure nothing.
        processes: how many were looked at.
        graphs: how many there were, in all frames of all processes.
        expected: how many remain with `value`.
        counted: whether `expected` is counted from the inputs (else estimated from reasons).
        frames: those that were compiled more than once, dearest first.
        shared: names in `value` to other frames that have an input of that name, whose sizes did not vary.
    """

    value: str
    processes: int
    graphs: int
    expected: int
    counted: bool
    frames: tuple[FrameAdvice, ...]
    shared: Mapping[str, tuple[str, ...]]


def advise(compilations: Iterable[Compilation], *, torch_version: str = "") -> Advice:
    """What to do about the sizes that varied between these compilations, in any order.

    Args:
        compilations: of one program, whatever its processes; repeats of one count once.
        torch_version: of the program; empty where nobody told.
    """
    by_frame = _by_frame(compilations)
    single = [_advise_frame(explained) for explained in by_frame.values()]
    frames = _joined(single)
    opened = {symbol for frame in frames for symbol in frame.opened}
    return Advice(
        value=sources.value_of(opened, dimensions=sources.knows_dimensions(torch_version)),
        processes=len({process for process, _ in by_frame}),
        graphs=sum(frame.graphs for frame in single),
        expected=sum(frame.expected for frame in single),
        counted=all(frame.counted for frame in single),
        frames=tuple(frame for frame in frames if frame.left or frame.opened),
        shared=_shared(frames, by_frame.values()),
    )


def for_next_start(compilations: Iterable[Compilation], *, torch_version: str = "") -> str:
    """The value for a start after these: what to leave open, and what was open from the beginning."""
    known = list(compilations)
    opened = {symbol for frame in advise(known).frames for symbol in frame.opened}
    kept = {symbol for item in known if item.nth == 0 for symbol in item.symbols}
    return sources.value_of(opened | kept, dimensions=sources.knows_dimensions(torch_version))


def _by_frame(compilations: Iterable[Compilation]) -> dict[tuple[str, int], Explained]:
    unique: dict[tuple[str, int, int], Compilation] = {}
    for item in compilations:
        key = (item.process, item.frame, item.nth)
        if key not in unique or _told_in(unique[key]) < _told_in(item):
            unique[key] = item
    frames: defaultdict[tuple[str, int], list[Compilation]] = defaultdict(list)
    for key in sorted(unique):
        frames[key[:2]].append(unique[key])
    return {
        key: [(item, None if item.reason is None else parse(item.reason)) for item in items]
        for key, items in frames.items()
    }


def _told_in(item: Compilation) -> tuple[bool, bool]:
    return item.inputs is not None, item.reason is not None


def _advise_frame(explained: Explained) -> FrameAdvice:
    graphs = sum(item.graph for item, _ in explained)
    opened = open_ended(explained)
    expected, counted = remaining(explained, opened)
    if expected >= graphs:
        opened, expected = {}, graphs
    return FrameAdvice(
        frame=explained[0][0].frame,
        code=next((item.code for item, _ in explained if item.code), ""),
        graphs=graphs,
        expected=expected,
        counted=counted,
        opened=opened,
        left=_left(explained, opened),
        at_limit=graphs >= LIMIT,
    )


def _left(explained: Explained, opened: Mapping[Symbol, object]) -> tuple[Left, ...]:
    counts = Counter(
        _told(reason)
        for _, reason in explained
        if reason is not None and (is_apart(reason) or not cured(reason, opened))
    )
    return tuple(Left(kind, text, count) for (kind, text), count in counts.most_common())


def _told(reason: Reason) -> tuple[Kind, str]:
    if is_apart(reason):
        return "small", f"{reason.source}, dimension {reason.dim}, is 0 or 1"
    return reason.kind, reason.text


def _joined(single: Sequence[FrameAdvice]) -> list[FrameAdvice]:
    """The same frame of several processes as one, dearest first."""
    alike: defaultdict[tuple[int, str], list[FrameAdvice]] = defaultdict(list)
    for frame in single:
        alike[(frame.frame, frame.code)].append(frame)
    joined = [same[0] if len(same) == 1 else _sum(same) for same in alike.values()]
    return sorted(joined, key=lambda frame: (-frame.graphs, frame.frame))


def _sum(same: Sequence[FrameAdvice]) -> FrameAdvice:
    opened: defaultdict[Symbol, set[int]] = defaultdict(set)
    left: Counter[tuple[Kind, str]] = Counter()
    for frame in same:
        for symbol, values in frame.opened.items():
            opened[symbol].update(values)
        left.update({(each.kind, each.text): each.count for each in frame.left})
    return msgspec.structs.replace(
        same[0],
        graphs=sum(frame.graphs for frame in same),
        expected=sum(frame.expected for frame in same),
        counted=all(frame.counted for frame in same),
        opened={symbol: tuple(sorted(values)) for symbol, values in opened.items()},
        left=tuple(Left(kind, text, count) for (kind, text), count in left.most_common()),
        at_limit=any(frame.at_limit for frame in same),
    )


def _shared(frames: Sequence[FrameAdvice], by_frame: Iterable[Explained]) -> dict[str, tuple[str, ...]]:
    opening: defaultdict[str, set[str]] = defaultdict(set)
    for frame in frames:
        for symbol in frame.opened:
            opening[symbol.source].add(_name(frame.code, frame.frame))
    others: defaultdict[str, set[str]] = defaultdict(set)
    for explained in by_frame:
        for item, _ in explained:
            name = _name(item.code, item.frame)
            for each in item.inputs or ():
                if each.source in opening and name not in opening[each.source]:
                    others[each.source].add(name)
    return {source: tuple(sorted(names)) for source, names in sorted(others.items())}


def _name(code: str, frame: int) -> str:
    return code or f"frame {frame}"
