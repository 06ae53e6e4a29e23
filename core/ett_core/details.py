"""What is known of a job beside where its time went: labels, checkpoints, caches, evidence.

A streaming fold next to the accounting, held by one thread at a time (the caller locks).
Events come in any order; each comes once (the store drops repeats before the fold). Order
changes no number: sums are over what each event says alone, "latest" goes by attempt, time,
writer and sequence number, never by arrival. State is bounded; what a bound drops is said at it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

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
from ett_core.interference import AsyncSaves, AsyncSavesState
from ett_core.packing import unwrapped, wrapped
from ett_core.refusals import Refusals
from ett_core.step_times import add_to, quantile
from ett_core.stopped_ranks import stops_in
from ett_core.stragglers import RankPaces, RankPacesState, Straggler
from ett_core.throughput import ThroughputFold, ThroughputState

NAMES_KEPT = 256
"""Distinct names (labels, versions, compile stages, counters) kept; further ones are left out."""
RANKS_KEPT = 65_536
STARTS_KEPT = 64
"""Latest attempts of which it is kept what they ran on."""
REPORTS_KEPT = 65_536
"""Totals kept, one a process (and cache); those of further processes are left out."""
LARGEST_VALUE = 1e15
"""No single value adds more than this, so that no line can spoil a sum with infinity."""

MAGIC = b"ettmore\x06"

Moment: TypeAlias = tuple[int, float, str, int]


class CacheTotals(msgspec.Struct, frozen=True, gc=False):
    """Totals of one cache, summed over the processes of the job."""

    hits: int = 0
    misses: int = 0
    bypasses: int = 0
    saved_s: float = 0.0
    bytes: int = 0
    """Size of what was stored or loaded, where the cache says so."""


class StepTimes(msgspec.Struct, frozen=True, gc=False):
    """How long steps took, without data wait, over all ranks and attempts of a job.

    Quantiles are within `step_times.RELATIVE_ERROR`. `timed` is the number of steps behind them: those
    of reports that hold a histogram.
    """

    timed: int
    p50_s: float
    p99_s: float
    max_s: float


class Start(msgspec.Struct, frozen=True, gc=False):
    """What an attempt said at its start: the versions and the configuration that it runs, its nodes."""

    versions: dict[str, str] = {}
    config_hash: str = ""
    nodes: frozenset[str] = frozenset()


class DetailsState(NamedTuple):
    """A `JobDetails` as a value."""

    clocks: list[Clock]
    is_stale: bool
    checkpoints: CheckpointLogState
    nodes: dict[int, str]
    compile_s: dict[str, float]
    remote_compiles: int
    said: dict[str, tuple[Moment, str | int]]
    labels: dict[str, tuple[Moment, str | int]]
    versions: dict[str, tuple[Moment, str | int]]
    node_moments: dict[int, Moment]
    samples: float
    rank_paces: RankPacesState
    async_saves: AsyncSavesState
    steps: dict[int, int]
    longest_step_s: float
    caches: list[Cache]
    counters: list[tuple[str, Counters]]
    evidence: dict[int, list[EvidenceLine]]
    starts: dict[int, tuple[Moment, Start]]
    throughput: ThroughputState
    compilations: CompileLogState
    decisions: DecisionLogState


class JobDetails:
    """The fold: `add` events, then read the properties."""

    __slots__ = (
        "_archive",
        "_caches",
        "_clocks",
        "_counters",
        "_labels",
        "_longest_step_s",
        "_node_moments",
        "_remote_compiles",
        "_said",
        "_starts",
        "_steps",
        "_versions",
        "async_saves",
        "checkpoints",
        "compilations",
        "compile_s",
        "decisions",
        "evidence",
        "is_stale",
        "nodes",
        "rank_paces",
        "refusals",
        "samples",
        "throughput",
    )

    def __init__(self, archive: Archive = IN_MEMORY) -> None:
        """Start with nothing; `archive` keeps what is rarely needed again."""
        self._archive = archive
        self.refusals = Refusals()
        self._clocks = Clocks()
        self.is_stale = False
        """Whether a clock was found to be off, which may concern earlier events: see `of_events`."""
        self.checkpoints = CheckpointLog(archive)
        self.nodes: dict[int, str] = {}
        """Node of each rank, by its latest event that names one."""
        self.compile_s: dict[str, float] = {}
        self._remote_compiles = 0
        """Compile seconds by stage, summed over ranks; `native` is the native compiler's."""
        self._said: dict[str, tuple[Moment, str | int]] = {}
        self._labels: dict[str, tuple[Moment, str | int]] = {}
        self._versions: dict[str, tuple[Moment, str | int]] = {}
        self._node_moments: dict[int, Moment] = {}
        self.samples = 0.0
        """Samples consumed by all ranks, each counting its own."""
        self.throughput = ThroughputFold()
        self.compilations = CompileLog(archive)
        self.decisions = DecisionLog(archive)
        self.rank_paces = RankPaces(archive=archive)
        self.async_saves = AsyncSaves(archive)
        self._steps: dict[int, int] = {}
        self._longest_step_s = 0.0
        self._caches: dict[tuple[str, str], Cache] = {}
        self._counters: dict[tuple[str, str], Counters] = {}
        self.evidence = EvidenceLog(archive=archive)
        self._starts: dict[int, tuple[Moment, Start]] = {}

    def add(self, events: Iterable[AnyEvent]) -> None:
        """Take in events, in any order, each once; `refusals` hold those that cannot be taken in."""
        clocks = self._clocks
        for event in events:
            try:
                told = corrected(event, clocks.offset_s(event.writer)) if clocks.differ else event
                self._note_node(told)
                self._take(told)
            except Exception as error:  # noqa: BLE001, PERF203 - one event must not take away all others
                self.refusals.note(event, error)
        self.checkpoints.settle()
        self.compilations.settle()
        self.decisions.settle()

    @classmethod
    def of_events(cls, events: Iterable[AnyEvent], archive: Archive = IN_MEMORY) -> JobDetails:
        """The details of a whole history, repeats and different events under one key allowed."""
        known = canonical(events)
        details = cls(archive)
        details.add(event for event in known if isinstance(event, Clock))
        details.is_stale = False
        details.add(event for event in known if not isinstance(event, Clock))
        return details

    def state(self) -> DetailsState:
        """The details as a value."""
        return DetailsState(
            self._clocks.latest,
            self.is_stale,
            self.checkpoints.state(),
            dict(self.nodes),
            dict(self.compile_s),
            self._remote_compiles,
            dict(self._said),
            dict(self._labels),
            dict(self._versions),
            dict(self._node_moments),
            self.samples,
            self.rank_paces.state(),
            self.async_saves.state(),
            dict(self._steps),
            self._longest_step_s,
            list(self._caches.values()),
            [(name, report) for (_, name), report in self._counters.items()],
            self.evidence.everything(),
            dict(self._starts),
            self.throughput.state(),
            self.compilations.state(),
            self.decisions.state(),
        )

    @classmethod
    def of_state(cls, state: DetailsState, archive: Archive = IN_MEMORY) -> JobDetails:
        """The details that gave `state`."""
        details = cls(archive)
        for clock in state.clocks:
            details._clocks.add(clock)
        details.is_stale = state.is_stale
        details.checkpoints = CheckpointLog.of_state(state.checkpoints, archive)
        details.nodes, details.compile_s = dict(state.nodes), dict(state.compile_s)
        details._remote_compiles = state.remote_compiles
        details._said, details._labels = dict(state.said), dict(state.labels)
        details._versions, details._node_moments = dict(state.versions), dict(state.node_moments)
        details.samples = state.samples
        details.throughput = ThroughputFold(state.throughput)
        details.compilations = CompileLog.of_state(state.compilations, archive)
        details.decisions = DecisionLog.of_state(state.decisions, archive)
        details.rank_paces = RankPaces.of_state(state.rank_paces, archive=archive)
        details.async_saves = AsyncSaves.of_state(state.async_saves, archive)
        details._steps, details._longest_step_s = dict(state.steps), state.longest_step_s
        details._caches = {(report.writer, report.cache): report for report in state.caches}
        details._counters = {(report.writer, name): report for name, report in state.counters}
        details.evidence = EvidenceLog(state.evidence, archive)
        for attempt, ((_, time, writer, seq), start) in state.starts.items():
            moment = (attempt, time, sys.intern(writer), seq)
            details._starts[attempt] = (moment, details._shared(start))
        return details

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the job; each as its latest `attempt_start` said it."""
        return {name: str(value) for name, (_, value) in sorted(self._labels.items())}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what the job runs on; each as its latest `attempt_start` said it."""
        return {name: str(value) for name, (_, value) in sorted(self._versions.items())}

    @property
    def starts(self) -> dict[int, Start]:
        """What each of the latest attempts said at its start, by number of the attempt."""
        return {attempt: start for attempt, (_, start) in self._starts.items()}

    @property
    def config_hash(self) -> str:
        """Hash of the job's configuration, empty where never said."""
        return str(self._latest("config_hash", ""))

    @property
    def world_size(self) -> int:
        """Ranks of the job in its latest attempt that says so, else 0."""
        return int(str(self._latest("world_size", 0)))

    @property
    def accelerators(self) -> int:
        """Accelerators held by the whole job in its latest attempt that says so, else 0."""
        return int(str(self._latest("accelerators", 0)))

    @property
    def accelerator_type(self) -> str:
        """Type of the accelerators, empty where never said."""
        return str(self._latest("accelerator_type", ""))

    @property
    def step_times(self) -> StepTimes | None:
        """How long steps took; None where no report holds a histogram."""
        p50_s, p99_s = quantile(self._steps, 0.5), quantile(self._steps, 0.99)
        if p50_s is None or p99_s is None:
            return None
        longest_s = self._longest_step_s
        return StepTimes(sum(self._steps.values()), min(p50_s, longest_s), min(p99_s, longest_s), longest_s)

    @property
    def caches(self) -> dict[str, CacheTotals]:
        """Totals by cache, summed over processes: of each, its latest report."""
        totals: dict[str, CacheTotals] = {}
        for (_, name), report in self._caches.items():
            totals[name] = _plus(totals.get(name, CacheTotals()), report)
        return dict(sorted(totals.items()))

    @property
    def run_caches(self) -> dict[int, dict[str, CacheTotals]]:
        """The same by attempt: of each process, its latest report, which counts towards its attempt."""
        runs: dict[int, dict[str, CacheTotals]] = {}
        for (_, name), report in sorted(self._caches.items(), key=lambda each: each[0][1]):
            totals = runs.setdefault(report.attempt, {})
            totals[name] = _plus(totals.get(name, CacheTotals()), report)
        return {attempt: runs[attempt] for attempt in sorted(runs)[-STARTS_KEPT:]}

    @property
    def remote_requests(self) -> int:
        """Requests to remote compile caches: as caches tell, or as compilations do, whichever saw more."""
        of_caches = sum(report.remote_requests or 0 for report in self._caches.values())
        return max(of_caches, self._remote_compiles)

    @property
    def counters(self) -> dict[str, float]:
        """Named totals, summed over processes: of each, its latest report of that name."""
        totals: dict[str, float] = {}
        for (_, name), report in self._counters.items():
            _add_to(totals, name, report.values[name])
        return totals

    def node_in(self, attempt: int, rank: int) -> str:
        """The node of a rank in an attempt; empty where it is not known, or of an earlier attempt."""
        moment = self._node_moments.get(rank)
        return self.nodes[rank] if moment is not None and moment[0] == attempt else ""

    def heard_at(self, attempt: int) -> dict[int, float]:
        """When each rank of an attempt last told something that names its node, if that was in this one."""
        return {rank: moment[1] for rank, moment in self._node_moments.items() if moment[0] == attempt}

    def stragglers(self) -> list[dict[str, Any]]:
        """The stragglers as JSON objects, with their nodes: ranks that stood stopped, and slow ones."""
        found = [*self._stopped(), *self.rank_paces.stragglers()]
        found.sort(key=lambda each: (each.attempt, each.since, each.rank))
        return [{**asdict(each), "node": self.node_in(each.attempt, each.rank)} for each in found]

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

    def _latest(self, field: str, default: object) -> object:
        return self._said[field][1] if field in self._said else default

    def _note_node(self, event: AnyEvent) -> None:
        rank, node = event.rank, event.node
        if rank < 0 or not node:
            return
        known = self._node_moments.get(rank)
        if known is None:
            if len(self._node_moments) < RANKS_KEPT:
                self._node_moments[rank] = _moment(event)
                self.nodes[rank] = sys.intern(node)
            return
        writer = known[2] if known[2] == event.writer else sys.intern(event.writer)
        moment = (event.attempt, event.time, writer, event.seq)
        if moment >= known:
            self._node_moments[rank] = moment
            if self.nodes[rank] != node:
                self.nodes[rank] = sys.intern(node)

    def _take(self, event: AnyEvent) -> None:
        take = _HANDLERS.get(type(event))
        if take is not None:
            take(self, event)

    def _take_checkpoint(self, event: Checkpoint | CheckpointDurable | CheckpointFailed) -> None:
        self.checkpoints.add(event)
        self.async_saves.add(event)

    def _take_cache(self, event: Cache) -> None:
        _keep_later(self._caches, (event.writer, event.cache), event)

    def _take_counters(self, event: Counters) -> None:
        for name in event.values:
            _keep_later(self._counters, (event.writer, name), event)

    def _take_clock(self, event: Clock) -> None:
        self.is_stale = self._clocks.add(event) or self.is_stale

    def _take_start(self, event: AttemptStart) -> None:
        moment = _moment(event)
        for field in ("world_size", "accelerators", "accelerator_type", "config_hash"):
            _say(self._said, field, moment, getattr(event, field))
        for name, value in event.labels.items():
            _say(self._labels, name, moment, value)
        for name, value in event.versions.items():
            _say(self._versions, name, moment, value)
        self._keep_start(event, moment)

    def _keep_start(self, event: AttemptStart, moment: Moment) -> None:
        """Of an attempt, the latest word on what it runs on, and all nodes that spoke."""
        known_at, known = self._starts.get(event.attempt, (moment, Start()))
        seen = not event.node or event.node in known.nodes
        nodes = known.nodes if seen else known.nodes | {sys.intern(event.node)}
        says = bool(event.versions or event.config_hash)
        if says and (moment >= known_at or not (known.versions or known.config_hash)):
            versions = known.versions if known.versions == event.versions else _first(event.versions)
            known_at, known = moment, Start(versions, event.config_hash or "", nodes)
        elif nodes is not known.nodes:
            known = Start(known.versions, known.config_hash, nodes)
        self._starts[event.attempt] = (known_at, self._shared(known))
        if len(self._starts) > STARTS_KEPT:
            del self._starts[min(self._starts)]

    def _shared(self, start: Start) -> Start:
        """One object for all attempts that start alike: jobs often start again where they were."""
        known = (each for _, each in self._starts.values() if each == start)
        return next(known, start)

    def _take_progress(self, event: Progress) -> None:
        if event.rank < 0:
            return
        samples = _bounded(event.samples)
        self.samples += samples
        self.throughput.add(event, samples)
        if event.step_seconds is None:
            return
        self.rank_paces.add(event)
        self.async_saves.add(event)
        if event.step_seconds.buckets:
            add_to(self._steps, event.step_seconds.buckets)
            self._longest_step_s = max(self._longest_step_s, event.step_seconds.max)

    def _take_compile(self, event: Compile) -> None:
        for stage, seconds in event.stage_seconds.items():
            _add_to(self.compile_s, stage, seconds)
        if event.native_compile_s:
            _add_to(self.compile_s, "native", event.native_compile_s)
        self._remote_compiles += event.remote_requests or 0
        self.compilations.add(event)

    def _take_decision(self, event: Decision) -> None:
        self.decisions.add(event)

    def _take_evidence(self, event: Evidence | Failure) -> None:
        self.evidence.add(event)


_HANDLERS: Mapping[type[Event], Callable[[Any, Any], None]] = {
    Progress: JobDetails._take_progress,  # noqa: SLF001 - the table belongs to the class
    AttemptStart: JobDetails._take_start,  # noqa: SLF001
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


def _plus(total: CacheTotals, report: Cache) -> CacheTotals:
    return CacheTotals(
        hits=total.hits + report.hits,
        misses=total.misses + report.misses,
        bypasses=total.bypasses + report.bypasses,
        saved_s=total.saved_s + (report.saved_s or 0.0),
        bytes=total.bytes + (report.bytes or 0),
    )


def _first(versions: Mapping[str, str]) -> dict[str, str]:
    return dict(islice(versions.items(), NAMES_KEPT))


def _moment(event: AnyEvent) -> Moment:
    return (event.attempt, event.time, sys.intern(event.writer), event.seq)


def _say(said: dict[str, tuple[Moment, str | int]], name: str, moment: Moment, value: str | int) -> None:
    """Keep the latest value that says something under `name`."""
    if not value or (name not in said and len(said) >= NAMES_KEPT):
        return
    if name not in said or said[name][0] < moment:
        said[name] = (moment, value)


_Report = TypeVar("_Report", Cache, Counters)


def _keep_later(kept: dict[tuple[str, str], _Report], key: tuple[str, str], report: _Report) -> None:
    """Keep the later report under `key`."""
    known = kept.get(key)
    if len(kept) < REPORTS_KEPT if known is None else known.seq < report.seq:
        kept[key] = report


def _add_to(totals: dict[str, float], name: str, value: float) -> None:
    if name in totals or len(totals) < NAMES_KEPT:
        totals[name] = totals.get(name, 0.0) + _bounded(value)


def _bounded(value: float) -> float:
    return min(max(value, 0.0), LARGEST_VALUE)
