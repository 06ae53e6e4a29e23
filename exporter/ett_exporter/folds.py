"""The folds of one job, and which of its segments they hold; whoever owns them locks.

They are made of what is durable of the job, its past, when they are first needed: from the last snapshot
and the segments after it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence

from ett_core.accounting import JobAccount, JobFold
from ett_core.archive import IN_MEMORY, Archive
from ett_core.details import JobDetails
from ett_core.events import AnyEvent
from ett_core.fleet.attempts import evidence_of_failures
from ett_core.in_order import Collected
from ett_core.refusals import Refused
from ett_exporter.diagnoses import Diagnoses
from ett_exporter.past import Past
from ett_exporter.places import FIRST, Place, Snapshot
from ett_exporter.snapshots import pack, unpack
from ett_exporter.views import WINDOWS_S, Counts, JobPage, JobView

CALM_S = 60.0
"""So long after something came too late the details are put in order: more of it may be on its way."""
ORDERED_EVENTS = 1_000_000
"""The details of jobs with more events than these are left as they came: others would wait for long."""

_log = logging.getLogger("ett_exporter.folds")


class Folds:
    """The accounting and the details of one job, with the diagnoses of its failures."""

    __slots__ = (
        "_archive",
        "_beyond",
        "_job_id",
        "_late_at",
        "_past",
        "_place",
        "_refused",
        "counts",
        "details",
        "diagnoses",
        "fold",
        "is_built",
        "is_late",
        "unsaved_events",
    )

    def __init__(self, job_id: str, past: Past, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing folded; `archive` keeps what is rarely needed again."""
        self._job_id = job_id
        self._past = past
        self._archive = archive
        self._place = FIRST
        self._beyond: set[int] | None = None
        """Segments that are folded although they lie beyond what was delivered of other replicas, if any."""
        self._refused: Sequence[Refused] = ()
        """Events that count nowhere, of which nobody was told yet."""
        self.unsaved_events = 0
        """Events that were folded since the last snapshot."""
        self.diagnoses = Diagnoses(self._archive)
        self.counts = Counts()
        """What the job has counted by its last view; folds that are made again take nothing back."""
        self.clear()

    def clear(self) -> None:
        """Let go of the folds; `build` makes them again."""
        self.fold = JobFold(self._job_id, history=self._past.events, archive=self._archive)
        self.details = JobDetails(self._archive)
        self.is_built = False
        """Whether everything that came is folded; False also where a commit left doubts."""
        self.is_late = False
        """Whether something came too late for its place in the details, which are yet to be put in order."""
        self._late_at = -math.inf

    def build(self) -> float:
        """Fold everything that is durable; gives when the last segment was received (Unix seconds).

        That is long ago where there is none after the last snapshot.
        """
        delivered = self._past.delivered()
        fold, details, counts, place, done = self._restored()
        beyond: set[int] = set()
        unsaved, received_at = 0, -math.inf
        for stored in self._past.after(place):
            if stored.place.segment_id not in done:
                _take(fold, details, stored.events)
                unsaved += len(stored.events)
            place = max(place, stored.place)
            if delivered is not None and stored.place > delivered:
                beyond.add(stored.place.segment_id)
            received_at = max(received_at, stored.received_at)
        self.fold, self.details, self._place, self._beyond = fold, details, place, beyond or None
        self.counts = self.counts.or_more(counts)
        self.diagnoses = Diagnoses(self._archive)
        self.unsaved_events = unsaved
        self.is_built = True
        self.is_late, self._late_at = details.late > 0, received_at
        self.note_refused()
        return received_at

    def _restored(self) -> tuple[JobFold, JobDetails, Counts, Place, Collection[int]]:
        """The folds of the last snapshot; empty ones where there is none that can be read."""
        known = self._past.snapshot()
        if known is not None:
            is_cut = self._past.is_cut(known)
            try:
                folds = unpack(known.blob, self._past.events, self._archive, is_cut=is_cut)
            except ValueError as error:
                _log.warning("job %s is folded anew: %s", self._job_id, error)
            else:
                return *folds, known.place, known.beyond
        fold = JobFold(self._job_id, history=self._past.events, archive=self._archive)
        return fold, JobDetails(self._archive), Counts(), FIRST, ()

    def add(self, place: Place, events: Sequence[AnyEvent], received_at: float) -> None:
        """Fold the events of a segment, which was received at a moment (Unix seconds)."""
        late = self.details.late
        _take(self.fold, self.details, events)
        if self.details.late > late:
            self.is_late, self._late_at = True, received_at
        self.note_refused()
        self.unsaved_events += len(events)
        self._place = max(self._place, place)
        if self._past.delivered() is not None:
            self._beyond = self._beyond or set()
            self._beyond.add(place.segment_id)

    def is_beyond(self, place: Place) -> bool:
        """Whether a segment is folded that was not delivered yet."""
        return self._beyond is not None and place.segment_id in self._beyond

    def was_delivered(self, place: Place) -> None:
        """A segment lies no more beyond what was delivered."""
        if self._beyond is not None:
            self._beyond.discard(place.segment_id)

    def correct_details(self, now: float) -> bool:
        """Fold details anew that differ from those of all events in the order of time; whether they changed.

        Where a clock was found to be off, and some time after much came late; not where events are deleted.
        """
        if self.fold.is_cut:
            self.is_late = False
        elif self.details.is_stale:
            self._fold_details_anew()
            return True
        elif self.is_late and abs(now - self._late_at) >= CALM_S:
            is_small = self._past.count() <= ORDERED_EVENTS
            if is_small:
                self._put_details_in_order()
            self.is_late = False
            return is_small
        return False

    def _put_details_in_order(self) -> None:
        collected = Collected()
        collected.add(self._past.events())
        if collected.has_repeats:
            self._fold_details_anew()
        else:
            self.details.put_in_order(collected)

    def _fold_details_anew(self) -> None:
        self.details = JobDetails.of_events(self._past.events(), self._archive)
        self.diagnoses = Diagnoses(self._archive)
        self.is_late = False

    def snapshot(self) -> Snapshot | None:
        """The job as it is, to be kept; None where nothing is folded."""
        if not self.is_built or self._place == FIRST:
            return None
        self.unsaved_events = 0
        delivered = self._past.delivered()
        place = self._place if delivered is None else delivered
        blob = pack(self.fold, self.details, self.counts)
        return Snapshot(self._job_id, place, sorted(self._beyond or ()), blob)

    def note_refused(self) -> None:
        """Tell the log of events that the folds could not take in, and whoever takes events next."""
        refused = [*self.fold.refusals.take(), *self.details.refusals.take()]
        if refused:
            first = next((each for each in refused if each.is_fault), refused[0])
            _log.log(
                logging.ERROR if first.is_fault else logging.WARNING,
                "job %s: %d events count nowhere, the first is number %d of writer %s: %s",
                self._job_id,
                len(refused),
                first.seq,
                first.writer,
                first.reason,
            )
            self._refused = [*self._refused, *refused]

    def take_refused(self) -> Sequence[Refused]:
        """Events that count nowhere, each told once."""
        refused, self._refused = self._refused, ()
        return refused

    def page(self, view: JobView, begin: float | None, end: float | None) -> JobPage:
        """Everything of a page, with the timeline between two moments (Unix seconds; None: all)."""
        account, details = view.account, self.details
        latest = account.attempts[-1].attempt if account.attempts else 0
        return JobPage(
            view=view,
            timeline=self.fold.timeline(account.as_of, begin, end),
            checkpoints=details.checkpoints.latest,
            evidence=dict(enumerate(evidence_of_failures(account, details.evidence))),
            nodes=details.nodes.by_rank,
            stalls=details.evidence.stalls(),
            stragglers=details.stragglers(),
            step_spread=details.rank_paces.step_spread,
            async_saves=details.async_saves.saves,
            heard_at=details.nodes.heard_at(latest),
            paces=details.rank_paces.latest_paces(latest),
            throughput=details.throughput.read(),
            compilations=details.compilations.read(),
            decisions=details.decisions.latest,
        )

    def windows(self, account: JobAccount) -> Mapping[str, Mapping[str, float]]:
        """Seconds by component in the trailing windows."""
        return {name: self._window(account, length_s) for name, length_s in WINDOWS_S.items()}

    def _window(self, account: JobAccount, length_s: float) -> Mapping[str, float]:
        """Seconds by component of one window; the fold is asked only where it cuts the job."""
        begin = account.as_of - length_s
        if begin <= account.start and account.end <= account.as_of:
            return account.components
        if begin >= account.end:
            return {}
        return self.fold.window(begin, account.as_of, account.as_of)


def _take(fold: JobFold, details: JobDetails, events: Sequence[AnyEvent]) -> None:
    """Fold events, each once; of different ones under one key the details hold, later, what counts."""
    repeated = fold.add(events)
    if repeated:
        known = set(map(id, repeated))
        events = [event for event in events if id(event) not in known]
        details.is_stale = True
    details.add(events)
