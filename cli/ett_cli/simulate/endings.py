"""How attempts end: through, by decision, or by something that strikes, and what everybody says then."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeAlias

from ett_cli.simulate.catalogue import (
    BY_CLASS,
    BYSTANDERS,
    HANG,
    KILL,
    OUTSIDE,
    PREEMPT,
    SAVE,
    SAVE_HANG,
    VANISH,
    Cause,
)
from ett_cli.simulate.hazards import Strike
from ett_cli.simulate.plans import CANCEL, GIVE_UP, GPUS_PER_NODE, SUCCEED, TIME_OUT
from ett_cli.simulate.saves import tell_phase, tell_save
from ett_cli.simulate.scene import Ending, Hardware, Scene, Telling
from ett_cli.simulate.starts import RankStart, Start
from ett_cli.simulate.truth import FailureTruth
from ett_cli.simulate.voices import Told, Voice
from ett_core.events import (
    LAUNCHER_RANK,
    AttemptEnd,
    Failure,
    JobEnd,
    PhaseBegin,
    PhaseEnd,
    Progress,
)

LONGEST_TAIL_MS = 45_000
"""A death that is noticed at once comes at most this long after the last report."""
SAVE_TIMEOUT_MS = 1_200_000

TellingEnd: TypeAlias = Generator[Told, None, Ending]


class Death(NamedTuple):
    """What kills which rank where; `at_ms` is the first word of it."""

    cause: Cause
    at_ms: int
    rank: int
    node: str


def reach_target(scene: Scene, start: Start, hardware: Hardware, at_ms: int) -> TellingEnd:
    """The last step was made, or the owner's mind was."""
    plan, leader = scene.plan, start.ranks[0].voice
    if plan.fate in (CANCEL, TIME_OUT):
        return (yield from be_ended(scene, start, hardware, at_ms))
    if plan.fate == GIVE_UP:
        strike = Strike(at_ms, BY_CLASS["user_code"])
        return (yield from struck(scene, strike, start, hardware, at_ms))
    assert plan.fate == SUCCEED  # noqa: S101 - there are four fates
    if scene.step % plan.steps_a_save:
        at_ms = yield from tell_save(scene, leader, at_ms)
    if plan.publish_s:
        length_ms = scene.chance.around_ms(plan.publish_s)
        at_ms = yield from tell_phase(scene, leader, "publish", at_ms, length_ms)
    length_ms = max(scene.uploaded_ms - at_ms, 0) + scene.chance.around_ms(6.0)
    at_ms = yield from tell_phase(scene, leader, "shutdown", at_ms, length_ms)
    for voice in (*(rank.voice for rank in start.ranks), *hardware.launchers.values()):
        at_ms += scene.chance.randint(1, 600)
        yield from scene.pass_time(at_ms)
        yield voice.say(AttemptEnd, at_ms, status="succeeded", exit_code=0)
        scene.ledger.succeeded(voice.ns(at_ms))
    yield from finish(scene, hardware, at_ms, "succeeded")
    return Ending(at_ms, None)


def be_ended(scene: Scene, start: Start, hardware: Hardware, at_ms: int) -> TellingEnd:
    """The owner cancels the job, or its time is over for good."""
    cancelled = scene.plan.fate == CANCEL
    cause = BY_CLASS["user_cancelled" if cancelled else "time_limit"]
    status = "cancelled" if cancelled else "timed_out"
    at_ms += scene.chance.between_ms(1.0, 20.0)
    yield from scene.pass_time(at_ms)
    yield from scene.tell_evidence(scene.beating, cause, at_ms, 0, scene.beating.node)
    for place, voice in enumerate((*(rank.voice for rank in start.ranks), *hardware.launchers.values())):
        at_ms += scene.chance.randint(1, 900)
        yield from scene.pass_time(at_ms)
        yield voice.say(AttemptEnd, at_ms, status=status)
        if place == 0:
            scene.ledger.decided(voice.ns(at_ms), status)
    yield from finish(scene, hardware, at_ms, status)
    return Ending(at_ms, None)


def finish(scene: Scene, hardware: Hardware, at_ms: int, status: str) -> Telling:
    """The launcher's word that nothing will follow."""
    launcher = next(iter(hardware.launchers.values()))
    at_ms += scene.chance.randint(200, 1500)
    yield launcher.say(JobEnd, at_ms, status=status)
    scene.ledger.finish(launcher.ns(at_ms))


def struck(scene: Scene, strike: Strike, start: Start, hardware: Hardware, reported_ms: int) -> TellingEnd:
    """Something ends the attempt in its loop; the last report or phase ended at `reported_ms`."""
    chance, cause = scene.chance, strike.cause
    if cause.how == PREEMPT:
        return (yield from be_preempted(scene, strike, start, hardware, reported_ms))
    if cause.how == VANISH and scene.plan.nodes == 1:
        return vanish(scene, cause, start, reported_ms)
    if cause.how in (HANG, VANISH):
        at_ms = reported_ms + chance.between_ms(150.0, 300.0 if cause.how == VANISH else 1500.0)
    else:
        at_ms = min(max(strike.at_ms, reported_ms + 1), reported_ms + LONGEST_TAIL_MS)
    rank = _victim(scene, strike, hardware)
    return (yield from die(scene, start, hardware, Death(cause, at_ms, rank, hardware.node_of(rank))))


def _victim(scene: Scene, strike: Strike, hardware: Hardware) -> int:
    """The rank that dies first: on the node of the strike, if it names one."""
    world_size = scene.plan.world_size
    if strike.node is not None:
        first = hardware.nodes.index(strike.node) * GPUS_PER_NODE
        return scene.chance.randrange(first, min(first + GPUS_PER_NODE, world_size))
    return scene.chance.randrange(GPUS_PER_NODE if strike.cause.how == VANISH else 0, world_size)


def die(scene: Scene, start: Start, hardware: Hardware, death: Death) -> TellingEnd:
    """A rank dies and takes the others with it."""
    cause, at_ms, rank, node = death
    yield from scene.pass_time(at_ms)
    launcher = hardware.launchers.get(node)
    if launcher is None:
        launcher = hardware.launchers[node] = scene.voice(LAUNCHER_RANK, node)
        launcher.attempt = start.ranks[0].voice.attempt
        yield from scene.tell_clock(launcher, at_ms)
    gone = cause.how == VANISH
    launcher = scene.beating if gone else launcher
    yield from scene.tell_evidence(launcher, cause, at_ms, rank, node)
    witness = next((r.voice for r in start.ranks if r.voice.rank == rank), None)
    if witness is not None and not gone and cause.how != KILL:
        yield witness.say(Failure, at_ms, **_last_words(scene, death))
    else:
        witness = launcher
        said = {"message": f"lost contact with {node}"} if gone else _last_words(scene, death)
        yield witness.say(Failure, at_ms, of_rank=rank, **said)
    fail(scene, start, witness.ns(at_ms), death)
    return (yield from _fall(scene, start, hardware, death))


def _last_words(scene: Scene, death: Death) -> dict[str, object]:
    cause = death.cause
    said: dict[str, object] = {
        "exception": cause.exception,
        "exit_code": cause.exit_code,
        "signal": cause.signal,
    }
    if cause.message is not None:
        said["message"] = scene.texts((cause.message,), death.rank, death.node)[0]
    return said


def fail(scene: Scene, start: Start, at_ns: int, death: Death) -> None:
    """Enter a failure whose first word was just told."""
    scene.ledger.fail(at_ns, death.at_ms, failure_of(start, at_ns, death.cause, death.rank, death.node))
    scene.fall_back()
    scene.forget()


def failure_of(start: Start, at_ns: int, cause: Cause, rank: int | None, node: str) -> FailureTruth:
    """A failure as it was meant."""
    attempt = start.ranks[0].voice.attempt
    return FailureTruth(attempt, at_ns / 1e9, cause.failure_class, cause.domain, rank, node)


def _fall(scene: Scene, start: Start, hardware: Hardware, death: Death) -> TellingEnd:
    """The others die of it; the launchers clear up."""
    chance, at_ms = scene.chance, death.at_ms
    gone = death.node if death.cause.how == VANISH else None
    for other in start.ranks:
        voice = other.voice
        if voice.rank == death.rank or voice.node == gone or other.said_ms > death.at_ms:
            continue
        if not death.cause.tells:
            continue
        at_ms += chance.randint(20, 900)
        yield from scene.pass_time(at_ms)
        yield _bystander(scene, voice, at_ms)
    at_ms += chance.between_ms(1.0, 25.0)
    launchers = [launcher for node, launcher in hardware.launchers.items() if node != gone]
    return (yield from _clear_up(scene, launchers, at_ms, "failed", death.cause))


def _bystander(scene: Scene, voice: Voice, at_ms: int) -> Told:
    text = scene.texts((scene.chance.choice(BYSTANDERS),), voice.rank, voice.node)[0]
    exception = "torch.distributed.DistBackendError"
    return voice.say(Failure, at_ms, exception=exception, message=text, exit_code=1)


def _clear_up(scene: Scene, launchers: list[Voice], at_ms: int, status: str, cause: Cause) -> TellingEnd:
    for launcher in launchers:
        at_ms += scene.chance.randint(10, 1500)
        yield from scene.pass_time(at_ms)
        yield launcher.say(AttemptEnd, at_ms, status=status)
        scene.ledger.torn_down(launcher.ns(at_ms))
    return Ending(at_ms, cause)


def vanish(scene: Scene, cause: Cause, start: Start, reported_ms: int) -> Ending:
    """The only node of a job is gone: nobody is left to say so."""
    leader = start.ranks[0].voice
    at_ns = leader.ns(reported_ms)
    scene.ledger.vanish(at_ns, failure_of(start, at_ns, cause, None, leader.node))
    scene.fall_back()
    scene.forget()
    return Ending(reported_ms, cause)


def be_preempted(
    scene: Scene, strike: Strike, start: Start, hardware: Hardware, reported_ms: int
) -> TellingEnd:
    """The scheduler takes the hardware: with time to save, or without."""
    chance, speaker = scene.chance, scene.beating
    at_ms = min(max(strike.at_ms, reported_ms + 1), reported_ms + LONGEST_TAIL_MS)
    yield from scene.pass_time(at_ms)
    yield from scene.tell_evidence(speaker, strike.cause, at_ms, 0, speaker.node)
    if chance.hit(0.3 + 0.6 * scene.plan.adoption):
        speaker = start.ranks[0].voice
        steps = max(1, (at_ms - reported_ms) // scene.plan.step_ms)
        yield from _report_last(scene, speaker, at_ms, steps)
        at_ms = yield from tell_save(scene, speaker, at_ms, waits=True)
    else:
        at_ms += chance.between_ms(0.1, 5.0)
        yield from scene.pass_time(at_ms)
    yield speaker.say(AttemptEnd, at_ms, status="preempted")
    at_ns = speaker.ns(at_ms)
    scene.ledger.fail(at_ns, at_ms, failure_of(start, at_ns, strike.cause, None, speaker.node))
    scene.fall_back()
    scene.forget()
    launchers = list(hardware.launchers.values())
    return (yield from _clear_up(scene, launchers, at_ms, "preempted", strike.cause))


def _report_last(scene: Scene, leader: Voice, at_ms: int, steps: int) -> Telling:
    """The report before the last save."""
    scene.step += steps
    samples = float(steps * scene.plan.batch)
    yield leader.say(Progress, at_ms, step=scene.step, steps=steps, samples=samples)
    scene.ledger.report(leader.ns(at_ms), 0, 0, scene.step)
    scene.ledger.samples += samples


def die_saving(scene: Scene, start: Start, hardware: Hardware, at_ms: int) -> TellingEnd:
    """Something goes wrong in the middle of a save."""
    cause, leader = scene.doomed, start.ranks[0].voice
    assert cause is not None  # noqa: S101 - the caller has looked
    scene.doomed = None
    scene.ledger.save_point()
    yield leader.say(PhaseBegin, at_ms, phase="checkpoint", step=scene.step)
    scene.ledger.began("checkpoint_blocking", leader.ns(at_ms))
    hangs = cause.how == SAVE_HANG
    at_ms += SAVE_TIMEOUT_MS if hangs else scene.chance.between_ms(1.0, 20.0)
    yield from scene.pass_time(at_ms)
    if cause.how == SAVE:
        error = scene.texts((cause.message or "",), 0, leader.node)[0]
        yield leader.say(PhaseEnd, at_ms, phase="checkpoint", step=scene.step, error=error)
        scene.ledger.ended(leader.ns(at_ms))
    return (yield from die(scene, start, hardware, Death(cause, at_ms, 0, leader.node)))


def death_in_start(start: Start, hardware: Hardware, cause: Cause) -> Death:
    """When and on which rank a cause strikes a start, before any rank is through with its phase."""
    if cause.how == OUTSIDE:
        return Death(cause, start.begin_ms + 580, 0, hardware.nodes[0])
    inside = [(piece, rank) for rank in start.ranks for piece in rank.pieces if piece.phase == cause.phase]
    first, victim = min(inside, key=lambda pair: pair[0].begin_ms)
    last_ms = min(*(piece.end_ms for piece, _ in inside), start.ranks[0].begun_ms) - 1
    at_ms = max(first.begin_ms + 1, (first.begin_ms + last_ms) // 2)
    return _death_of(victim, cause, at_ms)


def _death_of(victim: RankStart, cause: Cause, at_ms: int) -> Death:
    return Death(cause, at_ms, victim.voice.rank, victim.voice.node)
