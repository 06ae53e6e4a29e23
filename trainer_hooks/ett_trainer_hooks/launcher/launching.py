"""The launcher: runs a training command, watches it from outside, passes its output on.

The command runs in a process group of its own with its output going to files, so that stopping
or killing the launcher neither stops nor blocks it. The main thread looks at journals, processes
and output; two threads copy output; one writes the launcher's journal; one ships the directory.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ett_core.events import LAUNCHER_RANK
from ett_trainer_hooks.clock import Clock, later
from ett_trainer_hooks.guard import Guard, type_and_text
from ett_trainer_hooks.identity import Identity, identity_from_env, is_first_node
from ett_trainer_hooks.identity.slurm import is_in_step
from ett_trainer_hooks.identity.values import Values
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.journal.parts import SUFFIX, Sizes, journal_path, pid_of
from ett_trainer_hooks.journal.place import writable_place
from ett_trainer_hooks.launcher.attempts import Attempts, Progress, run_unobserved
from ett_trainer_hooks.launcher.cgroup import OomCounter
from ett_trainer_hooks.launcher.kernel import KernelLog
from ett_trainer_hooks.launcher.machine import Machine
from ett_trainer_hooks.launcher.orphans import MARK, Family, adopting_orphans
from ett_trainer_hooks.launcher.output.passing import Sink, stream_sink
from ett_trainer_hooks.launcher.output.room import OutputRoom
from ett_trainer_hooks.launcher.output.streams import Stream, streams
from ett_trainer_hooks.launcher.ranks import RankWatch
from ett_trainer_hooks.launcher.settings import LaunchSettings
from ett_trainer_hooks.launcher.stalls.stopped import StoppedWatch
from ett_trainer_hooks.launcher.stalls.watchdog import watch_for_stalls
from ett_trainer_hooks.launcher.standbys import StandIn, keeping
from ett_trainer_hooks.launcher.stopping import Stop, listening, scheduled_end
from ett_trainer_hooks.launcher.supervision import Supervision
from ett_trainer_hooks.launcher.torchrun import ERROR_FILE
from ett_trainer_hooks.procfs import ancestors
from ett_trainer_hooks.shipping.beside import shipping

MEANWHILE_AFTER_S = 1.0


def launch(  # noqa: PLR0913 - the world is injected
    settings: LaunchSettings,
    environ: Mapping[str, str] = os.environ,
    *,
    out: Sink | None = None,
    err: Sink | None = None,
    say: Callable[[str], object] = lambda _: None,
    meanwhile: Callable[[], object] = lambda: None,
    found_place: Callable[[Path], object] = lambda _: None,
) -> int:
    """Run the command to its end; returns its exit status (128 + n where signal n ended it).

    Whatever hinders the watching is said and does not hinder the command: events that cannot be
    kept where they should go to a temporary directory; without one, and where a variable of the
    environment cannot be understood, the command runs unobserved.

    Args:
        settings: what to run, and where its journals go.
        environ: the environment to start from.
        out: takes what the command prints; this process's standard output by default.
        err: takes what it prints as errors; this process's standard error by default.
        say: takes sentences for the person who started the launcher.
        meanwhile: is called once in a thread, when the command has had a second to start.
        found_place: is told the directory in which the events are kept.

    Raises:
        OSError: the command cannot be started.
    """
    place = writable_place(settings.journal_dir, say)
    if place is None:
        return _unobserved(settings, environ, say)
    try:
        start = Start.of(replace(settings, journal_dir=place), environ, say)
    except ValueError as error:
        say(f"{error}; the command runs unobserved")
        return _unobserved(settings, environ, say)
    found_place(place)
    say(f"job {start.identity.job_id}, events in {place}")
    sinks = (out or stream_sink(sys.stdout), err or stream_sink(sys.stderr))
    progress = Progress()
    try:
        # Listening comes before any thread begins: a thread inherits which signals it leaves to others.
        with adopting_orphans() as adopted, listening(start.stop):
            family = Family(start.identity.writer, environ, adopted=adopted)
            _observed(start, family, sinks, meanwhile, progress)
    except Exception as error:
        what = type_and_text(error)
        if not progress.has_begun:
            say(f"{what}; the command runs unobserved")
            return _unobserved(settings, environ, say)
        if progress.status is None:
            raise
        say(f"the watching failed at its end ({what})")
    assert progress.status is not None  # noqa: S101 - for the type checker
    return shell_status(progress.status)


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a launcher begins with."""

    settings: LaunchSettings
    identity: Identity
    """Who the launcher is."""
    environment: Mapping[str, str]
    """Of the command."""
    clock: Clock
    stop: Stop
    sizes: Sizes
    tells_job_end: bool
    """This is the first node, as others may be done before training is, and the outermost launcher."""
    say: Callable[[str], object]

    @classmethod
    def of(cls, settings: LaunchSettings, environ: Mapping[str, str], say: Callable[[str], object]) -> Start:
        """What the settings and the surroundings of the launcher say.

        Raises:
            ValueError: a variable cannot be understood; the message names it.
        """
        environment = settings.environment(environ)
        identity = launcher_identity(environment)
        environment.setdefault(ERROR_FILE, str(settings.journal_dir / f"{identity.writer}.error.json"))
        environment[MARK] = identity.writer
        clock = Clock()
        return cls(
            settings=settings,
            identity=identity,
            environment=environment,
            clock=clock,
            stop=Stop(
                clock.now,
                grace_s=settings.grace_s,
                ends_at=scheduled_end(environ),
                is_task=is_in_step(Values(environ)),
                say=say,
            ),
            sizes=Sizes.from_env(environ, say),
            tells_job_end=is_first_node(environ) and not is_nested(environ, identity.job_id),
            say=say,
        )


def _observed(
    start: Start,
    family: Family,
    sinks: Sequence[Sink],
    meanwhile: Callable[[], object],
    progress: Progress,
) -> None:
    """Run the command with everything that watches it; its exit status is left in `progress`."""
    settings, who, place = start.settings, start.identity, start.settings.journal_dir
    journal = Journal(journal_path(place, who.writer, os.getpid()), who, clock=start.clock, sizes=start.sizes)
    with (
        shipping(place, settings.exporter_url, settings.drain_s, start.say, settings.token_file),
        streams(place / who.writer, sinks, start.stop.asked.is_set, start.say) as opened,
        later(MEANWHILE_AFTER_S, meanwhile),
        closing(journal),
        closing(KernelLog()) as kernel,
        ExitStack() as beside,
    ):
        memory = OomCounter()
        stand_ins: dict[int, StandIn] = {}
        supervision = _supervision(start, journal, opened, memory, stand_ins)
        standbys = beside.enter_context(
            keeping(settings, supervision, place / who.writer, stand_ins, start.say)
        )
        family.onlookers = standbys.onlookers
        machine = Machine(kernel, memory, supervision, start.clock)
        rooms = [stream.room(supervision.output_given_up) for stream in opened]
        stalls = watch_for_stalls(
            settings.stalls,
            watch=supervision.watch,
            reporter=supervision,
            journal=journal,
            processes=family.living,
            grace_s=settings.grace_s,
            senders=supervision.senders,
        )
        stopped = StoppedWatch(
            lambda: supervision.watch.alive, supervision.fact, monotonic=time.monotonic, wall=start.clock.now
        )
        looks = [
            standbys.look,
            machine.look,
            supervision.look,
            stalls.look,
            stopped.look,
            *(room.look for room in rooms),
        ]
        attempts = Attempts(
            command=settings.command,
            environment={**start.environment, **standbys.environment},
            outputs=[stream.path for stream in opened],
            supervision=supervision,
            stop=start.stop,
            family=family,
            policy=settings.restarts,
            prepare=lambda environment: _use(settings.parts, supervision, environment),
            observers=looks,
            oom_kills=lambda: machine.oom_kills,
            grace_s=settings.grace_s,
            look_every_s=settings.look_every_s,
            say=start.say,
            progress=progress,
        )
        attempts.run()
        Guard().call(_free, rooms, family)


def _use(parts: frozenset[str], supervision: Supervision, environment: dict[str, str]) -> None:
    """Put the parts that need nothing but variables into the environment of an attempt."""
    if not parts:
        return
    from ett_trainer_hooks.pipeline import dynamic_sources, profile  # noqa: PLC0415 - for those who ask

    if "pgo" in parts:
        profile.keep(supervision, environment, modules={})
    if "dynamic_sources" in parts:
        dynamic_sources.leave_open(supervision, environment, modules={})


def _supervision(
    start: Start,
    journal: Journal,
    opened: Sequence[Stream],
    memory: OomCounter,
    stand_ins: Mapping[int, StandIn],
) -> Supervision:
    who = start.identity
    return Supervision(
        journal,
        RankWatch(
            journal.path.parent,
            job_id=who.job_id,
            node=who.node,
            now=start.clock.now,
            stand_ins=stand_ins,
        ),
        [stream.listener for stream in opened],
        start.clock,
        error_file=Path(start.environment[ERROR_FILE]),
        tells_job_end=start.tells_job_end,
        memory_denial=memory.denial,
    )


def _free(rooms: Sequence[OutputRoom], family: Family) -> None:
    """Nobody keeps room on the disk any more, unless something goes on that may print."""
    if not family.living():
        for room in rooms:
            room.close()


def _unobserved(settings: LaunchSettings, environ: Mapping[str, str], say: Callable[[str], object]) -> int:
    """Run the command with the launcher's own output and with the hooks off; its exit status."""
    stop = Stop(time.time, grace_s=settings.grace_s, say=say)
    with listening(stop):
        return shell_status(run_unobserved(settings.command, environ, stop))


def launcher_identity(environ: Mapping[str, str]) -> Identity:
    """Who the launcher is: rank -1 of the attempt that it begins."""
    ranks_own = ("RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")
    mine = {name: text for name, text in environ.items() if name not in ranks_own}
    return msgspec.structs.replace(identity_from_env(mine), rank=LAUNCHER_RANK)


def is_nested(environ: Mapping[str, str], job_id: str, parent: int | None = None) -> bool:
    """Another launcher of the same job has started this one, as where a script that it runs has its own.

    The mark alone tells nothing: it may have travelled to another node, or outlived its launcher.
    """
    mark, place = environ.get(MARK), environ.get("ETT_JOURNAL_DIR")
    if not mark or not mark.isalnum() or not place or environ.get("ETT_JOB_ID") != job_id:
        return False
    above = set(ancestors(os.getppid() if parent is None else parent))
    return any(pid_of(path) in above for path in Path(place).glob(f"{mark}-*{SUFFIX}"))


def shell_status(status: int) -> int:
    """An exit status as a shell shows it.

    >>> shell_status(3), shell_status(-9)
    (3, 137)
    """
    return 128 - status if status < 0 else status
