"""Ranks that are slower than the others, by the step times that every rank reports.

A streaming fold beside the accounting, held by one thread at a time (the caller locks). Events
come in any order, each once; order changes no verdict. Reports are added up by rank in windows of
a minute that overlap by half, a rank that sticks out of a window is slow in it, and one that is
slow in several windows that follow each other is a straggler: a single report that is out of line
lies in two of them.

In synchronous training all ranks need the same time for a step, since those that are ready wait
for the slowest inside a collective operation, and that wait is part of their step. So a rank that
waits for its data can be told there (its data wait is long, the others' step is), a rank that
computes slowly cannot; only where ranks step on their own do step times name it. See `step_spread`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ett_core.events import Progress, StepSeconds

CELLS_KEPT = 144
"""Amounts that are kept, one a rank and half window; of older windows only the verdicts are."""
HALVES_KEPT = 8
"""Half windows whose amounts are kept however many ranks there are."""
HALVES_OPEN = 2
"""Half windows to which reports are added as they are; the others lie packed."""
VERDICTS_KEPT = 20_000
"""Slow ranks in settled windows that are kept (for one rank a week of half minutes)."""
SPREADS_KEPT = 240
"""Settled windows whose spread counts for that of the attempt: the latest two hours."""
SHOWN = 50
SPREAD_OF_NORMAL = 1.4826
"""Standard deviations in a median absolute deviation of a normal distribution."""
RANKS_FOR_A_SPREAD = 4
"""With fewer ranks nobody can tell what is usual among them."""
RANKS_IN_A_VERDICT = 100
LARGEST_AMOUNT_S = 1e9

WindowKey: TypeAlias = tuple[int, int]
"""Attempt, and Unix time in half windows; the window is that half and the one before it."""
Half: TypeAlias = dict[int, list[Any]]
"""Of each rank the fields of its `Pace` in half a window, being added to."""

_CELL = Struct("<idddd")
"""A rank and its pace; no number of steps is too large for it."""


@dataclass(frozen=True, kw_only=True)
class StragglerRules:
    """When a rank is a straggler."""

    window_s: float = 60.0
    """Length of a window in seconds; ranks report at least once a minute where their steps allow it."""
    ratio: float = 1.3
    """A slow rank takes at least this many times as long as the median of all ranks."""
    ratio_of_few: float = 1.5
    """The same among two or three ranks, where it is the median of the others."""
    spreads: float = 4.0
    """A slow rank lies at least this many robust standard deviations above the median."""
    windows: int = 3
    """A straggler is slow in this many windows that follow each other at least."""

    def __post_init__(self) -> None:
        """Check.

        Raises:
            ValueError: a rule is out of range; the message names it.
        """
        for name in ("ratio", "ratio_of_few"):
            if not getattr(self, name) > 1.0:
                raise ValueError(f"{name}={getattr(self, name)!r} is not above 1")
        for name in ("window_s", "spreads", "windows"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r} is not above 0")

    @property
    def half_s(self) -> float:
        """Half a window in seconds."""
        return self.window_s / 2


class Pace(NamedTuple):
    """Steps of a rank in a window: how many, their seconds, the longest, seconds waited for data."""

    steps: int = 0
    step_s: float = 0.0
    max_s: float = 0.0
    wait_s: float = 0.0

    @property
    def mean_step_s(self) -> float:
        """Mean step in seconds without the longest one, so that a single pause does not count.

        >>> Pace(steps=5, step_s=14.0, max_s=10.0).mean_step_s
        1.0
        """
        if self.steps > 1:
            return max(self.step_s - self.max_s, 0.0) / (self.steps - 1)
        return self.step_s


class Slowness(NamedTuple):
    """How a rank was slower than the others in a window; `cause` is `step` or `data_wait`."""

    ratio: float
    cause: str


class Verdict(NamedTuple):
    """What one window tells: its slow ranks, and how far all ranks lie apart (None for a single one)."""

    slow: Mapping[int, Slowness]
    spread: float | None


NOBODY = Verdict({}, None)


class Straggler(msgspec.Struct, frozen=True, gc=False):
    """A rank that was slower than the others between two moments (Unix seconds, to a window).

    `ratio`: of a `cause` `step`, its time a step divided by the usual one; of `data_wait`, that of
    a step with its wait to one without what it waited longer than the others. `ongoing`: it was
    slow in the latest windows of the job.
    """

    attempt: int
    rank: int
    since: float
    until: float
    windows: int
    ratio: float
    cause: str
    ongoing: bool


class SlowWindows(NamedTuple):
    """The settled windows in which one rank was slow, in order: when, how much, and why."""

    windows: array[int]
    ratios: array[float]
    waits: bytearray
    """For each window 1 where its cause is `data_wait`, else 0."""


class RankPacesState(NamedTuple):
    """A `RankPaces` as a value, without its rules."""

    halves: list[tuple[WindowKey, dict[int, Pace]]]
    slow: list[tuple[WindowKey, list[int], list[float], bytes]]
    """By attempt and rank the settled windows in which it was slow."""
    spreads: list[float]
    settled_through: WindowKey


class RankPaces:
    """The fold: `add` progress reports, then ask who is slow."""

    def __init__(self, rules: StragglerRules | None = None) -> None:
        self.rules = rules or StragglerRules()
        self._half_s = self.rules.half_s
        self._halves: dict[WindowKey, Half | bytes] = {}
        """Of each half window and rank the fields of its pace; packed, but for the `_open` ones."""
        self._open: list[WindowKey] = []
        """Those that are not packed, the one that was told last at the end."""
        self._latest_attempt, self._latest_half = -1, 0.0
        self._latest: Half = {}
        """The half window of the latest report."""
        self._cells = 0
        self._slow: dict[tuple[int, int], SlowWindows] = {}
        self._slow_count = 0
        self._spreads = array("d")
        """Of the latest settled windows of the attempt of `_settled_through`."""
        self._settled_through: WindowKey = (-1, 0)
        """The verdicts up to this window are settled; late reports of them are left out."""

    def add(self, event: Progress) -> None:
        """Take in one report; one without step times says nothing here."""
        times, rank = event.step_seconds, event.rank
        if times is None or not times.count or rank < 0:
            return
        half = event.time // self._half_s
        paces: Half | None = self._latest
        if half != self._latest_half or event.attempt != self._latest_attempt:
            paces = self._paces(event.attempt, half)
        if paces is None:
            return
        known = paces.get(rank)
        steps, step_s, max_s, wait_s = pace_of(times, event.data_wait_s)
        if known is None:
            self._cells += 1
            paces[rank] = [steps, step_s, max_s, wait_s]
            if self._cells > CELLS_KEPT and len(self._halves) > HALVES_KEPT + 1:
                self._settle()
            return
        known[0] += steps
        known[1] += step_s
        known[3] += wait_s
        known[2] = max(known[2], max_s)

    def _paces(self, attempt: int, half: float) -> Half | None:
        """The paces of a half window, to be added to; None where they are settled."""
        key = (attempt, int(half))
        if key <= self._settled_through:
            return None
        self._latest_attempt, self._latest_half = attempt, half
        self._latest = self._half(key)
        self._halves[key] = self._latest
        if key in self._open:
            self._open.remove(key)
        self._open.append(key)
        if len(self._open) > HALVES_OPEN:
            packed = self._open.pop(0)
            self._halves[packed] = _packed(self._half(packed))
        return self._latest

    def _half(self, key: WindowKey) -> Half:
        """The paces of a half window; empty where nobody reported."""
        known = self._halves.get(key, {})
        return _unpacked(known) if isinstance(known, bytes) else known

    def stragglers(self) -> list[Straggler]:
        """The stragglers of all attempts, in order of time; at most `SHOWN`, the longest of them."""
        slow = {key: self._slow_windows(key) for key in self._slow}
        for (attempt, window), verdict in self._open_verdicts():
            for rank, slowness in verdict.slow.items():
                slow.setdefault((attempt, rank), []).append((window, slowness))
        found = list(episodes(slow, self.latest_window, self.rules))
        longest = sorted(found, key=lambda each: (-each.windows, each.attempt, each.since, each.rank))
        return sorted(longest[:SHOWN], key=lambda each: (each.attempt, each.since, each.rank))

    @property
    def latest_window(self) -> WindowKey:
        """The latest window in which any rank reported."""
        return max(self._halves, default=self._settled_through)

    @property
    def step_spread(self) -> float | None:
        """How far the ranks lie apart in their time a step, as a share of it; None for a single rank.

        The median of the latest windows of the latest attempt. Near 0, the ranks may move in step with
        each other, and then a rank that computes slowly cannot be told from step times.
        """
        latest = self.latest_window[0]
        spreads = list(self._spreads) if self._settled_through[0] == latest else []
        spreads += [
            verdict.spread
            for (attempt, _), verdict in self._open_verdicts()
            if attempt == latest and verdict.spread is not None
        ]
        return median(spreads[-SPREADS_KEPT:]) if spreads else None

    def state(self) -> RankPacesState:
        """The paces as a value."""
        slow = [
            (key, list(each.windows), list(each.ratios), bytes(each.waits))
            for key, each in self._slow.items()
        ]
        halves = [
            (key, {rank: Pace(*pace) for rank, pace in self._half(key).items()}) for key in self._halves
        ]
        return RankPacesState(halves, slow, list(self._spreads), self._settled_through)

    @classmethod
    def of_state(cls, state: RankPacesState, rules: StragglerRules | None = None) -> RankPaces:
        """The paces that gave `state`; under the same rules they judge the same."""
        paces = cls(rules)
        paces._halves = {key: _packed(ranks) for key, ranks in state.halves}
        paces._cells = sum(len(ranks) for _, ranks in state.halves)
        for key, windows, ratios, waits in state.slow:
            paces._slow[key] = SlowWindows(array("q", windows), array("d", ratios), bytearray(waits))
            paces._slow_count += len(windows)
        paces._spreads, paces._settled_through = array("d", state.spreads), state.settled_through
        return paces

    def latest_paces(self, attempt: int) -> dict[int, Pace]:
        """The paces of the ranks in the latest window of an attempt; empty where nobody reported."""
        halves = [key for key in self._halves if key[0] == attempt]
        return self._window(max(halves)) if halves else {}

    def _slow_windows(self, key: tuple[int, int]) -> list[tuple[int, Slowness]]:
        return [
            (window, Slowness(ratio, "data_wait" if waited else "step"))
            for window, ratio, waited in zip(*self._slow[key], strict=True)
        ]

    def _window(self, key: WindowKey) -> dict[int, Pace]:
        """The paces of a window: its two halves together."""
        attempt, half = key
        before, now = self._half((attempt, half - 1)), self._half(key)
        paces = {rank: Pace(*pace) for rank, pace in before.items() if rank not in now}
        for rank, pace in now.items():
            known = before.get(rank)
            paces[rank] = Pace(*pace) if known is None else _together(known, pace)
        return paces

    def _open_verdicts(self) -> Iterator[tuple[WindowKey, Verdict]]:
        """What the windows that are not settled tell, in their order."""
        keys = {(attempt, half + later) for attempt, half in self._halves for later in (0, 1)}
        settled = self._settled_through
        return ((key, verdict_on(self._window(key), self.rules)) for key in sorted(keys) if key > settled)

    def _settle(self) -> None:
        """Settle the older half of the windows; amounts stay while an open window needs them."""
        self._latest_attempt = -1
        keys = sorted(self._halves)
        through = keys[min(len(keys) // 2, len(keys) - HALVES_KEPT) - 1]
        for key, verdict in self._open_verdicts():
            if key > through:
                break
            self._keep(key, verdict)
        for key in keys:
            if key < through:
                self._cells -= len(self._half(key))
                del self._halves[key]
        self._open = [key for key in self._open if key in self._halves]
        self._settled_through = through
        while self._slow_count > VERDICTS_KEPT:
            self._drop_slow()

    def _keep(self, key: WindowKey, verdict: Verdict) -> None:
        """Keep what a settled window tells."""
        attempt, window = key
        if attempt != self._settled_through[0]:
            self._spreads = array("d")
        self._settled_through = key
        if verdict.spread is not None:
            self._spreads.append(verdict.spread)
            del self._spreads[:-SPREADS_KEPT]
        for rank, slowness in verdict.slow.items():
            known = self._slow.get((attempt, rank))
            if known is None:
                known = self._slow[attempt, rank] = SlowWindows(array("q"), array("d"), bytearray())
            known.windows.append(window)
            known.ratios.append(slowness.ratio)
            known.waits.append(slowness.cause == "data_wait")
            self._slow_count += 1

    def _drop_slow(self) -> None:
        """Let go of the older half of what is longest."""
        key = max(self._slow, key=lambda each: (len(self._slow[each].windows), each))
        half = (len(self._slow[key].windows) + 1) // 2
        for column in self._slow[key]:
            del column[:half]
        self._slow_count -= half
        if not self._slow[key].windows:
            del self._slow[key]


def _together(one: Sequence[Any], other: Sequence[Any]) -> Pace:
    """The pace of two stretches, by the fields of each."""
    longest = one[2] if one[2] > other[2] else other[2]  # noqa: FURB136 - half the time of `max`
    return Pace(one[0] + other[0], one[1] + other[1], longest, one[3] + other[3])


def _packed(half: Mapping[int, Sequence[Any]]) -> bytes:
    """A half window, 36 bytes a rank."""
    return b"".join(_CELL.pack(rank, *pace) for rank, pace in half.items())


def _unpacked(packed: bytes) -> Half:
    return {rank: [int(steps), *rest] for rank, steps, *rest in _CELL.iter_unpack(packed)}


def pace_of(times: StepSeconds, wait_s: float) -> tuple[int, float, float, float]:
    """The fields of the pace of a single report."""
    wait_s = max(0.0, wait_s)
    if times.sum < LARGEST_AMOUNT_S and times.max < LARGEST_AMOUNT_S and wait_s < LARGEST_AMOUNT_S:
        return times.count, times.sum, times.max, wait_s
    largest = LARGEST_AMOUNT_S
    return times.count, min(times.sum, largest), min(times.max, largest), min(wait_s, largest)


def slow_ranks(paces: Mapping[int, Pace], rules: StragglerRules) -> Mapping[int, Slowness]:
    """The ranks that stick out of one window.

    >>> usual = Pace(steps=10, step_s=10.0, max_s=1.0)
    >>> slow_ranks({0: usual, 1: usual, 2: usual, 3: usual._replace(step_s=20.0)}, StragglerRules())
    {3: Slowness(ratio=2.111111111111111, cause='step')}
    >>> waiting = Pace(steps=10, step_s=5.0, max_s=0.5, wait_s=5.0)
    >>> slow_ranks({0: usual, 1: usual, 2: usual, 3: waiting}, StragglerRules())
    {3: Slowness(ratio=2.0, cause='data_wait')}
    """
    return verdict_on(paces, rules).slow


def verdict_on(paces: Mapping[int, Pace], rules: StragglerRules) -> Verdict:
    """What a window tells; see `slow_ranks` and `spread_of`."""
    if len(paces) < 2:  # noqa: PLR2004 - slower than whom
        return NOBODY
    waits = {rank: pace.wait_s / pace.steps for rank, pace in paces.items()}
    steps = {rank: pace.mean_step_s + waits[rank] for rank, pace in paces.items()}
    return Verdict(_slow(steps, waits, rules), spread_of(steps.values()))


def _slow(
    steps: Mapping[int, float], waits: Mapping[int, float], rules: StragglerRules
) -> Mapping[int, Slowness]:
    """The slow ranks by their seconds a step (waits included), and of these their waits."""
    needed = rules.ratio if len(steps) >= RANKS_FOR_A_SPREAD else rules.ratio_of_few
    longest_s, shortest_s = max(steps.values()), min(steps.values())
    if longest_s < needed * shortest_s and max(waits.values()) < (1 - 1 / needed) * shortest_s:
        return NOBODY.slow
    step_bounds, wait_bounds = _bounds(steps, rules), _bounds(waits, rules)
    slow = {}
    for rank, step_s in steps.items():
        usual_s, bound_s = step_bounds.of(rank)
        usual_wait_s, wait_bound_s = wait_bounds.of(rank)
        waited_s = waits[rank] - usual_wait_s
        if usual_s > 0 and step_s >= max(needed * usual_s, bound_s):
            cause = "data_wait" if waited_s > (step_s - usual_s) / 2 else "step"
            slow[rank] = Slowness(step_s / usual_s, cause)
        elif waits[rank] >= wait_bound_s and step_s >= needed * (step_s - waited_s) > 0:
            slow[rank] = Slowness(step_s / (step_s - waited_s), "data_wait")
    worst = sorted(slow, key=lambda rank: (-slow[rank].ratio, rank))[:RANKS_IN_A_VERDICT]
    return {rank: slow[rank] for rank in sorted(worst)}


class _Bounds(NamedTuple):
    """What is usual for a rank, and what nobody exceeds by chance; by rank where they are few."""

    usual_s: float
    bound_s: float
    among_few: Mapping[int, float]

    def of(self, rank: int) -> tuple[float, float]:
        usual_s = self.among_few.get(rank)
        return (self.usual_s, self.bound_s) if usual_s is None else (usual_s, usual_s)


def _bounds(seconds: Mapping[int, float], rules: StragglerRules) -> _Bounds:
    if len(seconds) < RANKS_FOR_A_SPREAD:
        others = {rank: median(s for other, s in seconds.items() if other != rank) for rank in seconds}
        return _Bounds(0.0, 0.0, others)
    middle_s = median(seconds.values())
    spread_s = SPREAD_OF_NORMAL * median(abs(each - middle_s) for each in seconds.values())
    return _Bounds(middle_s, middle_s + rules.spreads * spread_s, {})


def spread_of(steps: Iterable[float]) -> float | None:
    """Robust standard deviation of seconds a step over ranks, divided by their median; None without one.

    >>> spread_of([1.0, 1.0, 1.0, 1.2]), spread_of([0.0, 0.0])
    (0.0, None)
    """
    ordered = sorted(steps)
    middle_s = median(ordered)
    if not middle_s:
        return None
    return SPREAD_OF_NORMAL * median([abs(each - middle_s) for each in ordered]) / middle_s


def episodes(
    slow: Mapping[tuple[int, int], Sequence[tuple[int, Slowness]]], latest: WindowKey, rules: StragglerRules
) -> Iterator[Straggler]:
    """Stragglers from the windows in which ranks were slow, by attempt and rank.

    One window between slow ones is passed over.
    """
    for (attempt, rank), of_rank in sorted(slow.items()):
        told = dict(of_rank)
        for run in _runs(list(told), step=2):
            if max(map(len, _runs(run, step=1))) < rules.windows:
                continue
            found = [told[window] for window in run]
            causes = [each.cause for each in found]
            yield Straggler(
                attempt=attempt,
                rank=rank,
                since=(run[0] - 1) * rules.half_s,
                until=(run[-1] + 1) * rules.half_s,
                windows=len(run),
                ratio=median(each.ratio for each in found),
                cause=max(("step", "data_wait"), key=causes.count),
                ongoing=attempt == latest[0] and run[-1] >= latest[1] - 1,
            )


def _runs(windows: Sequence[int], step: int) -> list[list[int]]:
    """Windows in groups whose neighbours are at most `step` apart.

    >>> _runs([1, 2, 4, 7], step=2)
    [[1, 2, 4], [7]]
    """
    runs: list[list[int]] = []
    for window in windows:
        if runs and window - runs[-1][-1] <= step:
            runs[-1].append(window)
        else:
            runs.append([window])
    return runs
