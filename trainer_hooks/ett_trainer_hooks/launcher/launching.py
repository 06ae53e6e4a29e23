"""The launcher: runs a training command, watches it from outside, passes its output on.

The command runs in a process group of its own with its output going to files, so that stopping
or killing the launcher neither stops nor blocks it. The main thread looks at journals, processes
and output; two threads copy output; one writes the launcher's journal; one ships the directory.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec

from ett_core.events import LAUNCHER_RANK
from ett_trainer_hooks.auto import observed
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import (
    Identity,
    identity_from_env,
    is_first_node,
    label_variable,
    sanitised_job_id,
)
from ett_trainer_hooks.identity.slurm import is_in_step
from ett_trainer_hooks.identity.values import Values
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.journal.parts import Sizes, journal_path
from ett_trainer_hooks.journal.place import writable_place
from ett_trainer_hooks.launcher.attempts import Attempts, run_unobserved
from ett_trainer_hooks.launcher.cgroup import OomCounter
from ett_trainer_hooks.launcher.kernel import KernelLog, of_this_job
from ett_trainer_hooks.launcher.orphans import MARK, Family, adopting_orphans
from ett_trainer_hooks.launcher.output.listener import Listener
from ett_trainer_hooks.launcher.output.passing import Passing, Sink, stream_sink
from ett_trainer_hooks.launcher.output.room import OutputRoom
from ett_trainer_hooks.launcher.ranks import RankWatch
from ett_trainer_hooks.launcher.restarts import RestartPolicy
from ett_trainer_hooks.launcher.stalls import StallSettings
from ett_trainer_hooks.launcher.stalls.watchdog import watch_for_stalls
from ett_trainer_hooks.launcher.stopping import Stop, listening, scheduled_end
from ett_trainer_hooks.launcher.supervision import TAIL_BYTES, Supervision
from ett_trainer_hooks.launcher.torchrun import ERROR_FILE
from ett_trainer_hooks.shipping.shipper import Shipper
from ett_trainer_hooks.shipping.transport import exporter_address, poster

UNANSWERED_WAIT_S = 0.05
MEANWHILE_AFTER_S = 1.0
STREAMS = ("stdout", "stderr")


@dataclass(frozen=True, kw_only=True)
class LaunchSettings:
    """How to run a command under observation."""

    command: Sequence[str]
    """The program and its arguments."""
    job_id: str
    """The logical run, the same across restarts; characters that it may not hold become `-`."""
    journal_dir: Path
    """Where the ranks, the launcher and the output of the command write."""
    exporter_url: str | None = None
    """Exporter to ship to while the job runs; None keeps the journals on disk only."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Words that describe the job, such as `job_name`, `team`, `model`."""
    drain_s: float = 5.0
    """Seconds to go on shipping after the command has ended, while an exporter takes the events."""
    grace_s: float = 30.0
    """Seconds that the command has to end once the job is stopped, and ranks that outlive it."""
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    """When the command is started again by the launcher; never by default."""
    stalls: StallSettings = field(default_factory=StallSettings)
    """What counts as a stall, and what is done about one."""
    look_every_s: float = 0.2
    """Seconds between two looks at processes and output; a death is seen at once where the kernel tells."""

    def __post_init__(self) -> None:
        """Check what a person has given.

        Raises:
            ValueError: a setting is wrong; the message names it.
        """
        if not self.command:
            raise ValueError("command: there is none to run")
        if not self.job_id:
            raise ValueError("job_id is empty")
        if not self.look_every_s > 0:
            raise ValueError(f"look_every_s={self.look_every_s!r} is not above 0 seconds")
        for name in ("drain", "grace"):
            seconds = getattr(self, f"{name}_s")
            if not 0 <= seconds < float("inf"):
                raise ValueError(f"{name}={seconds!r} is not 0 or more seconds")
        if self.exporter_url is not None:
            poster(self.exporter_url)

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment of the command: what surrounds the launcher, and the job.

        Its output goes to files, which Python would fill in blocks: it is told to write at once,
        unless `PYTHONUNBUFFERED` is set already. Its processes are observed automatically, unless
        `ETT_AUTO=0` says otherwise.
        """
        ours = {
            "ETT_JOB_ID": sanitised_job_id(self.job_id),
            "ETT_JOURNAL_DIR": str(self.journal_dir.absolute()),
        }
        if self.exporter_url is not None:
            ours["ETT_EXPORTER_URL"] = self.exporter_url
        loud = {"PYTHONUNBUFFERED": "1"}
        labels = {label_variable(name): text for name, text in self.labels.items()}
        surrounding = {**loud, **environ, **ours, **labels}
        return observed(surrounding)


def launch(  # noqa: PLR0913 - the world is injected
    settings: LaunchSettings,
    environ: Mapping[str, str] = os.environ,
    *,
    out: Sink | None = None,
    err: Sink | None = None,
    say: Callable[[str], object] = lambda _: None,
    meanwhile: Callable[[], object] = lambda: None,
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

    Raises:
        OSError: the command cannot be started.
    """
    place = writable_place(settings.journal_dir, say)
    if place is None:
        return _unobserved(settings, environ, say)
    settings = replace(settings, journal_dir=place)
    environment = settings.environment(environ)
    try:
        identity = launcher_identity(environment)
        environment.setdefault(ERROR_FILE, str(place / f"{identity.writer}.error.json"))
        environment[MARK] = identity.writer
        tells_job_end = is_first_node(environ)
    except ValueError as error:
        say(f"{error}; the command runs unobserved")
        return _unobserved(settings, environ, say)
    say(f"job {identity.job_id}, events in {place}")
    sinks = (out or stream_sink(sys.stdout), err or stream_sink(sys.stderr))
    clock = Clock()
    stop = Stop(
        clock.now,
        grace_s=settings.grace_s,
        ends_at=scheduled_end(environ),
        is_task=is_in_step(Values(environ)),
        say=say,
    )
    # Listening comes before any thread begins: a thread inherits which signals it leaves to others.
    with adopting_orphans() as adopted, listening(stop):
        path = journal_path(place, identity.writer, os.getpid())
        journal = Journal(path, identity, clock=clock, sizes=Sizes.from_env(environ, say))
        outputs = [place / f"{identity.writer}.{name}.log" for name in STREAMS]
        Guard().call(make, outputs)
        with (
            shipping(settings, say),
            passing(outputs, sinks, stop, say) as passings,
            listening_to(outputs) as listeners,
            later(MEANWHILE_AFTER_S, meanwhile),
            closing(journal),
            closing(KernelLog()) as kernel,
        ):
            watch = RankWatch(place, job_id=identity.job_id, node=identity.node, now=clock.now)
            memory = OomCounter()
            supervision = Supervision(
                journal,
                watch,
                listeners,
                clock,
                error_file=Path(environment[ERROR_FILE]),
                tells_job_end=tells_job_end,
                memory_denial=memory.denial,
            )
            system = System(kernel, memory, supervision, clock)
            family = Family(identity.writer, environ, adopted=adopted)
            rooms = [
                OutputRoom(path, partial(done_with, passed, heard), partial(tell_given_up, supervision))
                for path, passed, heard in zip(outputs, passings, listeners, strict=True)
            ]
            stalls = watch_for_stalls(
                settings.stalls,
                watch=watch,
                reporter=supervision,
                journal=journal,
                processes=family.living,
                grace_s=settings.grace_s,
            )
            attempts = Attempts(
                command=settings.command,
                environment=environment,
                outputs=outputs,
                supervision=supervision,
                stop=stop,
                family=family,
                policy=settings.restarts,
                observers=[system.look, supervision.look, stalls.look, *(room.look for room in rooms)],
                oom_kills=lambda: system.oom_kills,
                grace_s=settings.grace_s,
                look_every_s=settings.look_every_s,
                say=say,
            )
            status = shell_status(attempts.run())
            Guard().call(free_rooms, rooms, family)
            return status


def make(paths: Sequence[Path]) -> None:
    """Make empty files, so that whoever follows them holds them from the beginning."""
    for path in paths:
        path.touch()


def done_with(passed: Passing, heard: Listener) -> int:
    """Bytes of an output file that were passed on and listened to."""
    return min(passed.passed_bytes, heard.heard_bytes)


def tell_given_up(supervision: Supervision, path: Path) -> None:
    """The file of the output does not hold all of it any more."""
    words = "for want of room on the disk its oldest output, which was passed on, is not kept there"
    supervision.fact("launcher", f"{path}: {words}")


def free_rooms(rooms: Sequence[OutputRoom], family: Family) -> None:
    """Nobody keeps room on the disk any more, unless something goes on that may print."""
    if not family.living():
        for room in rooms:
            room.close()


class System:
    """What the machine says beside the job: its kernel's log and the memory cgroup."""

    def __init__(self, kernel: KernelLog, ooms: OomCounter, supervision: Supervision, clock: Clock) -> None:
        self._kernel = kernel
        self._ooms = ooms
        self._supervision = supervision
        self._clock = clock

    @property
    def oom_kills(self) -> int:
        """Processes that the kernel has ended for want of memory, so far."""
        return self._ooms.kills

    def look(self) -> None:
        """Tell what is new."""
        for line in of_this_job(self._kernel.look(), self._ooms.path):
            self._supervision.kernel_line(line.text, self._clock.wall_at(line.uptime_s))
        if sentence := self._ooms.look():
            self._supervision.fact("kernel", sentence, self._clock.now())


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


@contextmanager
def passing(
    paths: Sequence[Path], sinks: Sequence[Sink], stop: Stop, say: Callable[[str], object]
) -> Iterator[list[Passing]]:
    """Pass the output files on while the command runs, to their ends."""
    passings = [Passing(path, sink) for path, sink in zip(paths, sinks, strict=True)]
    try:
        yield passings
    finally:
        for name, each in zip(STREAMS, passings, strict=True):
            if trouble := each.finish(stop.asked.is_set):
                say(f"{name} was not passed on to its end ({trouble}); it is in {each.path}")


@contextmanager
def listening_to(paths: Sequence[Path]) -> Iterator[list[Listener]]:
    """Hear the output files while the command runs."""
    listeners = [Listener(name, path, TAIL_BYTES[name]) for name, path in zip(STREAMS, paths, strict=True)]
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


@contextmanager
def later(after_s: float, function: Callable[[], object]) -> Iterator[None]:
    """Call a function in a thread after so many seconds, unless this is left before."""
    timer = threading.Timer(after_s, function)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def shipping(settings: LaunchSettings, say: Callable[[str], object]) -> Iterator[None]:
    """Ship the journals while the command runs, and what is left for a bounded time after it.

    Nobody waits for an exporter that does not answer.
    """
    if settings.exporter_url is None:
        yield
        return
    exporter = exporter_address(settings.exporter_url)
    shipper = Shipper(settings.journal_dir, poster(settings.exporter_url), exporter)
    stop = threading.Event()
    thread = threading.Thread(
        target=lambda: shipper.run(stop, settings.drain_s, awaits=False), name="ett-shipper", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=settings.drain_s + 1.0 if shipper.is_answered else UNANSWERED_WAIT_S)
        if left := shipper.unsent_bytes():
            say(
                f"{left} bytes of events are not shipped yet "
                f"(the last answer: {shipper.tally.last_answer}); send them with: "
                f"ett ship {settings.journal_dir} --exporter {settings.exporter_url} --once"
            )


def shell_status(status: int) -> int:
    """An exit status as a shell shows it.

    >>> shell_status(3), shell_status(-9)
    (3, 137)
    """
    return 128 - status if status < 0 else status
