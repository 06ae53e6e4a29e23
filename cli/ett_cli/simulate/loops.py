"""The training loop of one attempt: steps, reports, saves, until it is through or something strikes."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from ett_cli.simulate.catalogue import BY_CLASS, SAVE, SAVE_HANG
from ett_cli.simulate.endings import die_saving, reach_target, struck
from ett_cli.simulate.hazards import Strike
from ett_cli.simulate.saves import tell_interval, tell_phase, tell_recompile, tell_save
from ett_cli.simulate.scene import Ending, Hardware, Scene, Telling
from ett_cli.simulate.starts import Start
from ett_cli.simulate.truth import SlowTruth
from ett_cli.simulate.voices import Told, Voice
from ett_core.events import Progress, StepSeconds
from ett_core.step_times import bucket_of

MS = 1_000_000
"""Nanoseconds of a millisecond."""
FOLLOWERS_MS = 60_000
"""How often ranks report that do not lead."""
JITTER_MS = 250
NOTICED_MS = 240_000
"""How long a rank has been slow when that is remarked."""
NEVER_MS = 1 << 60
DATA_WAIT, STEP = "data_wait", "step"
DAY_MS = 86_400_000.0
RECOMPILES_A_DAY = 2.0


class Beat(NamedTuple):
    """What happens between two reports of the leader."""

    steps: int
    train_ms: int
    wait_ms: int
    stall_ms: int
    end_ms: int
    slowed_s: float = 0.0
    """Of the training, what an upload takes."""


class Slow(NamedTuple):
    """A rank that is slower than the others, for a while.

    Of a `cause` `data_wait` it waits for its data while the others wait for it inside their step, so
    that the job takes `factor` times as long; of a `step` its own steps are longer by the factor,
    and the job's a little.
    """

    begin_ms: int
    end_ms: int
    rank: int
    factor: float
    cause: str

    def lasts(self, at_ms: int) -> bool:
        """Whether it is slow at a moment."""
        return self.begin_ms <= at_ms < self.end_ms

    @property
    def pace(self) -> float:
        """How many times as long the job takes for a step."""
        return self.factor if self.cause == DATA_WAIT else 1.0 + 0.25 * (self.factor - 1.0)


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
        self._followed_train_ms = self._followed_wait_ms = self._followed_lag_ms = 0
        self._strike = strike
        self._strike_ms = NEVER_MS if strike is None else strike.at_ms
        beats_a_day = DAY_MS / (scene.plan.steps_a_report * scene.plan.step_ms)
        self._stalls = scene.scenario.stalls / beats_a_day
        self._recompiles = RECOMPILES_A_DAY / beats_a_day
        self._slow = self._foresee()

    def tell(self) -> Generator[Told, None, Ending]:
        """The events of the loop, and how it ended."""
        scene, plan = self._scene, self._scene.plan
        if plan.asynchronous:
            yield tell_interval(plan, scene.scenario.interference, self._leader, self._at_ms)
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
        slower = self._slower()
        train_ms = max(1, int(steps * self._pace_ms() * slower * (0.97 + 0.06 * chance.random())))
        slowed_s = train_ms / 1000 * (1.0 - 1.0 / slower)
        wait_ms = int(train_ms * plan.wait_share * 2.0 * chance.random())
        stalls = steps > 1 and chance.random() < self._stalls
        stall_ms = chance.between_ms(90.0, 420.0) if stalls else 0
        end_ms = self._at_ms + train_ms + wait_ms + stall_ms
        return Beat(steps, train_ms, wait_ms, stall_ms, end_ms, slowed_s)

    def _pace_ms(self) -> float:
        """A step of the job, which waits for its slow rank."""
        pace_ms = float(self._scene.plan.step_ms)
        if self._slow is not None and self._slow.lasts(self._at_ms):
            pace_ms *= self._slow.pace
        return pace_ms

    def _slower(self) -> float:
        """How many times as long steps take that give way to an upload."""
        scene = self._scene
        return 1.0 + scene.scenario.interference * (scene.uploaded_ms > self._at_ms)

    def _report(self, beat: Beat) -> Telling:
        """The leader's report, with those of the others where they are due."""
        scene, leader, end_ms = self._scene, self._leader, beat.end_ms
        first_step = scene.step
        scene.step += beat.steps
        self._followed_train_ms += beat.train_ms
        self._followed_wait_ms += beat.wait_ms
        if self._slow is not None and self._slow.lasts(self._at_ms):
            self._followed_lag_ms += round(beat.train_ms * (1.0 - 1.0 / self._slow.factor))
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
            step_seconds=durations(beat.steps, mean_s, stall_s),
        )
        if first_step == self._start.habits.resumed_step:
            scene.ledger.loop()
        scene.ledger.report(leader.ns(end_ms), beat.wait_ms * MS, beat.stall_ms * MS, scene.step)
        scene.ledger.samples += samples
        scene.ledger.saves.slowed_s += beat.slowed_s
        self._at_ms = end_ms

    def _report_followers(self, beat: Beat) -> Telling:
        """Once a minute, a moment before the leader's report."""
        scene = self._scene
        yield from scene.pass_time(beat.end_ms - JITTER_MS)
        steps = scene.step - self._followed_step
        samples = float(steps * scene.plan.batch)
        for voice, jitter_ms in zip(self._followers, self._jitters_ms, strict=True):
            wait_s, step_s = self._followed(voice)
            yield voice.say(
                Progress,
                max(beat.end_ms - jitter_ms, self._at_ms + 1),
                step=scene.step,
                steps=steps,
                samples=samples,
                data_wait_s=wait_s,
                step_seconds=durations(steps, step_s / steps, 0.0),
            )
            scene.ledger.samples += samples
        self._followed_step = scene.step
        self._followed_train_ms = self._followed_wait_ms = self._followed_lag_ms = 0
        self._followers_ms = beat.end_ms + FOLLOWERS_MS

    def _followed(self, voice: Voice) -> tuple[float, float]:
        """Seconds that a rank that does not lead waited for data, and those of its steps."""
        slow, wait_ms, step_ms = self._slow, self._followed_wait_ms, self._followed_train_ms
        if slow is not None and slow.rank == voice.rank and self._followed_lag_ms:
            if slow.cause == DATA_WAIT:
                wait_ms, step_ms = wait_ms + self._followed_lag_ms, step_ms - self._followed_lag_ms
            else:
                step_ms = round(step_ms * slow.factor)
        return wait_ms / 1000, step_ms / 1000

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
        cause, factor = chance.choice((DATA_WAIT, STEP)), chance.uniform(1.6, 2.2)
        slow = Slow(begin_ms, begin_ms + chance.around_ms(1800.0), rank, factor, cause)
        scene.later(begin_ms + NOTICED_MS, lambda at_ms: self._notice(slow, at_ms))
        return slow

    def _notice(self, slow: Slow, at_ms: int) -> Telling:
        """The watchdog has seen for a while that a rank is slow."""
        scene, begin = self._scene, self._scene.origin.unix_s(slow.begin_ms)
        yield from remark(scene, at_ms, "straggler", slow.rank)
        found = SlowTruth(self._leader.attempt, slow.rank, begin, slow.cause, slow.factor)
        scene.ledger.slow_ranks.append(found)


def durations(steps: int, mean_s: float, stall_s: float) -> StepSeconds:
    """Durations of steps that take the same time, but for one that stalls.

    >>> durations(3, 0.5, 100.0).max
    100.5
    """
    buckets = {bucket_of(mean_s): steps - (stall_s > 0)}
    if stall_s > 0:
        buckets[bucket_of(mean_s + stall_s)] = 1
    return StepSeconds(steps, steps * mean_s + stall_s, mean_s + stall_s, buckets)


def remark(scene: Scene, at_ms: int, failure_class: str, rank: int) -> Telling:
    """Evidence of something that ends nothing."""
    yield from scene.tell_evidence(scene.beating, BY_CLASS[failure_class], at_ms, rank, scene.beating.node)
    scene.ledger.incidents[failure_class] += 1
