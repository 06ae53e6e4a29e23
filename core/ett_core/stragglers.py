"""Ranks that are slower than the others, by the step times that every rank reports.

A streaming fold beside the accounting, held by one thread at a time (the caller locks). Events
come in any order, each once; order changes no verdict, unless hours of one rank come before those
of another: windows of which too much came since are settled with what there is, and the fold counts as
`late` what comes of them (see `ett_core.in_order`). Reports are added
up by rank in windows of a minute that overlap by half, a rank that sticks out of a window is slow
in it, and one that is slow in several windows that follow each other is a straggler: a single
report that is out of line lies in two of them.

In synchronous training all ranks need the same time for a step, since those that are ready wait
for the slowest inside a collective operation, and that wait is part of their step. So a rank that
waits for its data can be told there (its data wait is long, the others' step is), a rank that
computes slowly cannot; only where ranks step on their own do step times name it. See `step_spread`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from ett_core.archive import IN_MEMORY, Archive, Parcel, parcel_of
from ett_core.paces import Half, Halves, Pace, WindowKey, by_half, half_of, pace, together
from ett_core.runs import Row
from ett_core.slowness import NOBODY, Slowness, StragglerRules, Verdict, verdict_on

CELLS_KEPT = 144
"""Amounts that are kept, one a rank and half window; of older windows only the verdicts are."""
HALVES_KEPT = 8
"""Half windows whose amounts are kept however many ranks there are."""
VERDICTS_KEPT = 20_000
"""Slow ranks in settled windows that are kept (for one rank a week of half minutes)."""
SPREADS_KEPT = 240
"""Settled windows whose spread counts for that of the attempt: the latest two hours."""
SHOWN = 50
USUAL_RULES = StragglerRules()
NOTHING = Half()


class Straggler(msgspec.Struct, frozen=True, gc=False):
    """A rank that was slower than the others between two moments (Unix seconds, to a window).

    `ratio`: of a `cause` `step`, its time a step divided by the usual one; of `data_wait`, that of
    a step with its wait to one without what it waited longer than the others; of `stopped`, the time
    that passed to that in which its process ran. `windows` are those in which step times told it, 0 of
    one that was found stopped. `ongoing`: it was slow in the latest windows of the job, or is stopped.
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
    late: int = 0


class RankPaces:
    """The fold: `add` progress reports, then ask who is slow."""

    __slots__ = (
        "_archive",
        "_cells",
        "_half_s",
        "_halves",
        "_packed_spreads",
        "_settled_through",
        "_slow",
        "_slow_count",
        "late",
        "rules",
    )

    def __init__(self, rules: StragglerRules | None = None, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self.rules = rules or USUAL_RULES
        self._half_s = self.rules.half_s
        self._halves = Halves(archive)
        self._cells = 0
        self._slow: dict[tuple[int, int], SlowWindows] = {}
        self._slow_count = 0
        self._archive = archive
        self._packed_spreads: Parcel | None = None
        """Of the latest settled windows of the attempt of `_settled_through`."""
        self._settled_through: WindowKey = (-1, 0)
        """The verdicts up to this window are settled; late reports of them are left out."""
        self.late = 0
        """How often reports came too late for a window that was settled."""

    def add(self, attempt: int, rank: int, timed: Iterable[Row]) -> None:
        """Take in reports of a rank of an attempt, 0 or more, with timed steps."""
        told = {(attempt, half): fields for half, fields in by_half(timed, self._half_s).items()}
        settled = self._settled_through
        if told and min(told) <= settled:
            told = {key: fields for key, fields in told.items() if key > settled}
            self.late += 1
        self._cells += self._halves.add(rank, told)
        while self._cells > CELLS_KEPT and len(self._halves) > HALVES_KEPT + 1:
            self._settle()

    def stragglers(self) -> list[Straggler]:
        """The stragglers of all attempts, in order of time; at most `SHOWN`, the longest of them."""
        slow = {key: self._slow_windows(key) for key in self._slow}
        for (attempt, window), verdict in self._open_verdicts(self._halves.everything()):
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
        spreads = list(self._spreads()) if self._settled_through[0] == latest else []
        spreads += [
            verdict.spread
            for (attempt, _), verdict in self._open_verdicts(self._halves.everything())
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
            (key, {rank: pace(fields) for rank, fields in half.items()})
            for key, half in self._halves.everything().items()
        ]
        return RankPacesState(halves, slow, list(self._spreads()), self._settled_through, self.late)

    @classmethod
    def of_state(
        cls, state: RankPacesState, rules: StragglerRules | None = None, archive: Archive = IN_MEMORY
    ) -> RankPaces:
        """The paces that gave `state`; under the same rules they judge the same."""
        paces = cls(rules, archive)
        paces._halves.put((key, half_of(ranks)) for key, ranks in state.halves)
        paces._cells = sum(len(ranks) for _, ranks in state.halves)
        for key, windows, ratios, waits in state.slow:
            paces._slow[key] = SlowWindows(array("q", windows), array("d", ratios), bytearray(waits))
            paces._slow_count += len(windows)
        paces._pack_spreads(array("d", state.spreads))
        paces._settled_through = state.settled_through
        paces.late = state.late
        return paces

    def latest_paces(self, attempt: int) -> dict[int, Pace]:
        """The paces of the ranks in the latest window of an attempt; empty where nobody reported."""
        halves = self._halves.everything()
        latest = max((key for key in halves if key[0] == attempt), default=None)
        return {} if latest is None else self._window(latest, halves)

    def _slow_windows(self, key: tuple[int, int]) -> list[tuple[int, Slowness]]:
        return [
            (window, Slowness(ratio, "data_wait" if waited else "step"))
            for window, ratio, waited in zip(*self._slow[key], strict=True)
        ]

    def _window(self, key: WindowKey, halves: Mapping[WindowKey, Half]) -> dict[int, Pace]:
        """The paces of a window: its two halves together."""
        attempt, half = key
        before, now = halves.get((attempt, half - 1), NOTHING), halves.get(key, NOTHING)
        paces = {rank: pace(fields) for rank, fields in before.items() if rank not in now}
        for rank, fields in now.items():
            known = before.get(rank)
            paces[rank] = pace(fields) if known is None else together(known, fields)
        return paces

    def _open_verdicts(self, halves: Mapping[WindowKey, Half]) -> Iterator[tuple[WindowKey, Verdict]]:
        """What the windows that are not settled tell, in their order."""
        keys = {(attempt, half + later) for attempt, half in halves for later in (0, 1)}
        settled = self._settled_through
        return ((key, self._verdict(key, halves)) for key in sorted(keys) if key > settled)

    def _verdict(self, key: WindowKey, halves: Mapping[WindowKey, Half]) -> Verdict:
        """What a window tells; nothing without a second rank."""
        before, now = halves.get((key[0], key[1] - 1), NOTHING), halves.get(key, NOTHING)
        if len(before) + len(now) < 2 or (len(before) == len(now) == 1 and [*before] == [*now]):  # noqa: PLR2004 - itself twice
            return NOBODY
        return verdict_on(self._window(key, halves), self.rules)

    def _settle(self) -> None:
        """Settle the older half of the windows; amounts stay while an open window needs them."""
        halves = self._halves.everything()
        keys = sorted(halves)
        through = keys[min(len(keys) // 2, len(keys) - HALVES_KEPT) - 1]
        spreads = self._spreads()
        for key, verdict in self._open_verdicts(halves):
            if key > through:
                break
            spreads = self._keep(key, verdict, spreads)
        self._pack_spreads(spreads)
        gone = {key for key in keys if key < through}
        self._cells -= sum(len(halves[key]) for key in gone)
        self._halves.drop(gone)
        self._settled_through = through
        while self._slow_count > VERDICTS_KEPT:
            self._drop_slow()

    def _spreads(self) -> array[float]:
        spreads = array("d")
        if self._packed_spreads is not None:
            spreads.frombytes(self._packed_spreads.read())
        return spreads

    def _pack_spreads(self, spreads: array[float]) -> None:
        self._packed_spreads = parcel_of(self._archive, spreads[-SPREADS_KEPT:].tobytes())

    def _keep(self, key: WindowKey, verdict: Verdict, spreads: array[float]) -> array[float]:
        """Keep what a settled window tells; gives the spreads of its attempt, its own among them."""
        attempt, window = key
        if attempt != self._settled_through[0]:
            spreads = array("d")
        self._settled_through = key
        if verdict.spread is not None:
            spreads.append(verdict.spread)
        for rank, slowness in verdict.slow.items():
            known = self._slow.get((attempt, rank))
            if known is None:
                known = self._slow[attempt, rank] = SlowWindows(array("q"), array("d"), bytearray())
            known.windows.append(window)
            known.ratios.append(slowness.ratio)
            known.waits.append(slowness.cause == "data_wait")
            self._slow_count += 1
        return spreads

    def _drop_slow(self) -> None:
        """Let go of the older half of what is longest."""
        key = max(self._slow, key=lambda each: (len(self._slow[each].windows), each))
        half = (len(self._slow[key].windows) + 1) // 2
        for column in self._slow[key]:
            del column[:half]
        self._slow_count -= half
        if not self._slow[key].windows:
            del self._slow[key]


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
