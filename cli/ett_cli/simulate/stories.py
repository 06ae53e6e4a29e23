"""The story of one job: its events in order of time, and the truth kept beside them.

A generator tells the events. What a yielded event makes true is entered in the ledger after the
yield, so that a reader who stops at an event leaves the ledger as it was before it.
Moments are milliseconds from the beginning of the window.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from ett_cli.simulate.catalogue import VANISH, Cause
from ett_cli.simulate.chance import Chance
from ett_cli.simulate.endings import death_in_start, die, finish
from ett_cli.simulate.hazards import Hazards
from ett_cli.simulate.ledger import Ledger
from ett_cli.simulate.loops import Loop
from ett_cli.simulate.plans import GIVE_UP, GPUS_PER_NODE, SUCCEED, Plan
from ett_cli.simulate.scene import HEARTBEAT_MS, Ending, Hardware, Scene, Telling
from ett_cli.simulate.settings import Scenario
from ett_cli.simulate.starts import Habits, Start, draw_start, tell_rank
from ett_cli.simulate.truth import JobTruth
from ett_cli.simulate.voices import Origin, Told, Voice
from ett_core.events import AttemptStart, Cache, Compile, Event, FirstBatch, PhaseEnd

LONGEST_QUEUE_MS = 4 * 3_600_000
STARTS_BEFORE_GIVING_UP = 5
NUMBERS_A_REQUEUE = 1000
"""Attempt numbers: requeues times a thousand, plus restarts in place."""
LAUNCHER_SPEAKS_MS = 500
DEPLOYED_FACTOR = 2.5


class Turn(NamedTuple):
    """An attempt that is about to begin."""

    number: int
    begin_ms: int
    hardware: Hardware
    fresh: bool
    """Whether the hardware was allocated for this attempt."""
    tries: int = 0
    """Starts that failed in a row."""
    uncounted: bool = False
    """Whether it says the number of the attempt before."""

    @property
    def new_launchers(self) -> bool:
        """Whether its launchers are other processes than those of the attempt before."""
        return self.fresh or self.uncounted


class Story:
    """One job. Read `events` up to a moment, then ask for the `truth` as of that moment."""

    def __init__(self, scenario: Scenario, plan: Plan, chance: Chance, origin: Origin) -> None:
        self.plan = plan
        self._scene = Scene(scenario, plan, chance, origin)
        self._hazards = Hazards(scenario, plan, chance)
        share = 1.0 if plan.fate == SUCCEED else chance.uniform(0.2, 0.95)
        self._target = max(2, round(plan.target_steps * share))

    def events(self, until_ms: int) -> Iterator[Told]:
        """The events up to a moment, in order of time."""
        ledger = self._scene.ledger
        for told in self._whole():
            if told[0] > until_ms:
                return
            ledger.events += 1
            yield told

    def truth(self, now_ms: int) -> JobTruth | None:
        """What is true as of the moment up to which the events were read; ask once."""
        return self._scene.ledger.close(now_ms)

    def _whole(self) -> Telling:
        scene = self._scene
        hardware = scene.allocate(self.plan.submit_ms)
        turn = Turn(0, hardware.allocated_ms + scene.chance.around_ms(15.0), hardware, True)  # noqa: FBT003 - a field
        while True:
            ending = yield from self._attempt(turn)
            if ending.cause is None:
                return
            if self._is_hopeless(turn, ending):
                yield from finish(scene, turn.hardware, ending.at_ms, "failed")
                return
            turn = self._again(turn, ending, ending.cause)

    def _is_hopeless(self, turn: Turn, ending: Ending) -> bool:
        """Whether nobody starts the job again."""
        if ending.before_loop:
            return turn.tries >= max(STARTS_BEFORE_GIVING_UP, self._scene.scenario.crash_loop)
        return self.plan.fate == GIVE_UP and self._scene.step >= self._target

    def _again(self, turn: Turn, ending: Ending, cause: Cause) -> Turn:
        """When and where the job starts again."""
        scene, chance = self._scene, self._scene.chance
        tries = turn.tries + 1 if ending.before_loop else 0
        if not cause.moves:
            begin_ms = ending.at_ms + chance.between_ms(2.0, 8.0)
            if self.plan.forgets and not ending.before_loop:
                return Turn(turn.number, begin_ms, scene.relaunch(turn.hardware), False, uncounted=True)  # noqa: FBT003 - a field
            return Turn(turn.number + 1, begin_ms, turn.hardware, False, tries)  # noqa: FBT003 - a field
        queue_ms = min(LONGEST_QUEUE_MS, chance.around_ms(420.0, 0.9))
        if cause.how == VANISH and self.plan.nodes == 1:
            queue_ms += chance.between_ms(300.0, 900.0)
        hardware = scene.allocate(ending.at_ms + queue_ms)
        number = (turn.number // NUMBERS_A_REQUEUE + 1) * NUMBERS_A_REQUEUE
        begin_ms = hardware.allocated_ms + chance.around_ms(15.0)
        return Turn(number, begin_ms, hardware, True, tries)  # noqa: FBT003 - a field

    def _attempt(self, turn: Turn) -> Generator[Told, None, Ending]:
        scene, hardware = self._scene, turn.hardware
        scene.forget()
        start = self._draw_start(turn)
        cause = None
        if not turn.uncounted:
            cause = self._hazards.before_loop(resumes=scene.resume_step > 0, tries=turn.tries)
        yield from self._launch(start, turn)
        if cause is not None:
            return (yield from self._fail_before_loop(start, hardware, cause))
        yield from self._tell_start(start, None, turn if turn.uncounted else None)
        strike = self._hazards.in_loop(start.begun_ms, hardware.nodes, hardware.limit_ms)
        return (yield from Loop(scene, start, hardware, strike, self._target).tell())

    def _draw_start(self, turn: Turn) -> Start:
        scene, chance, plan = self._scene, self._scene.chance, self.plan
        ranks = [scene.voice(rank, turn.hardware.nodes[rank // GPUS_PER_NODE]) for rank in plan.reporters]
        for voice in (*turn.hardware.launchers.values(), *ranks):
            voice.attempt = turn.number
        is_cold = scene.scenario.is_cold(turn.begin_ms)
        habits = Habits(
            warm=not is_cold and (turn.number > 0 or chance.hit(plan.adoption)),
            resumed_step=scene.resume_step,
            factor=DEPLOYED_FACTOR if scene.scenario.is_deployed(turn.begin_ms) else 1.0,
        )
        scene.step = scene.resume_step
        return draw_start(plan, ranks, turn.begin_ms, habits, chance)

    def _launch(self, start: Start, turn: Turn) -> Telling:
        """What the receiver finds of clocks, and the launchers' first words."""
        scene, launchers = self._scene, list(turn.hardware.launchers.values())
        said_ms = start.begin_ms + (LAUNCHER_SPEAKS_MS if turn.fresh else 0)
        scene.beating, scene.beat_ms = launchers[0], said_ms + HEARTBEAT_MS
        speakers = [*(launchers if turn.new_launchers else ()), *(rank.voice for rank in start.ranks)]
        for voice in speakers:
            yield from scene.tell_clock(voice, said_ms)
        for place, launcher in enumerate(launchers):
            yield self._launched(launcher, said_ms + 2 * place, start.begin_ms + 2 * place, turn)
            if place == 0 and not turn.uncounted:
                self._note_attempt(start, turn)

    def _note_attempt(self, start: Start, turn: Turn) -> None:
        """Enter an attempt that is known from now on."""
        scene = self._scene
        allocated_ns = scene.origin.ns(turn.hardware.allocated_ms) if turn.fresh else None
        scene.ledger.attempt(start, scene.beating.ns(start.begin_ms), allocated_ns)
        scene.ledger.uncounted += turn.uncounted

    def _launched(self, launcher: Voice, said_ms: int, process_ms: int, turn: Turn) -> Told:
        plan = self.plan
        fresh: dict[str, float] = {}
        if turn.fresh:
            fresh["process_started_at"] = launcher.unix_s(process_ms)
            fresh["allocated_at"] = self._scene.origin.unix_s(turn.hardware.allocated_ms)
        return launcher.say(
            AttemptStart,
            said_ms,
            world_size=plan.world_size,
            accelerators=plan.world_size,
            accelerator_type=plan.accelerator_type,
            labels=plan.labels,
            **fresh,
        )

    def _fail_before_loop(
        self, start: Start, hardware: Hardware, cause: Cause
    ) -> Generator[Told, None, Ending]:
        """A start that does not reach its first batch."""
        scene = self._scene
        death = death_in_start(start, hardware, cause)
        yield from self._tell_start(start, death.at_ms)
        ending = yield from die(scene, start, hardware, death)
        resumed = start.habits.resumed_step
        if cause.failure_class == "checkpoint_corrupt" and resumed % self.plan.steps_a_save == 0:
            scene.lose_checkpoint(resumed)
        return ending._replace(before_loop=True)

    def _tell_start(self, start: Start, until_ms: int | None, uncounted: Turn | None = None) -> Telling:
        """What all ranks say up to their first batches, or up to a moment, in order of time.

        That there was an uncounted restart is known when the first rank speaks by a new writer.
        """
        scene = self._scene
        words = [
            told
            for rank in start.ranks
            for told in tell_rank(self.plan, rank, start.habits, scene.chance, until_ms)
        ]
        for told in sorted(words, key=lambda told: told[0]):
            yield from scene.pass_time(told[0])
            yield told
            if uncounted is not None and isinstance(told[1], AttemptStart) and told[1].rank == 0:
                self._note_attempt(start, uncounted)
            note_word(scene.ledger, told[1], start)


def note_word(ledger: Ledger, event: Event, start: Start) -> None:
    """Enter what a word of a start says."""
    if isinstance(event, FirstBatch) or (isinstance(event, PhaseEnd) and event.resumed_step is not None):
        ledger.resumed(start.habits.resumed_step)
    elif isinstance(event, Compile):
        for stage, seconds in event.stage_seconds.items():
            ledger.compile_s[stage] += seconds
        ledger.compile_s["native"] += event.native_compile_s or 0.0
    elif isinstance(event, Cache):
        totals = ledger.caches.setdefault(event.cache, {"hits": 0, "misses": 0, "bypasses": 0})
        totals["hits"] += event.hits
        totals["misses"] += event.misses
        totals["bypasses"] += event.bypasses
