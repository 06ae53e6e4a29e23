"""Questions about parts of time whose sums go on by themselves, so that whoever asks finds them ready.

    parts of 2 h, at 13:59:10       12:00 -- 14:00 goes on; its sums are kept up
                                    14:00 -- 16:00 begins soon; its sums are made ready

The usual one is followed from the start of the exporter on, others from when they were asked for. Questions
about other moments are held for a while: who asks the same again finds more of it. Every view that is new in
the roster is put in, some at a time, by a thread of its own (`FleetSpans.keep_up`). Pure but for what a
caller hands in; a question of which jobs are still missing says how many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ett_exporter.breath import breathe
from ett_exporter.jobs import alone
from ett_exporter.roster import Roster
from ett_exporter.running_sums import RunningSums
from ett_exporter.spreads import Spreads
from ett_exporter.views import WINDOWS_S, JobView

PUT_AT_ONCE = 32
"""Jobs of which little is new, between pauses."""
LONGEST_S = max(WINDOWS_S.values())
"""Jobs that were over before are in no roster."""
HOUR_S = 3600.0
SHORTEST_PART_S = 60.0
"""As each part begins every job that trains is read."""
LEAD_S = 60.0
"""So long before a part begins the sums with it are made ready."""
GRACE_S = 10.0
"""So long after a part is over one may still ask for it as the one that goes on: clocks differ."""
FOLLOWED_FOR_S = 900.0
"""So long after somebody asked a question its sums go on."""
MOST_FOLLOWED = 3
"""Questions beside the usual one; each takes some 1.5 kB a job."""
HELD_FOR_S = 60.0
"""So long after somebody asked about moments that do not go on their sums are kept up."""
MOST_HELD = 3


class Shape(NamedTuple):
    """Equal parts of a size, so many, the last of which goes on; edges lie `offset_s` off its multiples.

    >>> Shape(10.0, 2, 0.0).edges_at(34.0)
    (20.0, 30.0, 40.0)
    >>> Shape(10.0, 2, 0.0, at_once=2).edges_at(42.0)
    (40.0, 50.0, 60.0)
    """

    size_s: float
    parts: int
    offset_s: float
    by_state: bool = False
    at_once: int = 1
    """So many parts begin at a time: where they are tiny the latest are still to come."""

    def edges_at(self, moment: float) -> tuple[float, ...]:
        """The edges of the parts at a moment (Unix seconds); an edge is the same number at all moments."""
        last = ((moment - self.offset_s) // (self.size_s * self.at_once) + 1) * self.at_once
        return tuple((last - left) * self.size_s + self.offset_s for left in range(self.parts, -1, -1))

    @property
    def lead_s(self) -> float:
        """How long before a part begins its sums are made ready."""
        return min(LEAD_S, self.size_s * self.at_once / 4)


USUAL = Shape(2 * HOUR_S, 12, 0.0)
"""The last day in parts of two hours: what the app asks first."""


def edges_of(begin: float, end: float, parts: int) -> tuple[float, ...]:
    """The edges of so many equal parts between two moments.

    >>> edges_of(0.0, 30.0, 3)
    (0.0, 10.0, 20.0, 30.0)
    """
    return (*(begin + (end - begin) * place / parts for place in range(parts)), end)


def moving(window_s: float, parts: int, *, by_state: bool = False) -> Shape:
    """The shape of a time up to now in parts: their edges are multiples of their size, the last goes on.

    >>> moving(86_400.0, 12) == USUAL
    True
    >>> moving(3600.0, 360)
    Shape(size_s=10.0, parts=360, offset_s=0.0, by_state=False, at_once=6)
    """
    size_s = window_s / parts
    return Shape(size_s, parts, 0.0, by_state, math.ceil(SHORTEST_PART_S / size_s))


def shape_of(edges: Sequence[float], *, by_state: bool = False) -> Shape | None:
    """The shape that parts have; None where they are too small or too long, or begin at any odd moment.

    Who asks for the time up to now asks for other parts each time: nothing of them is worth going on with.

    >>> shape_of((7200.0, 7500.0, 7800.0))
    Shape(size_s=300.0, parts=2, offset_s=0.0, by_state=False, at_once=1)
    >>> shape_of((7201.0, 7501.0)) is None
    True
    """
    parts = len(edges) - 1
    size_s = (edges[-1] - edges[0]) / parts
    if size_s < SHORTEST_PART_S or edges[-1] - edges[0] > LONGEST_S or edges[-1] % min(size_s, HOUR_S):
        return None
    return Shape(size_s, parts, edges[-1] % size_s, by_state)


class SumsOfAll:
    """The sums of all jobs in the roster between `edges`; `running.lock` is held by whoever uses them."""

    def __init__(self, edges: tuple[float, ...], *, by_state: bool = False) -> None:
        self.running = RunningSums(edges, by_state=by_state)
        self.is_ready = False
        """Whether every job was put in once."""
        self._number = 0
        """Of the latest view that came from the roster."""
        self._waiting: dict[str, JobView] = {}
        """Views that are not put in yet, those first that have waited longest."""

    def take(self, roster: Roster, spreads: Spreads, now: float, go_on: Callable[[], bool]) -> bool:
        """Put in what is new in the roster, as long as `go_on` says so; whether that was all.

        Raises:
            StoreError: a job has to be read from the store, and cannot be; it stays among those that wait.
        """
        self._number, views = roster.since(self._number)
        self._waiting |= {view.account.job_id: view for view in views if self.running.is_new(view)}
        count = 0
        while self._waiting:
            if not go_on():
                return False
            job_id, view = next(iter(self._waiting.items()))
            with alone(job_id):
                self._put(view, spreads, now)
            del self._waiting[job_id]
            count += 1
            if count % PUT_AT_ONCE == 0:
                breathe()
        self.is_ready = True
        return True

    def _put(self, view: JobView, spreads: Spreads, now: float) -> None:
        edges = self.running.edges
        if self._is_within(view):
            self.running.put(view, spreads.of_job(view, edges, now))
        else:
            self.running.drop(view.account.job_id)

    def _is_within(self, view: JobView) -> bool:
        return view.account.end >= self.running.edges[0] and view.account.start < self.running.edges[-1]

    def missing(self) -> int:
        """Jobs of this time that wait and were never put in."""
        return sum(
            self._is_within(view) and not self.running.knows(job_id) for job_id, view in self._waiting.items()
        )


_Key: TypeAlias = tuple[tuple[float, ...], bool]
"""Edges, and whether the state of a job counts."""


class Followed:
    """Which questions are followed, and their sums; held by one thread at a time."""

    def __init__(self, usual: Sequence[Shape] = (USUAL,)) -> None:
        self._asked_at = dict.fromkeys(usual, math.inf)
        self._most = len(self._asked_at) + MOST_FOLLOWED
        self._held_at: dict[_Key, float] = {}
        self._sums: dict[_Key, SumsOfAll] = {}

    def going_on(self, shape: Shape, now: float) -> SumsOfAll:
        """The sums of the parts of a shape as they are now; they are followed from now on."""
        self._follow(shape, now)
        return self._of(shape.edges_at(now), by_state=shape.by_state)

    def asked(self, edges: tuple[float, ...], now: float, *, by_state: bool) -> SumsOfAll | None:
        """The sums of a question, kept up from now on; None where it is about jobs that left the roster."""
        shape = shape_of(edges, by_state=by_state)
        if shape is not None and edges in {shape.edges_at(now), shape.edges_at(now + shape.lead_s)}:
            self._follow(shape, now)
            return self._of(edges, by_state=by_state)
        key = (edges, by_state)
        if key in self._sums and edges[-1] <= now < edges[-1] + GRACE_S:
            return self._sums[key]
        if edges[0] < now - LONGEST_S:
            return None
        self._hold(key, now)
        return self._of(edges, by_state=by_state)

    def due(self, now: float) -> list[SumsOfAll]:
        """The sums that are to be kept up, and made ready; those that nobody will ask for go."""
        self._asked_at = {
            shape: asked_at for shape, asked_at in self._asked_at.items() if now - asked_at < FOLLOWED_FOR_S
        }
        wanted = [
            (shape.edges_at(moment), shape.by_state)
            for shape in self._asked_at
            for moment in (now, now + shape.lead_s)
        ]
        self._held_at = {key: at for key, at in self._held_at.items() if now - at < HELD_FOR_S}
        wanted += self._held_at
        self._sums = {
            key: sums
            for key, sums in self._sums.items()
            if key in wanted or key[0][-1] <= now < key[0][-1] + GRACE_S
        }
        return [self._of(edges, by_state=by_state) for edges, by_state in dict.fromkeys(wanted)]

    def _of(self, edges: tuple[float, ...], *, by_state: bool) -> SumsOfAll:
        key = (edges, by_state)
        if key not in self._sums:
            self._sums[key] = SumsOfAll(edges, by_state=by_state)
        return self._sums[key]

    def _follow(self, shape: Shape, now: float) -> None:
        if not self._asked_at.get(shape, 0.0) > now:
            self._asked_at[shape] = now
        if len(self._asked_at) > self._most:
            del self._asked_at[min(self._asked_at, key=lambda each: self._asked_at[each])]

    def _hold(self, key: _Key, now: float) -> None:
        self._held_at.pop(key, None)
        self._held_at[key] = now
        while len(self._held_at) > MOST_HELD:
            del self._held_at[next(iter(self._held_at))]
