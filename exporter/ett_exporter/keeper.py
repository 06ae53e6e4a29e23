"""What an exporter does beside answering.

It folds its jobs after the start, saves snapshots of them, writes the rows of those that ended,
puts their segments together, deletes what is older than the retention, and follows other replicas.

One thread for each, from `start` to `stop`. What fails is logged once, tried again, and logged
again when it works.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ett_exporter.errors import StoreError
from ett_exporter.service import Service

FOLLOW_EVERY_S = 0.2
AGAIN_S = 1.0
CLEAN_EVERY_S = 60.0
UNSAVED_EVENTS = 200_000
"""Events of all jobs that no snapshot holds: what is folded again after a crash takes seconds."""
LAST_SNAPSHOTS_S = 15.0
MERGE_FOR_S = 10.0
"""Of each `CLEAN_EVERY_S`: what is due beside it does not wait for longer."""

_log = logging.getLogger("ett_exporter.keeper")


class Repeated:
    """Calls `work` in a thread, `every_s` seconds apart; without a pause while it returns True."""

    def __init__(self, name: str, work: Callable[[], bool], every_s: float) -> None:
        self._name = name
        self._work = work
        self._every_s = every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ett-{name}", daemon=True)
        self._fails = False

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the call that is on."""
        self._stopped.set()
        self._thread.join()

    def goes_on(self) -> bool:
        """Whether nobody asked it to stop, for work that takes long."""
        return not self._stopped.is_set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            if not self._try():
                self._stopped.wait(self._every_s)

    def _try(self) -> bool:
        try:
            has_more = self._work()
        except StoreError as error:
            self._note_failure(str(error))
            return False
        except Exception:  # noqa: BLE001 - the thread lives as long as the exporter
            _log.exception("%s failed; it is tried again", self._name)
            return False
        if self._fails:
            self._fails = False
            _log.warning("%s works again", self._name)
        return has_more

    def _note_failure(self, said: str) -> None:
        if not self._fails:
            self._fails = True
            _log.warning("%s waits: %s", self._name, said)


class Keeper:
    """The threads beside the servers of one service."""

    def __init__(self, service: Service, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._monotonic = monotonic
        self._cleaned_s = -CLEAN_EVERY_S
        self._threads = [Repeated("keeper", self._keep, AGAIN_S)]
        if service.store.shard is not None:
            self._threads.append(Repeated("follower", service.jobs.follow, FOLLOW_EVERY_S))

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
            upkeep.close_jobs(clock(), go_on)
            upkeep.prune(clock(), go_on)
            until_s = self._monotonic() + MERGE_FOR_S
            upkeep.merge_segments(clock(), lambda: go_on() and self._monotonic() < until_s)
        return False
