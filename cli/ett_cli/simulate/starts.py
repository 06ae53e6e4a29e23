"""The start of one attempt: what each rank that reports does until it trains.

A start is drawn whole before any of it is told, so it can say for any moment who owns the time.
Moments are milliseconds from the beginning of the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ett_cli.simulate.chance import Chance
from ett_cli.simulate.plans import Plan
from ett_cli.simulate.voices import Told, Voice
from ett_core.events import AttemptStart, Cache, Compile, FirstBatch, PhaseBegin, PhaseEnd

MAIN, COMPILER = "main", "compiler"
NAMED = (
    "device_init",
    "process_group",
    "preproc_creation",
    "model_init",
    "sharding_plan",
    "data_warmup",
    "compile",
    "cache_load",
    "checkpoint_load",
)
"""Phases of the start that have a component of their own; others count as `other`."""
GRAPHS = 24


class Piece(NamedTuple):
    """A phase of a rank on a track."""

    begin_ms: int
    end_ms: int
    phase: str
    track: str = MAIN


class RankStart(NamedTuple):
    """One rank: when its process began and first spoke, its phases, when it began to train."""

    voice: Voice
    process_ms: int
    said_ms: int
    pieces: Sequence[Piece]
    batch_ms: int
    begun_ms: int


class Habits(NamedTuple):
    """What makes one start slower or faster than another of the same job."""

    warm: bool
    """Whether the compile caches hold what it needs."""
    resumed_step: int
    factor: float = 1.0
    """How much slower preprocessing and the building of the model are than usual."""


class Start(NamedTuple):
    """The start of an attempt. `begin_ms`: when its first process began."""

    begin_ms: int
    ranks: Sequence[RankStart]
    habits: Habits

    @property
    def begun_ms(self) -> int:
        """When the last rank had begun to train."""
        return max(rank.begun_ms for rank in self.ranks)

    def who(self, until_ms: int) -> RankStart | None:
        """The rank that the others waited for as of a moment; None where none had spoken yet."""
        spoken = [rank for rank in self.ranks if rank.said_ms <= until_ms]
        waiting = [rank for rank in spoken if rank.begun_ms > until_ms]
        return waiting[0] if waiting else max(spoken, key=_begun_ns, default=None)

    def has_begun(self, until_ms: int) -> bool:
        """Whether all ranks that had spoken by a moment had begun to train."""
        who = self.who(until_ms)
        return who is not None and who.begun_ms <= until_ms


def _begun_ns(rank: RankStart) -> int:
    """When a rank had begun to train, to the nanosecond: two of them may do so in one millisecond."""
    return rank.voice.ns(rank.begun_ms)


def draw_start(plan: Plan, voices: Sequence[Voice], begin_ms: int, habits: Habits, chance: Chance) -> Start:
    """The start of an attempt whose first process begins at `begin_ms`."""
    medians = _medians(plan, habits)
    processes = [begin_ms + 600 + chance.between_ms(0.2, 3.0) for _ in voices]
    said = [at + chance.around_ms(14.0 - 5.0 * plan.adoption, 0.1) for at in processes]
    ready = [at + chance.around_ms(medians["device_init"], 0.15) for at in said]
    met_ms = max(ready) + chance.around_ms(medians["process_group"])
    compile_s = medians.pop("compile") * chance.lognormvariate(0.0, 0.2)
    common = {phase: chance.around_ms(median_s) for phase, median_s in medians.items()}
    return Start(
        begin_ms,
        [
            _rank_start(plan, chance, common, compile_s, (voice, process_ms, said_ms, ready_ms, met_ms))
            for voice, process_ms, said_ms, ready_ms in zip(voices, processes, said, ready, strict=True)
        ],
        habits,
    )


def _medians(plan: Plan, habits: Habits) -> dict[str, float]:
    """Seconds by phase, in their order, for a job of this size and adoption."""
    adoption, size = plan.adoption, float(plan.world_size.bit_length())
    cold_s, warm_s = 780.0 - 600.0 * adoption, 75.0 - 50.0 * adoption
    medians = {
        "device_init": 5.0,
        "process_group": 4.0 + size * (3.0 - 2.0 * adoption),
        "preproc_creation": 10.0 * habits.factor,
        "init_plugins": 3.0,
        "model_init": (14.0 + 2.0 * size) * habits.factor,
        "sharding_plan": 60.0 - 54.0 * adoption,
        "cache_load": 4.0 if habits.warm else 0.0,
        "checkpoint_load": (20.0 + 6.0 * size) if habits.resumed_step else 0.0,
        "data_warmup": 90.0 - 60.0 * adoption,
        "compile": warm_s if habits.warm else cold_s,
    }
    return {phase: seconds for phase, seconds in medians.items() if seconds}


def _rank_start(
    plan: Plan,
    chance: Chance,
    common: Mapping[str, int],
    compile_s: float,
    moments: tuple[Voice, int, int, int, int],
) -> RankStart:
    voice, process_ms, said_ms, ready_ms, at = moments
    pieces = [Piece(said_ms, ready_ms, "device_init"), Piece(ready_ms, at, "process_group")]
    for phase, length_ms in common.items():
        if phase in ("device_init", "process_group", "data_warmup"):
            continue
        at += chance.between_ms(0.0, 0.2)
        end_ms = at + round(length_ms * (0.95 + 0.1 * chance.random()))
        pieces.append(Piece(at, end_ms, phase))
        at = end_ms
    compiling_ms = chance.around_ms(compile_s, 0.05)
    warm_ms = at + round(common["data_warmup"] * (0.9 + 0.2 * chance.random()))
    pieces.append(Piece(at, warm_ms, "data_warmup"))
    if plan.lazy:
        batch_ms = warm_ms + chance.between_ms(0.0, 0.3)
        pieces.append(Piece(batch_ms, batch_ms + compiling_ms, "compile"))
        return RankStart(voice, process_ms, said_ms, pieces, batch_ms, batch_ms + compiling_ms)
    if plan.overlaps:
        pieces.append(Piece(at, at + compiling_ms, "compile", COMPILER))
    else:
        pieces.append(Piece(warm_ms, warm_ms + compiling_ms, "compile"))
    batch_ms = max(piece.end_ms for piece in pieces) + chance.between_ms(0.0, 0.3)
    return RankStart(voice, process_ms, said_ms, pieces, batch_ms, batch_ms)


def owned(rank: RankStart, until_ms: int) -> Iterator[tuple[int, int, str]]:
    """Who owns the time of a rank's start up to a moment, in order: begin, end, phase.

    Of two that begin together on two tracks the one that lasts longer owns the time, and the
    compiler where both are cut at the same moment.

    >>> rank = RankStart(None, 0, 1, [Piece(1, 5, "data_warmup"), Piece(1, 9, "compile", COMPILER)], 9, 9)
    >>> list(owned(rank, 20)), list(owned(rank, 4))
    ([(1, 9, 'compile')], [(1, 4, 'compile')])
    """
    beside = [piece for piece in rank.pieces if piece.track != MAIN]
    for piece in rank.pieces:
        if piece.track != MAIN or piece.begin_ms >= until_ms:
            continue
        rivals = [piece, *(other for other in beside if other.begin_ms == piece.begin_ms)]
        owner = max(rivals, key=lambda rival: (min(rival.end_ms, until_ms), rival.track != MAIN))
        yield owner.begin_ms, min(owner.end_ms, until_ms), owner.phase


def tell_rank(
    plan: Plan, rank: RankStart, habits: Habits, chance: Chance, until_ms: int | None = None
) -> list[Told]:
    """The events of a rank from its first word to its first batch, in order of time, up to a moment."""
    voice = rank.voice
    if until_ms is not None and rank.said_ms > until_ms:
        return []
    said = [
        voice.say(
            AttemptStart,
            rank.said_ms,
            world_size=plan.world_size,
            accelerators=plan.world_size,
            accelerator_type=plan.accelerator_type,
            process_started_at=voice.unix_s(rank.process_ms),
            labels=plan.labels,
            versions=plan.versions,
            config_hash=plan.config_hash,
        )
    ]
    moments = sorted(
        [(piece.begin_ms, 2, piece) for piece in rank.pieces]
        + [(piece.end_ms, 0, piece) for piece in rank.pieces]
        + [(rank.batch_ms, 1, None)],
        key=lambda moment: moment[:2],
    )
    for at_ms, begins, piece in moments:
        if until_ms is not None and at_ms > until_ms:
            break
        if piece is None:
            said.append(voice.say(FirstBatch, at_ms, step=habits.resumed_step))
        elif begins:
            said.append(voice.say(PhaseBegin, at_ms, phase=piece.phase, track=piece.track))
        else:
            resumed = habits.resumed_step if piece.phase == "checkpoint_load" else None
            said.append(
                voice.say(PhaseEnd, at_ms, phase=piece.phase, track=piece.track, resumed_step=resumed)
            )
            if piece.phase == "compile":
                said += _compiled(voice, piece, habits, chance)
    return said


def _compiled(voice: Voice, piece: Piece, habits: Habits, chance: Chance) -> Iterator[Told]:
    """What a compilation and the caches tell of themselves when it is over."""
    length_s = (piece.end_ms - piece.begin_ms) / 1000
    stages = {"dynamo": 0.15 * length_s, "aot_autograd": 0.2 * length_s, "inductor": 0.6 * length_s}
    stages = {stage: round(seconds, 3) for stage, seconds in stages.items()}
    native_s = round(0.05 * length_s if habits.warm else 0.3 * length_s, 3)
    yield voice.say(Compile, piece.end_ms, graph="0/0", stage_seconds=stages, native_compile_s=native_s)
    for cache in ("fx_graph", "aot_autograd", "triton_bundle", "autotune"):
        bypasses = 2 if cache == "aot_autograd" else 0
        hits = GRAPHS - chance.randint(0, 2) if habits.warm else chance.randint(0, 3)
        yield voice.say(
            Cache,
            piece.end_ms,
            cache=cache,
            hits=hits,
            misses=GRAPHS - hits,
            bypasses=bypasses,
            saved_s=round(hits * 1.5, 3),
        )
    if habits.warm:
        yield voice.say(Cache, piece.end_ms, cache="mega_cache", hits=1, bytes=180 * 2**20)
