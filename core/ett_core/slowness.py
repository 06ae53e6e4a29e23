"""Which ranks stick out of one window by their step times: pure functions of the paces of all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from ett_core.paces import Pace

SPREAD_OF_NORMAL = 1.4826
"""Standard deviations in a median absolute deviation of a normal distribution."""
RANKS_FOR_A_SPREAD = 4
"""With fewer ranks nobody can tell what is usual among them."""
RANKS_IN_A_VERDICT = 100


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


class Slowness(NamedTuple):
    """How a rank was slower than the others in a window; `cause` is `step` or `data_wait`."""

    ratio: float
    cause: str


class Verdict(NamedTuple):
    """What one window tells: its slow ranks, and how far all ranks lie apart (None for a single one)."""

    slow: Mapping[int, Slowness]
    spread: float | None


NOBODY = Verdict({}, None)


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
