"""Phases of the training loop that the trainer waits for: saves, evaluations, recompilations.

And what a job says of how often it saves.
"""

from __future__ import annotations

from ett_cli.simulate.plans import Plan
from ett_cli.simulate.scene import Scene, Telling, TellingUntil
from ett_cli.simulate.voices import Told, Voice
from ett_core.events import (
    Checkpoint,
    CheckpointDurable,
    CheckpointFailed,
    Compile,
    Decision,
    PhaseBegin,
    PhaseEnd,
)

SAVES_THAT_FAIL = 0.01


def tell_phase(scene: Scene, leader: Voice, phase: str, at_ms: int, length_ms: int) -> TellingUntil:
    """A phase of the loop."""
    component = {"compile": "recompile", "checkpoint": "checkpoint_blocking"}.get(phase, phase)
    end_ms = at_ms + length_ms
    yield leader.say(PhaseBegin, at_ms, phase=phase, step=scene.step)
    scene.ledger.began(component, leader.ns(at_ms))
    yield from scene.pass_time(end_ms)
    yield leader.say(PhaseEnd, end_ms, phase=phase, step=scene.step)
    scene.ledger.ended(leader.ns(end_ms))
    return end_ms


def tell_interval(plan: Plan, interference: float, leader: Voice, at_ms: int) -> Told:
    """What a job that saves behind its trainer's back decided on how often it does."""
    interval_s = plan.steps_a_save * plan.step_ms / 1000
    slowed_s = plan.upload_s * (1.0 - 1.0 / (1.0 + interference))
    figures = {
        "interval_s": interval_s,
        "blocking_s": plan.blocking_s,
        "slowed_s": slowed_s,
        "upload_s": plan.upload_s,
    }
    slows = f", slows training by {slowed_s:.3g} s" if slowed_s else ""
    why = f"a save blocks {plan.blocking_s:.3g} s{slows} and is durable after {plan.upload_s:.3g} s"
    what = f"a checkpoint every {interval_s:,.0f} s of training"
    return leader.say(Decision, at_ms, what=what, why=why, values=figures)


def tell_recompile(scene: Scene, leader: Voice, at_ms: int) -> TellingUntil:
    """A shape that was not seen before."""
    end_ms = yield from tell_phase(scene, leader, "compile", at_ms, scene.chance.around_ms(18.0, 0.5))
    seconds = round((end_ms - at_ms) / 1000, 3)
    reason = "tensor 'L['sparse']' size mismatch at index 0"
    stages = {"inductor": seconds}
    yield leader.say(Compile, end_ms, graph="0/1", stage_seconds=stages, recompile_reason=reason)
    scene.ledger.compile_s["inductor"] += seconds
    return end_ms


def tell_save(scene: Scene, leader: Voice, at_ms: int, *, waits: bool = False) -> TellingUntil:
    """A save of the step that was reported last; ends when the trainer goes on.

    One save at most is in flight. With `waits` the trainer waits until it is durable.
    """
    plan, chance = scene.plan, scene.chance
    behind = plan.asynchronous and not waits
    waited_ms = max(0, scene.uploaded_ms - at_ms)
    staging_ms = chance.around_ms(plan.blocking_s, 0.2)
    if plan.asynchronous and waits:
        staging_ms += chance.around_ms(plan.upload_s, 0.2)
    upload_ms = chance.around_ms(plan.upload_s) if behind else None
    blocking_ms = waited_ms + staging_ms
    scene.ledger.save_point()
    end_ms = yield from tell_phase(scene, leader, "checkpoint", at_ms, blocking_ms)
    yield leader.say(
        Checkpoint,
        end_ms,
        step=scene.step,
        mode="async" if behind else "sync",
        wait_previous_s=waited_ms / 1000,
        blocking_s=blocking_ms / 1000,
        staging_s=staging_ms / 1000 if behind else None,
        upload_s=None if upload_ms is None else upload_ms / 1000,
        bytes=plan.checkpoint_bytes,
    )
    scene.ledger.saved(blocking_ms)
    if upload_ms is None:
        yield from _tell_durable(scene, leader, end_ms, scene.step, blocking_ms)
    else:
        _upload(scene, leader, end_ms + upload_ms, staging_ms + upload_ms)
    return end_ms


def _upload(scene: Scene, leader: Voice, done_ms: int, took_ms: int) -> None:
    """The rest of a save, behind the trainer's back."""
    step = scene.step
    scene.uploaded_ms = done_ms
    if scene.chance.hit(SAVES_THAT_FAIL):
        scene.later(done_ms, lambda at_ms: _tell_failed(scene, leader, at_ms, step))
    else:
        scene.later(done_ms, lambda at_ms: _tell_durable(scene, leader, at_ms, step, took_ms))


def _tell_durable(scene: Scene, leader: Voice, at_ms: int, step: int, took_ms: int) -> Telling:
    plan = scene.plan
    mode = "async" if plan.asynchronous else "sync"
    size, took_s = plan.checkpoint_bytes, took_ms / 1000
    yield leader.say(CheckpointDurable, at_ms, step=step, mode=mode, bytes=size, duration_s=took_s)
    scene.ledger.durable(step)
    scene.keep_checkpoint(step)


def _tell_failed(scene: Scene, leader: Voice, at_ms: int, step: int) -> Telling:
    message = "upload ended: 503 Slow Down"
    yield leader.say(CheckpointFailed, at_ms, step=step, mode="async", message=message)
    scene.ledger.saves.failed += 1
