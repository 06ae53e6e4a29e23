"""Jobs that are over, as rows of the store: their answers without their events.

`rows_of` and `page_of` are pure and each other's inverse; JSON in between, so that the rows can be
read with SQL as well. A `ClosedJob` stands in the place of a live one whose rows hold everything:
it lies behind the longest trailing window, so its answer only grows older.
"""

from __future__ import annotations

import logging
import math
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from ett_core.accounting import AttemptAccount, FailureAccount, Stretch
from ett_core.accounting.account import in_seconds, nanoseconds
from ett_core.amounts import plain
from ett_core.checkpoint_log import CheckpointDetail
from ett_core.evidence_log import EvidenceLine
from ett_core.failures import Diagnosis
from ett_core.fleet.endings import cause_words
from ett_exporter.recent import AtHand
from ett_exporter.views import WINDOWS_S, JobPage, JobView

COMPRESSION_LEVEL = 6
LONGEST_WINDOW_S = max(WINDOWS_S.values())

_log = logging.getLogger("ett_exporter.closed")

Row: TypeAlias = dict[str, Any]


class FailureDetail(msgspec.Struct, frozen=True):
    """One failure with why it happened and the lines that say so."""

    failure: FailureAccount
    diagnosis: Diagnosis
    evidence: Sequence[EvidenceLine]


class ClosedRows(msgspec.Struct, frozen=True):
    """The rows of one job, by table; `job` are columns of its row in `jobs`."""

    job: Row
    attempts: Sequence[Row]
    failures: Sequence[Row]
    checkpoints: Sequence[Row]
    timeline: bytes


def rows_of(page: JobPage) -> ClosedRows:
    """The rows of a job whose whole timeline is in `page`."""
    account = page.view.account
    failures = [
        FailureDetail(failure, diagnosis, page.evidence.get(place, ()))
        for place, (failure, diagnosis) in enumerate(zip(account.failures, page.view.diagnoses, strict=True))
    ]
    return ClosedRows(
        job={
            "state": account.state,
            "start_time": account.start,
            "end_time": account.end,
            "wall_s": account.wall_s,
            "detail": _json(_without_rows(page)),
        },
        attempts=[_attempt(each) for each in account.attempts],
        failures=[_failure(each) for each in failures],
        checkpoints=[_checkpoint(each) for each in page.checkpoints],
        timeline=zlib.compress(msgspec.json.encode(page.timeline), COMPRESSION_LEVEL),
    )


def page_of(
    job: str, attempts: Sequence[str], failures: Sequence[str], checkpoints: Sequence[str], timeline: bytes
) -> JobPage:
    """The page that `rows_of` was given, from the `detail` of each row and the timeline.

    Raises:
        ValueError: a row is not of this version.
    """
    page = msgspec.json.decode(job, type=JobPage)
    found = [msgspec.json.decode(each, type=FailureDetail) for each in failures]
    account = replace(
        page.view.account,
        attempts=[msgspec.json.decode(each, type=AttemptAccount) for each in attempts],
        failures=[each.failure for each in found],
    )
    return replace(
        page,
        view=replace(
            page.view,
            account=account,
            diagnoses=[each.diagnosis for each in found],
            causes={
                place: cause_words(each.failure, each.diagnosis, each.evidence)
                for place, each in enumerate(found)
            },
        ),
        evidence={place: each.evidence for place, each in enumerate(found)},
        checkpoints=[msgspec.json.decode(each, type=CheckpointDetail) for each in checkpoints],
        timeline=_stretches(timeline),
    )


def _stretches(timeline: bytes) -> list[Stretch]:
    try:
        return msgspec.json.decode(zlib.decompress(timeline), type=list[Stretch])
    except zlib.error as error:
        raise ValueError(f"the timeline is damaged ({error})") from error


def _without_rows(page: JobPage) -> JobPage:
    account = replace(page.view.account, attempts=(), failures=())
    view = replace(page.view, account=account, diagnoses=(), causes={}, windows={})
    return replace(page, view=view, timeline=(), checkpoints=(), evidence={})


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=plain).decode()


def _attempt(attempt: AttemptAccount) -> Row:
    return {
        "attempt": attempt.attempt,
        "outcome": attempt.outcome,
        "start_time": attempt.start,
        "end_time": attempt.end,
        "detail": _json(attempt),
    }


def _failure(detail: FailureDetail) -> Row:
    return {
        "attempt": detail.failure.attempt,
        "time": detail.failure.time,
        "failure_class": detail.diagnosis.failure_class,
        "domain": detail.diagnosis.domain,
        "detail": _json(detail),
    }


def _checkpoint(checkpoint: CheckpointDetail) -> Row:
    return {
        "attempt": checkpoint.attempt,
        "step": checkpoint.step,
        "time": checkpoint.time,
        "durable_at": checkpoint.durable_at,
        "detail": _json(checkpoint),
    }


def is_settled(end: float, now: float) -> bool:
    """Whether a job that ended at `end` lies behind every trailing window."""
    return end < now - LONGEST_WINDOW_S


def between(timeline: Sequence[Stretch], begin: float | None, end: float | None) -> list[Stretch]:
    """The part of a timeline between two moments (Unix seconds; None: all)."""
    low = -math.inf if begin is None else nanoseconds(begin)
    high = math.inf if end is None else nanoseconds(end)
    inside = [stretch for stretch in timeline if stretch.end_ns > low and stretch.start_ns < high]
    return [s.cut(int(max(low, s.start_ns)), int(min(high, s.end_ns))) for s in inside]


def amounts_of(timeline: Iterable[Stretch]) -> dict[str, float]:
    """Seconds by component of some stretches."""
    totals: dict[str, int] = {}
    for stretch in timeline:
        for component, amount_ns in stretch.shares:
            totals[component] = totals.get(component, 0) + amount_ns
    return in_seconds(totals)


class ClosedJob:
    """A job of which the store holds rows; safe to use from any thread."""

    def __init__(
        self,
        job_id: str,
        last_received_at: float,
        end: float,
        read: Callable[[], JobPage],
        at_hand: AtHand[ClosedJob, JobView],
    ) -> None:
        """Read nothing yet; `read` gives the whole page, `end` is when the job ended (Unix seconds).

        `at_hand` keeps the views of this and other such jobs, as far as there is room.
        """
        self.job_id = job_id
        self.last_received_at = last_received_at
        self.end = end
        self._read = read
        self._at_hand = at_hand
        self._is_told = False
        """Whether the log was told that its rows cannot be read."""
        self._lock = threading.Lock()

    @property
    def is_at_hand(self) -> bool:
        """Whether its view is kept, so that nothing has to be read for it."""
        return self._at_hand.get(self) is not None

    def view(self, now: float) -> JobView | None:
        """The job as of `now`; None where its rows cannot be understood."""
        with self._lock:
            view = self._at_hand.get(self)
            if view is None and (page := self._page()) is not None:
                view = page.view
                self._at_hand.put(self, view)
            return _as_of(view, now) if view else None

    def page(self, now: float, begin: float | None = None, end: float | None = None) -> JobPage | None:
        """The job with its timeline between `begin` and `end` (Unix seconds; None: all); None as `view`."""
        page = self._page()
        if page is None:
            return None
        return replace(page, view=_as_of(page.view, now), timeline=between(page.timeline, begin, end))

    def spans(self, _now: float, edges: Sequence[float]) -> Sequence[Mapping[str, float]]:
        """Seconds by component in each part between moments that follow each other (Unix seconds)."""
        page = self._page()
        if page is None:
            return ()
        return [amounts_of(between(page.timeline, begin, end)) for begin, end in pairwise(edges)]

    def _page(self) -> JobPage | None:
        """The page; one that was not written by this version or the ones before it hides no other job."""
        try:
            return self._read()
        except ValueError as error:
            if not self._is_told:
                self._is_told = True
                _log.warning("the rows of job %s cannot be read: %s", self.job_id, error)
            return None


def _as_of(view: JobView, now: float) -> JobView:
    windows: dict[str, Mapping[str, float]] = {name: {} for name in WINDOWS_S}
    return replace(view, account=replace(view.account, as_of=now), windows=windows)
