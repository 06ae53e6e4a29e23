"""The live state of one job: its two folds behind one lock; what is read of them are values (`views.py`).

Threads add events and read at the same time; a reader copies what it needs under the lock and
works on the copy outside it. What came before is folded when the job is first asked for or told
something, from what its past (the store) holds.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from ett_core.accounting import JobAccount, JobFold
from ett_core.archive import IN_MEMORY, Archive
from ett_core.details import JobDetails
from ett_core.events import AnyEvent
from ett_core.fleet.endings import state_of
from ett_core.refusals import Refused
from ett_exporter.cuts import Cut, Standing, last_told
from ett_exporter.diagnoses import Diagnoses
from ett_exporter.errors import InDoubtError, StoreError
from ett_exporter.places import FIRST, Kept, Place, Snapshot, Stored
from ett_exporter.snapshots import pack, unpack
from ett_exporter.views import WINDOWS_S, Counts, DetailsView, JobPage, JobView, counts_of, details_view

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


class Past(Protocol):
    """What is durable of a job; every method raises `StoreError` where that cannot be read."""

    def events(self) -> Iterable[AnyEvent]:
        """Every event of the job."""

    def snapshot(self) -> Snapshot | None:
        """The last snapshot of the job that this code has made."""

    def after(self, place: Place) -> Iterable[Stored]:
        """The segments of the job beyond a place."""

    def delivered(self) -> Place | None:
        """Up to where everything of other replicas was given to the jobs; None without replicas."""


class LiveJob:
    """One job in memory; safe to use from any thread."""

    def __init__(
        self, job_id: str, last_received_at: float, past: Past, archive: Archive = IN_MEMORY
    ) -> None:
        """Start with nothing folded; `archive` keeps what is rarely needed again."""
        self.job_id = job_id
        self.last_received_at = last_received_at
        self._past = past
        self._archive = archive
        self._lock = threading.Lock()
        self._is_built = False
        self._is_retired = False
        self._is_unloaded = False
        self._place = FIRST
        self.unsaved_events = 0
        """Events that were folded since the last snapshot."""
        self.closed_through: float | None = None
        """`last_received_at` as it was when the rows of the job were written."""
        self.closed_end = math.inf
        """When the job ended, as those rows say (Unix seconds)."""
        self.look_at = 0.0
        """When it is worth asking again whether the job is over (Unix seconds)."""
        self._beyond: set[int] = set()
        """Segments that are folded although they lie beyond what was delivered of other replicas."""
        self._fold = JobFold(job_id, history=past.events, archive=archive)
        self._details = JobDetails(archive)
        self.known_view: JobView | None = None
        """The view that was made last; events may have come since."""
        self._changed = False
        self._refused: list[Refused] = []
        """Events that count nowhere, of which nobody was told yet."""
        self.is_broken = False
        """Whether the last view could not be made."""
        self._details_changed = True
        """Whether events came since the details were last read."""
        self._counts = Counts()
        self._diagnoses = Diagnoses()
        self._standing = Standing()

    def take(self, keep: Callable[[], Kept], received_at: float) -> Taken | None:
        """Make events durable by `keep`, then fold those that are new.

        None, with nothing done, where another object has taken the place of this one.

        Both happen under the lock, so that a fold which reads the history again never meets an
        event there that it is still to be given.
        """
        with self._lock:
            if self._is_retired:
                return None
            self._build()
            try:
                kept = keep()
            except InDoubtError:
                self._is_built = False
                raise
            if kept.place is not None:
                self._add(kept.place, kept.events, received_at)
            refused, self._refused = self._refused, []
            return Taken(len(kept.events), refused)

    def deliver(self, place: Place, read: Callable[[], Stored | None]) -> bool:
        """Fold a segment that some replica has made durable, unless it is folded.

        False, with nothing done, where another object has taken the place of this one.
        """
        with self._lock:
            if self._is_retired:
                return False
            self._build()
            if place.segment_id in self._beyond:
                self._beyond.discard(place.segment_id)
            elif (stored := read()) is not None:
                self._add(place, stored.events, stored.received_at)
                self._beyond.discard(place.segment_id)
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

    def build(self) -> None:
        """Fold what came before, if that was not done yet."""
        with self._lock:
            self._build()

    def _build(self) -> None:
        """Fold everything that is durable, where nothing is folded or a commit left doubts."""
        if self._is_built:
            return
        delivered = self._past.delivered()
        fold, details, place, done = self._restored()
        beyond, unsaved = set(), 0
        for stored in self._past.after(place):
            if stored.place.segment_id not in done:
                fold.add(stored.events)
                details.add(stored.events)
                unsaved += len(stored.events)
            place = max(place, stored.place)
            if delivered is not None and stored.place > delivered:
                beyond.add(stored.place.segment_id)
            self.last_received_at = max(self.last_received_at, stored.received_at)
        self._fold, self._details, self._place, self._beyond = fold, details, place, beyond
        self._diagnoses = Diagnoses()
        self._standing = Standing()
        self._is_built = self._changed = self._details_changed = True
        self._is_unloaded = False
        self.unsaved_events = unsaved
        self._note_refused()

    def _restored(self) -> tuple[JobFold, JobDetails, Place, Collection[int]]:
        """The folds of the last snapshot; empty ones where there is none that can be read."""
        known = self._past.snapshot()
        if known is not None:
            try:
                return *unpack(known.blob, self._past.events, self._archive), known.place, known.beyond
            except ValueError as error:
                _log.warning("job %s is folded anew: %s", self.job_id, error)
        fold = JobFold(self.job_id, history=self._past.events, archive=self._archive)
        return fold, JobDetails(self._archive), FIRST, ()

    def snapshot(self) -> Snapshot | None:
        """The job as it is, to be kept; None where nothing is folded."""
        with self._lock:
            if not self._is_built or self._place == FIRST:
                return None
            self.unsaved_events = 0
            delivered = self._past.delivered()
            place = self._place if delivered is None else delivered
            return Snapshot(self.job_id, place, sorted(self._beyond), pack(self._fold, self._details))

    def _add(self, place: Place, events: Sequence[AnyEvent], received_at: float) -> None:
        self.last_received_at = max(self.last_received_at, received_at)
        self._fold.add(events)
        self._details.add(events)
        self._note_refused()
        self._changed = self._details_changed = True
        self.closed_through = None
        self.unsaved_events += len(events)
        self._place = max(self._place, place)
        if self._past.delivered() is not None:
            self._beyond.add(place.segment_id)

    def _note_refused(self) -> None:
        """Tell the log of events that the folds could not take in, and whoever takes events next."""
        refused = [*self._fold.refusals.take(), *self._details.refusals.take()]
        if refused:
            first = refused[0]
            _log.error(
                "job %s: %d events count nowhere, the first is number %d of writer %s: %s",
                self.job_id,
                len(refused),
                first.seq,
                first.writer,
                first.reason,
            )
            self._refused += refused

    def unload(self, now: float) -> bool:
        """Let go of the folds of a job that is over, while its view says all that is asked of many jobs.

        They are made again from the past once something comes, its page is asked for, or a trailing
        window begins within the job. Returns whether they are gone.
        """
        with self._lock:
            view = self.known_view
            if self._is_built and not self._changed and view is not None and self._can_rest(view, now):
                self._fold = JobFold(self.job_id, history=self._past.events, archive=self._archive)
                self._details = JobDetails(self._archive)
                self._is_built = False
                self._is_unloaded = True
            return not self._is_built

    @staticmethod
    def _can_rest(view: JobView, now: float) -> bool:
        """Whether a job is over and no trailing window begins within it."""
        account = view.account
        if not account.finished or now < account.as_of:
            return False
        return not any(account.start < now - length_s < account.end for length_s in WINDOWS_S.values())

    def _build_or_go_on(self) -> None:
        """As `_build`; where that fails, what was folded before is shown for longer."""
        try:
            self._build()
        except StoreError:
            if self.known_view is None:
                raise
            _log.warning("job %s is shown without what may have come last", self.job_id, exc_info=True)

    def known_as_of(self) -> float:
        """As of when the known view is; long ago where there is none."""
        view = self.known_view
        return -math.inf if view is None else view.account.as_of

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
            if view is None:
                return None
            attempts = view.account.attempts
            latest = attempts[-1].attempt if attempts else 0
            return JobPage(
                view=view,
                timeline=self._fold.timeline(view.account.as_of, begin, end),
                checkpoints=self._details.checkpoints.latest,
                evidence={f.attempt: self._details.evidence.lines(f.attempt) for f in view.account.failures},
                nodes=self._details.nodes.by_rank,
                stalls=self._details.evidence.stalls(),
                stragglers=self._details.stragglers(),
                step_spread=self._details.rank_paces.step_spread,
                async_saves=self._details.async_saves.saves,
                heard_at=self._details.nodes.heard_at(latest),
                paces=self._details.rank_paces.latest_paces(latest),
                throughput=self._details.throughput.read(),
                compilations=self._details.compilations.read(),
                decisions=self._details.decisions.latest,
            )

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
            self._standing.revise(self._fold.take_revised())
            return replace(cut, serial=self._standing.enter(edges[cut.told]))

    def _cut(self, now: float, edges: Sequence[float]) -> Cut | None:
        """As `cut`; as of the view that was made last, where nothing came since."""
        self._build_or_go_on()
        view = self._view(now) if self._changed or self.known_view is None else self.known_view
        if view is None:
            return None
        account = view.account
        inside = [max(min(edge, account.end), account.start) for edge in (*edges, math.inf)]
        *parts, after = self._fold.windows(inside, account.as_of)
        told = last_told(edges, self._fold.told_until(account.as_of))
        self._fold.forget_answers()
        return Cut(account, parts, after, told)

    def stands(self, serial: int) -> bool:
        """Whether what a cut says up to the last edge before which all was told is still so."""
        return self._standing.holds(serial)

    def _view(self, now: float) -> JobView | None:
        """A view that is new, or up to `VIEW_AGE_S` old if nothing came since: readers share it."""
        known = self.known_view
        if self._is_unloaded and known is not None and self._can_rest(known, now):
            if now - known.account.as_of >= VIEW_AGE_S:
                account = replace(known.account, as_of=now)
                self.known_view = known = replace(known, account=account, windows=self._windows(account))
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
        account = self._account(now)
        self._note_refused()
        if account is None:
            return None
        if self._details.is_stale:
            self._details = JobDetails.of_events(self._past.events(), self._archive)
            self._diagnoses = Diagnoses()
        windows = self._windows(account)
        self._fold.forget_answers()
        self._standing.revise(self._fold.take_revised())
        diagnoses = self._diagnoses.of(account.failures, self._details.evidence)
        if (state := state_of(account, diagnoses)) != account.state:
            account = msgspec.structs.replace(account, state=state)
        self._counts = counts_of(account, diagnoses, self._counts)
        causes = self._diagnoses.causes
        return JobView(account, self._details_view(account), windows, diagnoses, causes, self._counts)

    def _details_view(self, account: JobAccount) -> DetailsView:
        """The details; the same value as before, where nothing came since."""
        known = None if self._details_changed else self.known_view
        if known is not None and known.account.finished == account.finished:
            return known.details
        self._details_changed = False
        return details_view(self._details, account)

    def _account(self, now: float) -> JobAccount | None:
        """The account as of `now`; time alone changes nothing of a job that is over."""
        known = None if self.known_view is None else self.known_view.account
        if known is not None and known.finished and not self._details_changed and now >= known.as_of:
            return replace(known, as_of=now)
        return self._fold.account(now)

    def _windows(self, account: JobAccount) -> Mapping[str, Mapping[str, float]]:
        return {name: self._window(account, length_s) for name, length_s in WINDOWS_S.items()}

    def _window(self, account: JobAccount, length_s: float) -> Mapping[str, float]:
        """Seconds by component of the trailing window; the fold is asked only where it cuts the job."""
        begin = account.as_of - length_s
        if begin <= account.start and account.end <= account.as_of:
            return account.components
        if begin >= account.end:
            return {}
        return self._fold.window(begin, account.as_of, account.as_of)
