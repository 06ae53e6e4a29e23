"""Jobs of other replicas: which of them may have what comes of them here.

A replica keeps what comes of any job, and the owner of the job takes it from the store, whatever the limit
of its jobs in memory. So each tells the others, some seconds apart, how many it holds. In between whoever
takes in a job that is new to it counts it as one more of the owner's; where the owner seems to be full the
store says whether it has the job already. Any thread may call.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from ett_exporter.closed import is_settled
from ett_exporter.jobs import BusyError
from ett_exporter.owners import Shard, place_of
from ett_exporter.recent import Recent
from ett_exporter.store import Store

JOBS_REMEMBERED = 100_000
"""Jobs of others that are known to be in memory there."""


class Elsewhere:
    """The jobs of the other replicas of one database, `most` of which each of them holds."""

    def __init__(self, store: Store, shard: Shard, most: int) -> None:
        self._store = store
        self._shard = shard
        self._most = most
        self._lock = threading.Lock()
        self._held: Mapping[int, int] = {}
        """How many each replica holds, by its place, as it said last."""
        self._new: Counter[int] = Counter()
        """How many came here since."""
        self._known: Recent[str, bool] = Recent(JOBS_REMEMBERED)

    def exchange(self, count: int) -> None:
        """Tell the others how many jobs this replica holds, and learn how many they do."""
        held = self._store.count_live_jobs(count)
        with self._lock:
            self._held, self._new = held, Counter()

    def admit(self, job_id: str, now: float) -> None:
        """Let something come of a job of another replica.

        Raises:
            BusyError: the job is one too many for its owner.
        """
        owner = self._shard.owner_of(job_id)
        place = place_of(owner)
        with self._lock:
            if self._known.get(job_id):
                return
            count = self._held.get(place, 0) + self._new[place]
            if count < self._most:
                self._new[place] += 1
                self._known.put(job_id, True)  # noqa: FBT003 - a set that forgets
                return
        if not self._is_in_memory(job_id, now):
            raise BusyError(
                f"the replica with --shard {owner} holds {count} jobs in memory, which is its limit"
            )
        with self._lock:
            self._known.put(job_id, True)  # noqa: FBT003 - a set that forgets

    def _is_in_memory(self, job_id: str, now: float) -> bool:
        """Whether the owner has the job in memory, as the store tells it."""
        known = self._store.job(job_id)
        if known is None:
            return False
        return not known.is_closed or known.end_time is None or not is_settled(known.end_time, now)
