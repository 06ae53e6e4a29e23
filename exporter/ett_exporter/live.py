"""The live state of one job: its folds behind one lock; what is read of them are values (`views.py`).

Threads add events and read at the same time; a reader copies what it needs under the lock and
works on the copy outside it. What came before is folded when the job is first asked for or told
something, from what its past (the store) holds.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from ett_core.accounting import JobAccount
from ett_core.archive import IN_MEMORY, Archive
from ett_core.events import AnyEvent
from ett_core.fleet.endings import state_of
from ett_core.refusals import Refused
from ett_exporter.cuts import Cut, Standing, last_told
from ett_exporter.errors import InDoubtError, StoreError
from ett_exporter.folds import Folds
from ett_exporter.past import Past
from ett_exporter.places import Kept, Place, Snapshot, Stored
from ett_exporter.views import DetailsView, JobPage, JobView, can_rest, counts_of, details_view

VIEW_AGE_S = 1.0
BUSY_WAIT_S = 0.05
"""Longer than a commit takes on a disk that works."""

_log = logging.getLogger("ett_exporter.live")


class Taken(msgspec.Struct, frozen=True):
    """What became of events: how many were new, and which of the job's new ones count nowhere.

    What an event does to a fold shows at times only when later ones come: those are told then.
    """

    fresh: int
    refused: Sequence[Refused] = ()


def fresh_of(segments: Sequence[Kept]) -> int:
    """How many events were new."""
    return sum(len(kept.events) for kept in segments)


class LiveJob:
    """One job in memory; safe to use from any thread."""

    def __init__(
        self, job_id: str, last_received_at: float, past: Past, archive: Archive = IN_MEMORY
    ) -> None:
        """Start with nothing folded; `archive` keeps what is rarely needed again."""
        self.job_id = job_id
        self.last_received_at = last_received_at
        self._lock = threading.Lock()
        self._folds = Folds(job_id, past, archive)
        self._is_retired = False
        self._is_unloaded = False
        self._is_behind = False
        """Whether it could not be read from the store when it was last asked for."""
        self.closed_through: float | None = None
        """`last_received_at` as it was when the rows of the job were written."""
        self.closed_end = math.inf
        """When the job ended, as those rows say (Unix seconds)."""
        self.looked_at = -math.inf
        """When it was asked last whether the job is over (Unix seconds)."""
        self.known_view: JobView | None = None
        """The view that was made last; events may have come since."""
        self._changed = False
        self.is_broken = False
        """Whether the last view could not be made."""
        self._details_changed = True
        """Whether events came since the details were last read."""
        self._standing = Standing()

    @property
    def unsaved_events(self) -> int:
        """Events that were folded since the last snapshot."""
        return self._folds.unsaved_events

    @property
    def is_stale(self) -> bool:
        """Whether the next view has to fold the job again from its history; a guess while others add."""
        return self._folds.is_built and (self._folds.fold.is_stale or self._folds.is_late)

    @property
    def is_late(self) -> bool:
        """Whether its details are yet to be put in order: something came too late for its place in them."""
        return self._folds.is_late

    def not_saved(self, events: int) -> None:
        """The last snapshot was not kept, which held so many more events than the one before."""
        with self._lock:
            self._folds.unsaved_events += events

    @contextmanager
    def taking(self) -> Iterator[bool]:
        """Hold the job, with everything folded, while something of it is made durable and given to `took`.

        False where another object has taken the place of this one: nothing may be made durable then.
        """
        with self._lock:
            if self._is_retired:
                yield False
                return
            self._build()
            try:
                yield True
            except InDoubtError:
                self._folds.is_built = False
                raise

    def took(self, segments: Sequence[Kept], received_at: float) -> Taken:
        """Fold what is new of segments that are durable; within `taking`."""
        for kept in segments:
            if kept.place is not None:
                self._add(kept.place, kept.events, received_at)
        return Taken(fresh_of(segments), self._folds.take_refused())

    def deliver(self, place: Place, read: Callable[[], Stored | None]) -> bool:
        """Fold a segment that some replica has made durable, unless it is folded.

        False, with nothing done, where another object has taken the place of this one.
        """
        with self._lock:
            if self._is_retired:
                return False
            self._build()
            if not self._folds.is_beyond(place) and (stored := read()) is not None:
                self._add(place, stored.events, stored.received_at)
            self._folds.was_delivered(place)
            return True

    def retire(self, through: float) -> bool:
        """Take in nothing any more; False where the rows lack something that came, also after `through`."""
        with self._lock:
            self._is_retired = self.last_received_at == through == self.closed_through
            return self._is_retired

    def while_closed(self, work: Callable[[], bool]) -> bool:
        """Do `work` while nobody reads what is stored of the job; False where its rows lack something."""
        with self._lock:
            is_closed = not self._is_retired and self.closed_through == self.last_received_at
            return is_closed and work()

    def begin(self) -> None:
        """Nothing of it is durable yet, here or at other replicas: there is nothing to be read."""
        with self._lock:
            self._folds.is_built = True

    def build(self) -> None:
        """Fold what came before, if that was not done yet."""
        with self._lock:
            self._build()

    def _build(self) -> None:
        """Fold everything that is durable, where nothing is folded or a commit left doubts."""
        if self._folds.is_built:
            return
        self.last_received_at = max(self.last_received_at, self._folds.build())
        self._standing = Standing()
        self._changed = self._details_changed = True
        self._is_unloaded = False

    def snapshot(self) -> Snapshot | None:
        """The job as it is, to be kept; None where nothing is folded."""
        with self._lock:
            return self._folds.snapshot()

    def _add(self, place: Place, events: Sequence[AnyEvent], received_at: float) -> None:
        self.last_received_at = max(self.last_received_at, received_at)
        self._folds.add(place, events, received_at)
        self._changed = self._details_changed = True
        self.closed_through = None

    def unload(self, now: float) -> bool:
        """Let go of the folds of a job that is over, while its view says all that is asked of many jobs.

        They are made again from the past once something comes, its page is asked for, or a trailing
        window begins within the job. Returns whether they are gone.
        """
        with self._lock:
            view = self.known_view
            folds = self._folds
            if folds.is_built and not self._changed and view is not None and can_rest(view, now):
                folds.clear()
                self._is_unloaded = True
            return not folds.is_built

    def _build_or_go_on(self) -> None:
        """As `_build`; where that fails, what was folded before is shown for longer."""
        try:
            self._build()
            self._is_behind = False
        except StoreError:
            if self.known_view is None:
                raise
            if not self._is_behind:
                self._is_behind = True
                _log.warning("job %s is shown without what may have come last", self.job_id, exc_info=True)

    def view(self, now: float) -> JobView | None:
        """The job as of `now`; None before its first event."""
        with self._lock:
            return self._view(now)

    def view_at_once(self, now: float) -> JobView | None:
        """As `view`; where the job stays busy, on a locked or slow disk, the view that was made last."""
        if not self._lock.acquire(timeout=-1 if self.known_view is None else BUSY_WAIT_S):
            return self.known_view
        try:
            return self._view(now)
        finally:
            self._lock.release()

    def page(self, now: float, begin: float | None = None, end: float | None = None) -> JobPage | None:
        """The job with its timeline between `begin` and `end` (Unix seconds; None: all)."""
        with self._lock:
            self._build_or_go_on()
            view = self._view(now)
            return None if view is None else self._folds.page(view, begin, end)

    def spans(self, now: float, edges: Sequence[float]) -> Sequence[Mapping[str, float]]:
        """Seconds by component in each part between moments that follow each other (Unix seconds)."""
        with self._lock:
            cut = self._cut(now, edges)
        return () if cut is None else cut.parts

    def cut(self, now: float, edges: Sequence[float]) -> Cut | None:
        """The job between moments that follow each other (Unix seconds); None before its first event."""
        with self._lock:
            cut = self._cut(now, edges)
            if cut is None or cut.told < 0:
                return cut
            self._standing.revise(self._folds.fold.take_revised())
            return replace(cut, serial=self._standing.enter(edges[cut.told]))

    def _cut(self, now: float, edges: Sequence[float]) -> Cut | None:
        """As `cut`; as of the view that was made last, where nothing came since."""
        self._build_or_go_on()
        view = self._view(now) if self._changed or self.known_view is None else self.known_view
        if view is None:
            return None
        account = view.account
        inside = [max(min(edge, account.end), account.start) for edge in (*edges, math.inf)]
        fold = self._folds.fold
        *parts, after = fold.windows(inside, account.as_of)
        told = last_told(edges, fold.told_until(account.as_of))
        fold.forget_answers()
        return Cut(account, parts, after, told)

    def stands(self, serial: int) -> bool:
        """Whether what a cut says up to the last edge before which all was told is still so."""
        return self._standing.holds(serial)

    def _view(self, now: float) -> JobView | None:
        """A view that is new, or up to `VIEW_AGE_S` old if nothing came since: readers share it."""
        known = self.known_view
        if self._is_unloaded and known is not None and can_rest(known, now):
            if now - known.account.as_of >= VIEW_AGE_S:
                account = replace(known.account, as_of=now)
                known = replace(known, account=account, windows=self._folds.windows(account))
                self.known_view = known
            return known
        self._build_or_go_on()
        known = self.known_view
        if known is None or self._changed or not 0 <= now - known.account.as_of < VIEW_AGE_S:
            self._changed = False
            known = self._view_or_older(now)
        return known

    def _view_or_older(self, now: float) -> JobView | None:
        """A new view; where it cannot be made, whatever the reason, the one that was made last."""
        try:
            self.known_view = self._new_view(now)
            self.is_broken = False
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - one job must not take away the answers about all others
            if not self.is_broken:
                _log.exception("job %s cannot be accounted for; it is left as it was", self.job_id)
            self.is_broken = True
        return self.known_view

    def _new_view(self, now: float) -> JobView | None:
        account, folds = self._account(now), self._folds
        folds.note_refused()
        if account is None:
            return None
        self._details_changed = folds.correct_details(now) or self._details_changed
        windows = folds.windows(account)
        folds.fold.forget_answers()
        self._standing.revise(folds.fold.take_revised())
        diagnoses = folds.diagnoses.of(account, folds.details.evidence)
        if (state := state_of(account, diagnoses)) != account.state:
            account = replace(account, state=state)
        details = self._details_view(account)
        folds.counts = counts_of(account, diagnoses, details, folds.counts)
        causes = folds.diagnoses.causes
        return JobView(account, details, windows, diagnoses, causes, folds.counts)

    def _details_view(self, account: JobAccount) -> DetailsView:
        """The details; the same value as before, where nothing came since."""
        known = None if self._details_changed else self.known_view
        if known is not None and known.account.finished == account.finished:
            return known.details
        self._details_changed = False
        return details_view(self._folds.details, account)

    def _account(self, now: float) -> JobAccount | None:
        """The account as of `now`; time alone changes nothing of a job that is over."""
        known = None if self.known_view is None else self.known_view.account
        if known is not None and known.finished and not self._details_changed and now >= known.as_of:
            return replace(known, as_of=now)
        return self._folds.fold.account(now)


def is_silent(last_received_at: float, now: float, for_s: float) -> bool:
    """Whether nothing came of a job for longer than this.

    What came while the clock was ahead, and was set back since, came some time ago as well.
    """
    return abs(now - last_received_at) > for_s
