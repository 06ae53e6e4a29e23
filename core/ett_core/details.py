"""What is known of a job beside where its time went: labels, checkpoints, caches, evidence.

A streaming fold next to the accounting, held by one thread at a time (the caller locks).
Events come in any order; each comes once (the store drops repeats before the fold). Order
changes no number: sums are over what each event says alone, "latest" goes by attempt, time,
writer and sequence number, never by arrival. State is bounded; what a bound drops is said at it. Of
stragglers and the cost of saves it may depend on the order: then `late` says so, and `put_in_order` mends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import asdict

from ett_core.archive import IN_MEMORY, Archive
from ett_core.checkpoint_log import CheckpointLog, CheckpointLogState
from ett_core.clocks import Clocks, canonical, corrected
from ett_core.compile_log import CompileLog, CompileLogState
from ett_core.decision_log import DecisionLog, DecisionLogState
from ett_core.events import (
    AnyEvent,
    AttemptStart,
    Cache,
    Checkpoint,
    CheckpointDurable,
    CheckpointFailed,
    Clock,
    Compile,
    Counters,
    Decision,
    Event,
    Evidence,
    Failure,
    Progress,
)
from ett_core.evidence_log import STOPPED, EvidenceLine, EvidenceLog
from ett_core.in_order import Collected
from ett_core.interference import AsyncSaves, AsyncSavesState
from ett_core.named_sums import LARGEST_COUNT, add_named
from ett_core.packing import unwrapped, wrapped
from ett_core.process_totals import ProcessTotals, ProcessTotalsState
from ett_core.rank_nodes import RankNodes, RankNodesState
from ett_core.refusals import Refusals
from ett_core.runs import Row, rows_of, runs_of
from ett_core.starts import Starts, StartsState
from ett_core.step_lengths import StepLengths, StepLengthsState
from ett_core.stopped_ranks import stops_in
from ett_core.stragglers import RankPaces, RankPacesState, Straggler
from ett_core.throughput import ThroughputFold, ThroughputState

MAGIC = b"ettmore\x07"


class DetailsState(NamedTuple):
    """A `JobDetails` as a value."""

    clocks: list[Clock]
    is_stale: bool
    starts: StartsState
    nodes: RankNodesState
    checkpoints: CheckpointLogState
    async_saves: AsyncSavesState
    processes: ProcessTotalsState
    compile_s: dict[str, float]
    remote_compiles: int
    compilations: CompileLogState
    decisions: DecisionLogState
    samples: float
    throughput: ThroughputState
    steps: StepLengthsState
    rank_paces: RankPacesState
    evidence: dict[int, list[EvidenceLine]]


class JobDetails:
    """The fold: `add` events, then read its parts."""

    __slots__ = (
        "_archive",
        "_clocks",
        "_remote_compiles",
        "async_saves",
        "checkpoints",
        "compilations",
        "compile_s",
        "decisions",
        "evidence",
        "is_stale",
        "nodes",
        "processes",
        "rank_paces",
        "refusals",
        "samples",
        "starts",
        "steps",
        "throughput",
    )

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self.refusals = Refusals()
        self._clocks = Clocks()
        self.is_stale = False
        """Whether a clock was found to be off, which may concern earlier events: see `of_events`."""
        self.starts = Starts()
        self.nodes = RankNodes()
        self.checkpoints = CheckpointLog(archive)
        self.async_saves = AsyncSaves(archive)
        self.processes = ProcessTotals()
        self.compile_s: dict[str, float] = {}
        """Compile seconds by stage, summed over ranks; `native` is the native compiler's."""
        self._remote_compiles = 0
        self.compilations = CompileLog(archive)
        self.decisions = DecisionLog(archive)
        self.samples = 0.0
        """Samples consumed by all ranks, each counting its own."""
        self.throughput = ThroughputFold()
        self.steps = StepLengths()
        self.rank_paces = RankPaces(archive=archive)
        self.evidence = EvidenceLog(archive=archive)

    def add(self, events: Iterable[AnyEvent]) -> None:
        """Take in events, in any order, each once; `refusals` hold those that cannot be taken in."""
        for run in runs_of(events if isinstance(events, Sequence) else list(events)):
            offset_s = self._clocks.offset_s(run[0].writer)
            try:
                self._take_run([corrected(event, offset_s) for event in run] if offset_s else run)
            except Exception as error:  # noqa: BLE001 - one run must not take away all others
                for event in run:
                    self.refusals.note(event, error)
        self.checkpoints.settle()
        self.compilations.settle()
        self.decisions.settle()

    def _take_run(self, run: Sequence[AnyEvent]) -> None:
        """Take in events of one writer, attempt, rank and node."""
        latest, reports = run[0], []
        latest_at = latest.time
        for event in run:
            if event.time > latest_at or (event.time == latest_at and event.seq > latest.seq):
                latest, latest_at = event, event.time
            if type(event) is Progress:
                reports.append(event)
            elif (take := _HANDLERS.get(type(event))) is not None:
                try:
                    take(self, event)
                except Exception as error:  # noqa: BLE001 - one event must not take away all others
                    self.refusals.note(event, error)
        self.nodes.note(latest)
        if reports and run[0].rank >= 0:
            self._take_reports(run[0].attempt, run[0].rank, rows_of(reports, self.refusals.note))

    @classmethod
    def of_events(cls, events: Iterable[AnyEvent], archive: Archive = IN_MEMORY) -> JobDetails:
        """The details of a whole history, repeats and different events under one key allowed."""
        known = canonical(events)
        details = cls(archive)
        details.add(event for event in known if isinstance(event, Clock))
        details.is_stale = False
        details.add(event for event in known if not isinstance(event, Clock))
        if details.late:
            collected = Collected()
            collected.add(known)
            details.put_in_order(collected)
        return details

    @property
    def late(self) -> int:
        """How often something came too late to be folded as if it had come in time: see `put_in_order`."""
        return self.rank_paces.late + self.async_saves.late

    def put_in_order(self, collected: Collected) -> None:
        """Have stragglers and the cost of saves as if all events had come in the order of time.

        `collected` was given every event of the job.
        """
        self.rank_paces, self.async_saves = collected.fold(self._clocks.offset_s, self._archive)

    def state(self) -> DetailsState:
        """The details as a value."""
        return DetailsState(
            self._clocks.latest,
            self.is_stale,
            self.starts.state(),
            self.nodes.state(),
            self.checkpoints.state(),
            self.async_saves.state(),
            self.processes.state(),
            dict(self.compile_s),
            self._remote_compiles,
            self.compilations.state(),
            self.decisions.state(),
            self.samples,
            self.throughput.state(),
            self.steps.state(),
            self.rank_paces.state(),
            self.evidence.everything(),
        )

    @classmethod
    def of_state(cls, state: DetailsState, archive: Archive = IN_MEMORY) -> JobDetails:
        """The details that gave `state`."""
        details = cls(archive)
        for clock in state.clocks:
            details._clocks.add(clock)
        details.is_stale = state.is_stale
        details.starts = Starts.of_state(state.starts)
        details.nodes = RankNodes.of_state(state.nodes)
        details.checkpoints = CheckpointLog.of_state(state.checkpoints, archive)
        details.async_saves = AsyncSaves.of_state(state.async_saves, archive)
        details.processes = ProcessTotals.of_state(state.processes)
        details.compile_s, details._remote_compiles = dict(state.compile_s), state.remote_compiles
        details.compilations = CompileLog.of_state(state.compilations, archive)
        details.decisions = DecisionLog.of_state(state.decisions, archive)
        details.samples = state.samples
        details.throughput = ThroughputFold(state.throughput)
        details.steps = StepLengths.of_state(state.steps)
        details.rank_paces = RankPaces.of_state(state.rank_paces, archive=archive)
        details.evidence = EvidenceLog(state.evidence, archive)
        return details

    @property
    def remote_requests(self) -> int:
        """Requests to remote compile caches: as caches tell, or as compilations do, whichever saw more."""
        return max(self.processes.remote_requests, self._remote_compiles)

    def stragglers(self) -> list[dict[str, Any]]:
        """The stragglers as JSON objects, with their nodes: ranks that stood stopped, and slow ones."""
        found = [*self._stopped(), *self.rank_paces.stragglers()]
        found.sort(key=lambda each: (each.attempt, each.since, each.rank))
        return [{**asdict(each), "node": self.nodes.node_in(each.attempt, each.rank)} for each in found]

    def _stopped(self) -> Iterator[Straggler]:
        told = self.evidence.everything()
        latest = max([self.rank_paces.latest_window[0], *told])
        for attempt, lines in told.items():
            for stop in stops_in(lines):
                yield Straggler(
                    attempt=attempt,
                    rank=stop.rank,
                    since=stop.since,
                    until=stop.until,
                    windows=0,
                    ratio=stop.ratio,
                    cause=STOPPED,
                    ongoing=stop.is_held and attempt == latest,
                )

    def _take_checkpoint(self, event: Checkpoint | CheckpointDurable | CheckpointFailed) -> None:
        self.checkpoints.add(event)
        self.async_saves.add(event)

    def _take_reports(self, attempt: int, rank: int, rows: Sequence[Row]) -> None:
        self.samples += sum(row[3] for row in rows)
        self.throughput.add(rank, rows)
        timed = [row for row in rows if row[4]]
        self.rank_paces.add(attempt, rank, timed)
        self.async_saves.add_reports(attempt, rank, timed)
        self.steps.add(rows)

    def _take_cache(self, event: Cache) -> None:
        self.processes.add_cache(event)

    def _take_counters(self, event: Counters) -> None:
        self.processes.add_counters(event)

    def _take_clock(self, event: Clock) -> None:
        self.is_stale = self._clocks.add(event) or self.is_stale

    def _take_start(self, event: AttemptStart) -> None:
        self.starts.add(event)

    def _take_compile(self, event: Compile) -> None:
        for stage, seconds in event.stage_seconds.items():
            add_named(self.compile_s, stage, seconds)
        if event.native_compile_s:
            add_named(self.compile_s, "native", event.native_compile_s)
        remote = self._remote_compiles + (event.remote_requests or 0)
        self._remote_compiles = min(remote, LARGEST_COUNT)
        self.compilations.add(event)

    def _take_decision(self, event: Decision) -> None:
        self.decisions.add(event)

    def _take_evidence(self, event: Evidence | Failure) -> None:
        self.evidence.add(event)


_HANDLERS: Mapping[type[Event], Callable[[Any, Any], None]] = {
    AttemptStart: JobDetails._take_start,  # noqa: SLF001 - the table belongs to the class
    Checkpoint: JobDetails._take_checkpoint,  # noqa: SLF001
    CheckpointDurable: JobDetails._take_checkpoint,  # noqa: SLF001
    CheckpointFailed: JobDetails._take_checkpoint,  # noqa: SLF001
    Cache: JobDetails._take_cache,  # noqa: SLF001
    Counters: JobDetails._take_counters,  # noqa: SLF001
    Compile: JobDetails._take_compile,  # noqa: SLF001
    Decision: JobDetails._take_decision,  # noqa: SLF001
    Clock: JobDetails._take_clock,  # noqa: SLF001
    Evidence: JobDetails._take_evidence,  # noqa: SLF001
    Failure: JobDetails._take_evidence,  # noqa: SLF001
}
_decoder = msgspec.msgpack.Decoder(DetailsState)


def dump(details: JobDetails) -> bytes:
    """The details as bytes, for `load`."""
    return wrapped(MAGIC, details.state())


def load(data: bytes, archive: Archive = IN_MEMORY) -> JobDetails:
    """The details that `dump` was given: they answer the same, and take in events as those would.

    Raises:
        ValueError: the bytes are damaged or of another version.
    """
    return JobDetails.of_state(unwrapped(MAGIC, data, _decoder.decode), archive)
