"""The training loop of one attempt: steps, reports, saves, until it is through or something strikes."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from ett_cli.simulate.catalogue import BY_CLASS, SAVE, SAVE_HANG
from ett_cli.simulate.endings import die_saving, reach_target, struck
from ett_cli.simulate.hazards import Strike
from ett_cli.simulate.saves import tell_phase, tell_recompile, tell_save
from ett_cli.simulate.scene import Ending, Hardware, Scene, Telling
from ett_cli.simulate.starts import Start
from ett_cli.simulate.voices import Told, Voice
from ett_core.events import Progress, StepSeconds

MS = 1_000_000
"""Nanoseconds of a millisecond."""
FOLLOWERS_MS = 60_000
"""How often ranks report that do not lead."""
JITTER_MS = 250
NEVER_MS = 1 << 60
DAY_MS = 86_400_000.0
RECOMPILES_A_DAY = 2.0


class Beat(NamedTuple):
    """What happens between two reports of the leader."""

    steps: int
    train_ms: int
    wait_ms: int
    stall_ms: int
    end_ms: int


class Slow(NamedTuple):
    """A rank that is slower than the others, for a while."""

    begin_ms: int
    end_ms: int
    rank: int
    factor: float


class Loop:
    """One loop; `tell` it once. `target` is the step at which the job is through."""

    def __init__(
        self, scene: Scene, start: Start, hardware: Hardware, strike: Strike | None, target: int
    ) -> None:
        self._scene = scene
        self._start = start
        self._hardware = hardware
        self._target = max(target, scene.step + 1)
        self._at_ms = start.begun_ms
        self._leader = start.ranks[0].voice
        self._followers = [rank.voice for rank in start.ranks[1:]]
        jitters = (scene.chance.randint(1, JITTER_MS) for _ in self._followers)
        self._jitters_ms = sorted(jitters, reverse=True)
        self._followers_ms = self._at_ms + FOLLOWERS_MS
        self._followed_step = scene.step
        self._followed_train_ms = 0
        self._strike = strike
        self._strike_ms = NEVER_MS if strike is None else strike.at_ms
        beats_a_day = DAY_MS / (scene.plan.steps_a_report * scene.plan.step_ms)
        self._stalls = scene.scenario.stalls / beats_a_day
        self._recompiles = RECOMPILES_A_DAY / beats_a_day
        self._slow = self._foresee()

    def tell(self) -> Generator[Told, None, Ending]:
        """The events of the loop, and how it ended."""
        scene, plan = self._scene, self._scene.plan
        yield from self._report(self._first_beat())
        while scene.step < self._target:
            beat = self._draw_beat()
            if self._strike_ms <= beat.end_ms and self._strike is not None:
                if self._strike.cause.how not in (SAVE, SAVE_HANG):
                    return (yield from struck(scene, self._strike, self._start, self._hardware, self._at_ms))
                scene.doomed, self._strike_ms = self._strike.cause, NEVER_MS
            yield from self._report(beat)
            if scene.step % plan.steps_a_save == 0:
                if scene.doomed is not None:
                    return (yield from die_saving(scene, self._start, self._hardware, self._at_ms))
                yield from self._save()
            elif scene.chance.random() < self._recompiles:
                self._at_ms = yield from tell_recompile(scene, self._leader, self._at_ms)
        return (yield from reach_target(scene, self._start, self._hardware, self._at_ms))

    def _first_beat(self) -> Beat:
        step_ms = self._scene.plan.step_ms
        return Beat(1, step_ms, 0, 0, self._at_ms + step_ms)

    def _draw_beat(self) -> Beat:
        scene, plan, chance = self._scene, self._scene.plan, self._scene.chance
        to_save = plan.steps_a_save - scene.step % plan.steps_a_save
        steps = min(plan.steps_a_report, to_save, self._target - scene.step)
        train_ms = max(1, int(steps * self._pace_ms() * (0.97 + 0.06 * chance.random())))
        wait_ms = int(train_ms * plan.wait_share * 2.0 * chance.random())
        stalls = steps > 1 and chance.random() < self._stalls
        stall_ms = chance.between_ms(90.0, 420.0) if stalls else 0
        return Beat(steps, train_ms, wait_ms, stall_ms, self._at_ms + train_ms + wait_ms + stall_ms)

    def _pace_ms(self) -> int:
        """A step of the job, which waits a little for its slow rank."""
        slow, step_ms = self._slow, self._scene.plan.step_ms
        if slow is None or not slow.begin_ms <= self._at_ms < slow.end_ms:
            return step_ms
        return round(step_ms * (1.0 + 0.25 * (slow.factor - 1.0)))

    def _report(self, beat: Beat) -> Telling:
        """The leader's report, with those of the others where they are due."""
        scene, leader, end_ms = self._scene, self._leader, beat.end_ms
        first_step = scene.step
        scene.step += beat.steps
        self._followed_train_ms += beat.train_ms
        if end_ms >= self._followers_ms:
            yield from self._report_followers(beat)
        if scene.is_due(end_ms):
            yield from scene.pass_time(end_ms)
        mean_s = beat.train_ms / beat.steps / 1000
        stall_s = beat.stall_ms / 1000
        samples = float(beat.steps * scene.plan.batch)
        yield leader.say(
            Progress,
            end_ms,
            step=scene.step,
            steps=beat.steps,
            samples=samples,
            data_wait_s=beat.wait_ms / 1000,
            step_seconds=StepSeconds(beat.steps, beat.steps * mean_s + stall_s, mean_s + stall_s),
        )
        if first_step == self._start.habits.resumed_step:
            scene.ledger.loop()
        scene.ledger.report(leader.ns(end_ms), beat.wait_ms * MS, beat.stall_ms * MS, scene.step)
        scene.ledger.samples += samples
        self._at_ms = end_ms

    def _report_followers(self, beat: Beat) -> Telling:
        """Once a minute, a moment before the leader's report."""
        scene = self._scene
        yield from scene.pass_time(beat.end_ms - JITTER_MS)
        steps = scene.step - self._followed_step
        samples = float(steps * scene.plan.batch)
        for voice, jitter_ms in zip(self._followers, self._jitters_ms, strict=True):
            yield voice.say(
                Progress,
                max(beat.end_ms - jitter_ms, self._at_ms + 1),
                step=scene.step,
                steps=steps,
                samples=samples,
                data_wait_s=beat.wait_ms / 1000,
                step_seconds=self._followed(voice, steps, beat.end_ms),
            )
            scene.ledger.samples += samples
        self._followed_step, self._followed_train_ms = scene.step, 0
        self._followers_ms = beat.end_ms + FOLLOWERS_MS

    def _followed(self, voice: Voice, steps: int, at_ms: int) -> StepSeconds:
        """Durations of the steps of a rank that does not lead; those of a slow rank are longer."""
        slow, total_s = self._slow, self._followed_train_ms / 1000
        if slow is not None and slow.rank == voice.rank and slow.begin_ms <= at_ms < slow.end_ms:
            total_s *= slow.factor
        return StepSeconds(steps, round(total_s, 3), round(1.2 * total_s / steps, 3))

    def _save(self) -> Telling:
        """A save, and an evaluation after every few of them."""
        scene, plan = self._scene, self._scene.plan
        self._at_ms = yield from tell_save(scene, self._leader, self._at_ms)
        if plan.steps_an_evaluation and scene.step % plan.steps_an_evaluation == 0:
            length_ms = scene.chance.around_ms(plan.evaluation_s)
            self._at_ms = yield from tell_phase(scene, self._leader, "evaluation", self._at_ms, length_ms)

    def _foresee(self) -> Slow | None:
        """What will be seen in this loop and end nothing: a warning; a slow rank, which is returned."""
        scene, chance, reporters = self._scene, self._scene.chance, self._scene.plan.reporters
        warning_ms = chance.wait_ms(scene.scenario.warnings)
        if warning_ms is not None:
            scene.later(self._at_ms + warning_ms, lambda at_ms: remark(scene, at_ms, "not_a_failure", 0))
        slow_ms = chance.wait_ms(scene.scenario.stragglers)
        if slow_ms is None or len(reporters) == 1:
            return None
        rank, begin_ms = chance.choice(reporters[1:]), self._at_ms + slow_ms
        scene.later(begin_ms + 60_000, lambda at_ms: remark(scene, at_ms, "straggler", rank))
        return Slow(begin_ms, begin_ms + chance.around_ms(1800.0), rank, chance.uniform(1.4, 2.0))


def remark(scene: Scene, at_ms: int, failure_class: str, rank: int) -> Telling:
    """Evidence of something that ends nothing."""
    yield from scene.tell_evidence(scene.beating, BY_CLASS[failure_class], at_ms, rank, scene.beating.node)
    scene.ledger.incidents[failure_class] += 1
