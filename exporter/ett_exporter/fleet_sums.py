"""What many jobs add up to over windows of time, by kind of job: kept up to date job by job.

    job     seconds in the window     kind          sum in nanoseconds
    a       training 3.0, stalled 1.0 (c1, ads, ..) training 5e9, stalled 1e9
    b       training 2.0              (c1, ads, ..)

What a job contributed before is taken away when it contributes something else. Amounts are whole
nanoseconds, so that the sums are exactly those of the jobs, whatever came and went. The number of
accelerators belongs to the kind: the held time of a kind is its time times that number. Held by
one thread at a time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from ett_core.accounting import JobAccount
from ett_core.accounting.account import nanoseconds
from ett_core.components import RECOVER_QUEUE
from ett_exporter.views import JobView

T = TypeVar("T", float, tuple[float, float])


class Kind(NamedTuple):
    """What jobs are grouped, chosen and weighted by; jobs of one kind share their sums."""

    cluster: str
    team: str
    model: str
    scheduler: str
    accelerator_type: str
    state: str
    accelerators: int
    purpose: str


class Part(msgspec.Struct, frozen=True):
    """What one job contributes; moments in Unix seconds, durations in seconds."""

    kind: Kind
    windows: Mapping[str, Mapping[str, float]]
    """Amounts by component, by window: seconds, or what its sums take for nanoseconds."""
    starts: Sequence[tuple[float, float]]
    """When it began to train, and how long that took."""
    failed_at: Sequence[float]
    recoveries: Sequence[tuple[float, float]]
    """When it trained again after a failure, and how long that took."""


def kind_of(view: JobView, *, of_all_states: bool = False) -> Kind:
    """The kind of a job; with `of_all_states` jobs share it whatever state they are in."""
    label = view.label
    return Kind(
        label("cluster"),
        label("team"),
        label("model"),
        label("scheduler"),
        view.details.accelerator_type,
        "" if of_all_states else view.account.state,
        view.accelerator_weight,
        view.purpose,
    )


def part_of(view: JobView) -> Part:
    """What a job contributes, with its trailing windows."""
    account = view.account
    return Part(
        kind=kind_of(view),
        windows=view.windows,
        starts=starts_of(account),
        failed_at=[f.time for f in account.failures],
        recoveries=[(f.time + f.ttr_s, f.ttr_s) for f in account.failures if f.ttr_s is not None],
    )


def starts_of(account: JobAccount) -> Sequence[tuple[float, float]]:
    """When a job began to train, and how long that took; nothing where it has not yet."""
    return () if account.tts_s is None else ((account.start + account.tts_s, account.tts_s),)


class Total:
    """The jobs of one kind together."""

    __slots__ = ("_changes", "_in_ns", "_parts", "_windows", "failed_at", "recoveries", "starts")

    def __init__(self, in_ns: Callable[[float], int], changes: Counter[str]) -> None:
        self._in_ns = in_ns
        self._changes = changes
        self._parts = 0
        self._windows: dict[str, tuple[list[int], dict[str, int]]] = {}
        self.starts: list[tuple[float, float]] = []
        self.failed_at: list[float] = []
        self.recoveries: list[tuple[float, float]] = []
        """All three in order of time."""

    def jobs(self, window: str) -> int:
        """Jobs with time in a window."""
        return self._windows[window][0][0] if window in self._windows else 0

    def amounts_ns(self, window: str) -> Mapping[str, int]:
        """Nanoseconds by component in a window; none is zero."""
        return self._windows[window][1] if window in self._windows else {}

    @property
    def is_empty(self) -> bool:
        """No job is of this kind."""
        return not self._parts

    def change(self, before: Part | None, now: Part | None) -> None:
        """A job that contributed `before` contributes `now`; None where it is not there."""
        self._parts += (now is not None) - (before is not None)
        old, new = before or _NOTHING, now or _NOTHING
        for window in {**old.windows, **new.windows}:
            self.move(window, old.windows.get(window, {}), new.windows.get(window, {}))
        _exchange(self.starts, old.starts, new.starts)
        _exchange(self.failed_at, old.failed_at, new.failed_at)
        _exchange(self.recoveries, old.recoveries, new.recoveries)

    def move(self, window: str, old: Mapping[str, float], new: Mapping[str, float]) -> None:
        """A job that had some time in a window has other time there."""
        if old == new:
            return
        self._changes[window] += 1
        jobs, amounts = self._windows.setdefault(window, ([0], {}))
        jobs[0] += bool(new) - bool(old)
        in_ns = self._in_ns
        for component, amount in new.items():
            before = old.get(component, 0)
            if amount != before:
                _add(amounts, component, in_ns(amount) - in_ns(before))
        for component in old.keys() - new.keys():
            _add(amounts, component, -in_ns(old[component]))


_NOTHING = Part(Kind("", "", "", "", "", "", 0, ""), {}, (), (), ())


class Sums:
    """The totals of all kinds."""

    def __init__(self, in_ns: Callable[[float], int] = nanoseconds) -> None:
        """`in_ns` makes nanoseconds of the amounts of parts."""
        self._in_ns = in_ns
        self.changes: Counter[str] = Counter()
        """How often the time of any job in each window was exchanged for other time."""
        self._totals: dict[Kind, Total] = {}

    def change(self, before: Part | None, now: Part | None) -> None:
        """A job that contributed `before` contributes `now`; None where it is not there."""
        if before is not None and now is not None and before.kind == now.kind:
            self._totals[now.kind].change(before, now)
            return
        if before is not None:
            total = self._totals[before.kind]
            total.change(before, None)
            if total.is_empty:
                del self._totals[before.kind]
        if now is not None:
            if now.kind not in self._totals:
                self._totals[now.kind] = Total(self._in_ns, self.changes)
            self._totals[now.kind].change(None, now)

    def move(self, kind: Kind, window: str, old: Mapping[str, float], new: Mapping[str, float]) -> None:
        """A job of a kind, which is there, has other time in a window."""
        self._totals[kind].move(window, old, new)

    def totals(self) -> Iterable[tuple[Kind, Total]]:
        """All kinds of jobs, and their totals."""
        return self._totals.items()

    def of_window(self, window: str) -> Iterator[tuple[Kind, Total]]:
        """The kinds of which a job has time in a window, and their totals."""
        return ((kind, total) for kind, total in self._totals.items() if total.jobs(window))


def held_ns(kind: Kind, amounts_ns: Mapping[str, int]) -> dict[str, int]:
    """Held accelerator time of a kind: queueing after a failure holds nothing."""
    weight = kind.accelerators
    return {name: weight * amount for name, amount in amounts_ns.items() if name != RECOVER_QUEUE}


def _add(amounts: dict[str, int], component: str, more: int) -> None:
    total = amounts.get(component, 0) + more
    if total:
        amounts[component] = total
    else:
        amounts.pop(component, None)


def _exchange(ordered: list[T], old: Sequence[T], new: Sequence[T]) -> None:
    """Take `old` out of a list in order, and put `new` in."""
    if old == new:
        return
    for each in old:
        del ordered[bisect_left(ordered, each)]
    for each in new:
        insort(ordered, each)
