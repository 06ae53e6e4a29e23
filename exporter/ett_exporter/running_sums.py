"""Sums of jobs between moments that go on from question to question: only a job that changed is put in anew.

Of a job that trains, what stands (`Kept`) is neither unpacked nor added up again; only the part that goes on
is exchanged. Views are referred to weakly: sums that nobody asks for any more keep none of them.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar
from weakref import ref

import msgspec
from msgspec.structs import replace

from ett_core.accounting import AttemptAccount, FailureAccount, JobAccount
from ett_core.accounting.account import in_nanoseconds
from ett_exporter.cuts import Table
from ett_exporter.fleet_sums import Kind, Part, Sums, kind_of, part_of, starts_of
from ett_exporter.recent import Recent
from ett_exporter.views import JobView

WHOLE = "whole"
"""The name of all parts together among the windows of the sums; that of a part is its number."""

MOST_MADE = 1024
"""Of windows, what was made of them last: some 2 kB each, of groups one as much."""
T = TypeVar("T")

Nanoseconds: TypeAlias = Mapping[str, int]
"""By component."""


class Kept(msgspec.Struct, frozen=True):
    """What stands of a live job."""

    edges: tuple[float, ...]
    told: int
    signs: int
    serial: int
    as_of: float
    parts: Table
    """Up to the edge before which all was told, and behind them all that the job had before that edge."""

    def parts_from(self, edge: float) -> list[Nanoseconds]:
        """The parts that stand from an edge on."""
        return [*self.parts.rows(self.edges.index(edge))[:-1]]

    def parts_after(self, edge: float) -> int:
        """How many parts stand from an edge on."""
        return self.told - self.edges.index(edge)

    def begins_like(self, edges: tuple[float, ...]) -> bool:
        """Whether the parts that stand are those between such edges, as far as they had begun."""
        if edges is self.edges:
            return True
        if edges[0] not in self.edges[: self.told + 1]:
            return False
        same = self.edges[self.edges.index(edges[0]) : self.told + 1]
        return same == edges[: len(same)]

    def goes_on(self, account: JobAccount) -> Nanoseconds | None:
        """What the job has after those parts, as of a later account; None where that cannot be."""
        (before,) = self.parts.rows(self.told)
        now = in_nanoseconds(account.components)
        left = {name: amount - before.get(name, 0) for name, amount in now.items()}
        if not before.keys() <= now.keys() or min(left.values(), default=0) < 0:
            return None
        return {name: amount for name, amount in left.items() if amount}


class Spread(NamedTuple):
    """The time of a job in each part: `first` of them stand, the `later` ones may change."""

    kept: Kept | None
    first: int
    later: Sequence[Nanoseconds]

    def parts(self, begin: float) -> list[Nanoseconds]:
        """All of them, from the first edge, `begin`, on."""
        return [*(() if self.kept is None else self.kept.parts_from(begin)), *self.later]


NOTHING = Spread(None, 0, ())


class _Entry(NamedTuple):
    """What a job has put in; `about` is all but its time."""

    view: ref[JobView]
    of_the_past: Sequence[AttemptAccount] | None
    """The attempts of a job that is over: while they are the same ones, so is all that it has put in."""
    about: Part
    failures: Sequence[FailureAccount]
    spread: Spread
    whole: Nanoseconds


class RunningSums:
    """The sums of jobs between `edges`; `lock` is held by whoever changes or reads them."""

    def __init__(self, edges: tuple[float, ...], *, by_state: bool = True) -> None:
        """Without `by_state` jobs are of one kind whatever state they are in."""
        self.edges = edges
        self.lock = threading.Lock()
        self.sums = Sums(in_ns=int)
        self._of_all_states = not by_state
        self._entries: dict[str, _Entry] = {}
        self._made: Recent[tuple[str, Hashable], tuple[int, Any]] = Recent(MOST_MADE)

    def knows(self, job_id: str) -> bool:
        """Whether a job is in the sums."""
        return job_id in self._entries

    def is_new(self, view: JobView) -> bool:
        """Whether a view says anything that the one that was put in last of its job did not."""
        entry, account = self._entries.get(view.account.job_id), view.account
        if entry is None:
            return True
        return entry.view() is not view and not (account.finished and entry.of_the_past is account.attempts)

    def put(self, view: JobView, spread: Spread) -> None:
        """Let a job have this time in the place of what it had."""
        account = view.account
        old = self._entries.get(account.job_id)
        about = self._about(view, old)
        alike = old if old is not None and old.about is about and _is_alike(old.spread, spread) else None
        whole = added_up(spread.parts(self.edges[0])) if alike is None else self._exchange(alike, spread)
        of_the_past = (account.attempts or None) if account.finished else None
        new = _Entry(ref(view), of_the_past, about, account.failures, spread, whole)
        if alike is None:
            self._change(old, new)
        self._entries[account.job_id] = new

    def _exchange(self, old: _Entry, spread: Spread) -> Nanoseconds:
        """Let a job have other time in the parts that may change; gives what it has in all of them."""
        kind, whole = old.about.kind, dict(old.whole)
        for place, (was, now) in enumerate(zip(old.spread.later, spread.later, strict=True), spread.first):
            if was != now:
                self.sums.move(kind, str(place), was, now)
                exchange(whole, was, now)
        self.sums.move(kind, WHOLE, old.whole, whole)
        return whole

    def made_of(self, window: str, what: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes of a window; the same as before where nothing has changed there since.

        Most parts are over: all that their jobs had there, and what came about there, stays as it is.
        """
        changes = self.sums.changes[window]
        known = self._made.get((window, what))
        if known is None or known[0] != changes:
            known = (changes, make())
            self._made.put((window, what), known)
        made: T = known[1]
        return made

    def drop(self, job_id: str) -> None:
        """Take out a job, if it is there."""
        if job_id in self._entries:
            self._change(self._entries.pop(job_id), None)

    def keep_only(self, job_ids: Collection[str]) -> None:
        """Take out the jobs that are not among these."""
        for job_id in self._entries.keys() - job_ids:
            self.drop(job_id)

    def _change(self, old: _Entry | None, new: _Entry | None) -> None:
        """A job that had put in one thing puts in another; None where it is not there."""
        self.sums.change(None if old is None else self._part(old), None if new is None else self._part(new))
        before, now = Counter(_moments(old)), Counter(_moments(new))
        for _, moment, _ in (before - now) + (now - before):
            self.sums.changes[str(bisect_right(self.edges, moment) - 1)] += 1
            self.sums.changes[WHOLE] += 1

    def _about(self, view: JobView, old: _Entry | None) -> Part:
        """What a view says beside its time: the same object as before where that is unchanged."""
        account, kind = view.account, kind_of(view, of_all_states=self._of_all_states)
        if (
            old is not None
            and old.about.kind == kind
            and old.about.starts == starts_of(account)
            and old.failures == account.failures
        ):
            return old.about
        return replace(part_of(view), kind=kind, windows={})

    def _part(self, entry: _Entry) -> Part:
        """What a job contributes."""
        parts = enumerate(entry.spread.parts(self.edges[0]))
        windows = {str(place): part for place, part in parts if part}
        return replace(entry.about, windows={**windows, WHOLE: entry.whole})


def _moments(entry: _Entry | None) -> Iterator[tuple[Kind, float, float]]:
    """When something came about that answers count, and how long it took."""
    if entry is not None:
        about = entry.about
        for moment, took_s in (*about.starts, *about.recoveries, *((at, -1.0) for at in about.failed_at)):
            yield about.kind, moment, took_s


def _is_alike(old: Spread, new: Spread) -> bool:
    """Whether the same parts stand, so that only those may be others that may change."""
    return old.kept is new.kept and len(old.later) == len(new.later)


def exchange(amounts: dict[str, int], old: Nanoseconds, new: Nanoseconds) -> None:
    """Take some time out of amounts, and put other time in.

    >>> amounts = {"training": 30, "stalled": 1}
    >>> exchange(amounts, {"stalled": 1}, {"training": 5}); amounts
    {'training': 35}
    """
    for name in old.keys() | new.keys():
        total = amounts.get(name, 0) + new.get(name, 0) - old.get(name, 0)
        if total:
            amounts[name] = total
        else:
            amounts.pop(name, None)


def added_up(parts: Iterable[Nanoseconds]) -> Nanoseconds:
    """The time of some parts together.

    >>> added_up([{"training": 1}, {"training": 2, "stalled": 10}])
    {'training': 3, 'stalled': 10}
    """
    totals: dict[str, int] = {}
    for part in parts:
        for component, amount in part.items():
            totals[component] = totals.get(component, 0) + amount
    return totals
