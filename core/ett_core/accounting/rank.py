"""What one rank of one attempt has told so far about its way into the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ett_core.accounting.phases import MAIN, Phase, PhaseLog, PhaseLogMark, PhaseLogState


class RankMark(NamedTuple):
    """A point in a `Rank` to come back to."""

    first_batch_ns: int | None
    first_batch_step: int | None
    first_report_ns: int | None
    starting: PhaseLogMark
    since_report: tuple[PhaseLog, PhaseLogMark] | None


class RankState(NamedTuple):
    """A `Rank` as a value."""

    first_batch_ns: int | None
    first_batch_step: int | None
    first_report_ns: int | None
    starting: PhaseLogState
    since_report: PhaseLogState | None


class Rank:
    """A rank: its phases up to its first report, then those since its last one."""

    __slots__ = (
        "_mark",
        "first_batch_ns",
        "first_batch_step",
        "first_report_ns",
        "since_report",
        "starting",
    )

    def __init__(self) -> None:
        self.first_batch_ns: int | None = None
        self.first_batch_step: int | None = None
        self.first_report_ns: int | None = None
        self.starting = PhaseLog()
        self.since_report: PhaseLog | None = None
        self._mark: RankMark | None = None
        """The latest mark, None once something changed after it."""

    def first_batch(self, at_ns: int, step: int | None) -> None:
        """The first batch of this rank; what comes later under that name is not the first."""
        self._mark = None
        if self.first_batch_ns is None:
            self.first_batch_ns = at_ns
            self.first_batch_step = step

    def begin_phase(self, at_ns: int, phase: str, track: str) -> None:
        """A phase begins; off the main track it matters only before the first report."""
        self._mark = None
        if self.since_report is None:
            self.starting.begin(at_ns, phase, track)
        elif track == MAIN:
            self.since_report.begin(at_ns, phase, track)

    def end_phase(self, at_ns: int, phase: str, track: str) -> list[Phase]:
        """A phase ends; gives back those that end and had begun before the last report."""
        self._mark = None
        if self.since_report is None:
            return self.starting.end(at_ns, phase, track)
        reached_back = self.since_report.end(at_ns, phase, track) if track == MAIN else []
        if at_ns == self.first_report_ns:
            self.starting.closed.extend(p for p in reached_back if p.order < self.starting.opened)
        return reached_back

    def reported(self, at_ns: int) -> None:
        """A report closes every phase that this rank had begun, unless its end comes later."""
        if self.since_report is None:
            self._mark = None
            self.first_report_ns = at_ns
            self.since_report = PhaseLog(self.starting)
        elif not self.since_report.is_empty():
            self._mark = None
            self.since_report = PhaseLog(self.since_report)

    def claimed(self, phases: Sequence[Phase]) -> None:
        """Phases that reports had closed have ended in the loop, and own their time after all."""
        assert self.since_report is not None  # noqa: S101 - who reported
        self._mark = None
        self.since_report.closed.extend(phases)

    def loop_phases(self) -> Sequence[Phase]:
        """Phases since the last report, or all of them where there was none."""
        log = self.starting if self.since_report is None else self.since_report
        return () if log.is_empty() else [*log.closed, *log.open()]

    def begun_ns(self) -> int | None:
        """When this rank had begun to train: its first batch, or its first step compiled.

        None without a first batch and while it still compiles in its first step.
        """
        if self.first_batch_ns is None:
            return None
        begun = self.first_batch_ns
        for phase in (*self.starting.closed, *self.starting.open(MAIN)):
            if phase.phase != "compile" or phase.track != MAIN or phase.begin_ns < self.first_batch_ns:
                continue
            end = phase.end_ns if phase.end_ns is not None else self.first_report_ns
            if end is None:
                return None
            begun = max(begun, end)
        return begun

    def mark(self) -> RankMark:
        """What `restore` needs to come back to this point."""
        if self._mark is None:
            later = None if self.since_report is None else (self.since_report, self.since_report.mark())
            starting = self.starting.mark()
            self._mark = RankMark(
                self.first_batch_ns, self.first_batch_step, self.first_report_ns, starting, later
            )
        return self._mark

    def restore(self, mark: RankMark) -> None:
        """Forget everything after `mark`."""
        if mark is self._mark:
            return
        self._mark = mark
        self.first_batch_ns = mark.first_batch_ns
        self.first_batch_step = mark.first_batch_step
        self.first_report_ns = mark.first_report_ns
        self.starting.restore(mark.starting)
        self.since_report = None
        if mark.since_report is not None:
            self.since_report, later = mark.since_report
            self.since_report.restore(later)

    def state(self) -> RankState:
        """The rank as a value."""
        later = None if self.since_report is None else self.since_report.state()
        return RankState(
            self.first_batch_ns, self.first_batch_step, self.first_report_ns, self.starting.state(), later
        )

    @classmethod
    def of_state(cls, state: RankState) -> Rank:
        """The rank that gave `state`."""
        rank = cls()
        rank.first_batch_ns, rank.first_batch_step = state.first_batch_ns, state.first_batch_step
        rank.first_report_ns = state.first_report_ns
        rank.starting = PhaseLog.of_state(state.starting)
        rank.since_report = None if state.since_report is None else PhaseLog.of_state(state.since_report)
        return rank


def begin_unreported(ranks: Mapping[int, Rank]) -> tuple[int | None, int | None]:
    """When the loop began while no rank has reported, and the critical rank.

    Not yet (None) while a rank has no first batch or compiles in its first step; the lowest such
    rank is critical.
    """
    last_ns, critical = None, None
    for number in sorted(ranks):
        begun_ns = ranks[number].begun_ns()
        if begun_ns is None:
            return None, number
        if last_ns is None or begun_ns > last_ns:
            last_ns, critical = begun_ns, number
    return last_ns, critical


def begin_reported(
    ranks: Mapping[int, Rank], leader: int | None, first_report_ns: int
) -> tuple[int, int | None]:
    """When the loop began, at the latest with the leader's first report, and the critical rank."""
    begun = {number: rank.begun_ns() for number, rank in ranks.items() if rank.first_batch_ns is not None}
    if not begun:
        return first_report_ns, leader
    ends = {number: float("inf") if at is None else at for number, at in begun.items()}
    last = max(ends.values())
    critical = min(number for number, end in ends.items() if end == last)
    at_ns = begun[critical]
    return (first_report_ns if at_ns is None else min(at_ns, first_report_ns)), critical
