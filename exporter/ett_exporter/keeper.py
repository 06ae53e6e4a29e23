"""What an exporter does beside answering.

It folds its jobs after the start, saves snapshots of them, writes the rows of those that ended,
puts their segments together, deletes what is older than the retention, keeps others away from the
database, and follows other replicas.

One thread for each, from `start` to `stop`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from ett_exporter.elsewhere import Elsewhere
from ett_exporter.errors import StoreError
from ett_exporter.repeated import Repeated
from ett_exporter.service import Service

FOLLOW_EVERY_S = 0.2
HOLD_EVERY_S = 5.0
EXCHANGE_EVERY_S = 5.0
AGAIN_S = 1.0
LAG_EVERY_S = 10.0
LAG_S = 20.0
"""What others took in is seen within a second, where no transaction of the server stays open for long."""
CLEAN_EVERY_S = 60.0
UNSAVED_EVENTS = 200_000
"""Events of all jobs that no snapshot holds: what is folded again after a crash takes seconds."""
LAST_SNAPSHOTS_S = 15.0
CLEAN_FOR_S = 10.0
"""Of each `CLEAN_EVERY_S`, for jobs to be closed and again for segments to be put together: snapshots do not
wait for longer."""

_log = logging.getLogger("ett_exporter.keeper")


class Keeper:
    """The threads beside the servers of one service."""

    def __init__(self, service: Service, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._monotonic = monotonic
        self._cleaned_s = -CLEAN_EVERY_S
        self._lags = False
        self._threads = [
            Repeated("keeper", self._keep, AGAIN_S),
            Repeated("owner", service.store.transactions.hold, HOLD_EVERY_S),
        ]
        if service.elsewhere is not None:
            exchange = partial(_exchange, service, service.elsewhere)
            self._threads.append(Repeated("follower", service.jobs.follow, FOLLOW_EVERY_S))
            self._threads.append(Repeated("lag", self._watch_lag, LAG_EVERY_S))
            self._threads.append(Repeated("elsewhere", exchange, EXCHANGE_EVERY_S))

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, with a snapshot of what changed, so that the next start is quick."""
        for thread in self._threads:
            thread.stop()
        until_s = self._monotonic() + LAST_SNAPSHOTS_S
        try:
            self._service.upkeep.save_snapshots(0, lambda: self._monotonic() < until_s)
        except StoreError as error:
            _log.warning("no snapshots at the end: %s", error)

    def _keep(self) -> bool:
        upkeep, clock, go_on = self._service.upkeep, self._service.clock, self._threads[0].goes_on
        if not upkeep.is_ready:
            upkeep.build(go_on)
        upkeep.save_snapshots(UNSAVED_EVENTS, go_on)
        if self._monotonic() - self._cleaned_s >= CLEAN_EVERY_S:
            self._cleaned_s = self._monotonic()
            upkeep.close_jobs(clock(), self._for_a_while())
            upkeep.prune(clock(), go_on)
            upkeep.merge_segments(clock(), self._for_a_while())
        return False

    def _watch_lag(self) -> None:
        """Tell the log where another transaction keeps replicas from seeing what the others take in."""
        since, now = self._service.store.unseen_since(), self._service.clock()
        lag_s = 0.0 if since is None else now - since
        if (lag_s > LAG_S) == self._lags:
            return
        self._lags = not self._lags
        if self._lags:
            _log.warning(
                "what replicas took in for each other in the last %.0f s is not seen: a transaction is open"
                " on the PostgreSQL server, of any of its clients (pg_stat_activity, pg_prepared_xacts)",
                lag_s,
            )
        else:
            _log.warning("what replicas take in for each other is seen again")

    def _for_a_while(self) -> Callable[[], bool]:
        until_s = self._monotonic() + CLEAN_FOR_S
        return lambda: self._threads[0].goes_on() and self._monotonic() < until_s


def _exchange(service: Service, elsewhere: Elsewhere) -> None:
    elsewhere.exchange(len(service.roster))
