"""The jobs that are on /metrics: their lines, and how many of them are in which state.

Held by one thread at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ett_exporter.chunks import Chunks
from ett_exporter.job_series import clip, job_samples
from ett_exporter.ledger import Names
from ett_exporter.text import Samples
from ett_exporter.views import JobView


class StateKey(NamedTuple):
    """What jobs are counted by."""

    state: str
    cluster: str
    team: str


class Shown:
    """Jobs by their latest views, in the order in which they came."""

    def __init__(self, most_series: int) -> None:
        """Of more than `most_series` the latest jobs are left out."""
        self._most = most_series
        self._views: dict[str, JobView] = {}
        self._over: set[str] = set()
        self._left_out: set[str] = set()
        self._states: Counter[StateKey] = Counter()
        self.chunks = Chunks()

    def __len__(self) -> int:
        """Jobs, also those that are left out."""
        return len(self._views)

    @property
    def left_out(self) -> int:
        """Jobs whose lines are not there, because of the limit of series."""
        return len(self._left_out)

    def over(self) -> Sequence[JobView]:
        """Jobs that are over, and thus leave some time."""
        return [self._views[job_id] for job_id in self._over]

    def put(self, view: JobView) -> None:
        """Show what a view says."""
        job_id = view.account.job_id
        before = self._views.get(job_id)
        if before is not None:
            self._uncount(before)
        self._states[state_of(view)] += 1
        self._views[job_id] = view
        if view.account.finished:
            self._over.add(job_id)
        else:
            self._over.discard(job_id)
        if job_id not in self._left_out:
            self.chunks.put(job_id, job_samples(view))

    def drop(self, job_id: str) -> None:
        """Show a job no more."""
        view = self._views.pop(job_id, None)
        if view is not None:
            self._uncount(view)
            self._over.discard(job_id)
            if job_id in self._left_out:
                self._left_out.discard(job_id)
            else:
                self.chunks.drop(job_id)

    def fit(self) -> None:
        """Leave out the latest jobs while there are too many series, and show them once there is room."""
        if self.chunks.series <= self._most and not self._left_out:
            return
        room = self._most
        for job_id, view in self._views.items():
            if job_id in self._left_out:
                if not room:
                    continue
                self._left_out.discard(job_id)
                self.chunks.put(job_id, job_samples(view))
            series = self.chunks.series_of(job_id)
            if series > room:
                self.chunks.drop(job_id)
                self._left_out.add(job_id)
                series = room
            room -= series

    def _uncount(self, view: JobView) -> None:
        key = state_of(view)
        self._states[key] -= 1
        if not self._states[key]:
            del self._states[key]

    def states(self, names: Names) -> Samples:
        """How many jobs are in which state; `names` are those that the fleet's series tell apart."""
        told: Counter[StateKey] = Counter()
        for key, count in self._states.items():
            cluster = names.clusters.of(key.cluster)
            told[StateKey(key.state, cluster, names.teams.of(key.team, cluster))] += count
        for state, count in sorted(told.items()):
            yield ("ett_fleet_jobs", state, count)


def state_of(view: JobView) -> StateKey:
    """What a job is counted by."""
    return StateKey(view.account.state, clip(view.label("cluster")), clip(view.label("team")))
