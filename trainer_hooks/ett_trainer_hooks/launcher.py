"""The launcher: runs a training command, watches it from outside, passes its output on.

The command runs in a process group of its own with its output going to files, so that stopping
or killing the launcher neither stops nor blocks it. The main thread looks at journals, processes
and output; two threads copy output; one writes the launcher's journal; one ships the directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from ett_core.events import LAUNCHER_RANK
from ett_trainer_hooks.auto import observed
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.elastic import ERROR_FILE
from ett_trainer_hooks.follow import Tail, copy
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import (
    Identity,
    identity_from_env,
    is_first_node,
    label_variable,
    sanitised_job_id,
)
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.output import Listener
from ett_trainer_hooks.parts import journal_path
from ett_trainer_hooks.place import writable_place
from ett_trainer_hooks.ranks import Alarm, RankWatch
from ett_trainer_hooks.shipper import Shipper
from ett_trainer_hooks.stopping import Stop, listening
from ett_trainer_hooks.supervision import TAIL_BYTES, Supervision
from ett_trainer_hooks.transport import exporter_address, poster

LAST_OUTPUT_S = 5.0
STREAMS = ("stdout", "stderr")

Sink = Callable[[bytes], object]
Observer = Callable[[], None]
"""Looks at the running job once, from the launcher's main thread; a fault of it is counted, not raised."""


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
    """Seconds to go on shipping after the command has ended."""
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
        if self.exporter_url is not None:
            poster(self.exporter_url)

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment of the command: what surrounds the launcher, and the job.

        Its output goes to files, which Python would fill in blocks: it is told to write at once,
        unless `PYTHONUNBUFFERED` is set already. With `ETT_AUTO=1` its processes are observed
        automatically.
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
        return observed(surrounding) if environ.get("ETT_AUTO") == "1" else surrounding


def launch(
    settings: LaunchSettings,
    environ: Mapping[str, str] = os.environ,
    *,
    out: Sink | None = None,
    err: Sink | None = None,
    say: Callable[[str], object] = lambda _: None,
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

    Raises:
        OSError: the command cannot be started.
    """
    place = writable_place(settings.journal_dir, say)
    if place is None:
        return _run_unobserved(settings.command, environ)
    settings = replace(settings, journal_dir=place)
    environment = settings.environment(environ)
    try:
        identity = launcher_identity(environment)
        environment.setdefault(ERROR_FILE, str(place / f"{identity.writer}.error.json"))
        tells_job_end = is_first_node(environ)
    except ValueError as error:
        say(f"{error}; the command runs unobserved")
        return _run_unobserved(settings.command, environ)
    say(f"job {identity.job_id}, events in {place}")
    sinks = (out or stream_sink(sys.stdout.buffer), err or stream_sink(sys.stderr.buffer))
    clock = Clock()
    stop = Stop(clock.now)
    outputs = [place / f"{identity.writer}.{name}.log" for name in STREAMS]
    watch = RankWatch(place, job_id=identity.job_id, node=identity.node, now=clock.now)
    journal = Journal(journal_path(place, identity.writer, os.getpid()), identity, clock=clock)
    listeners = [Listener(name, path, TAIL_BYTES[name]) for name, path in zip(STREAMS, outputs, strict=True)]
    error_file = Path(environment[ERROR_FILE])
    supervision = Supervision(
        journal, watch, listeners, clock, error_file=error_file, tells_job_end=tells_job_end
    )
    with shipping(settings, say), copying(outputs, sinks), closing(journal), listening(stop):
        status = _run_observed(settings, environment, outputs, supervision, stop)
    return shell_status(status)


def _run_observed(
    settings: LaunchSettings,
    environment: Mapping[str, str],
    outputs: Sequence[Path],
    supervision: Supervision,
    stop: Stop,
) -> int:
    """Run the command while `supervision` tells how it fares; its exit status."""
    supervision.begin()
    try:
        child = _start(settings.command, environment, outputs)
    except OSError as error:
        supervision.end_unstarted(f"{settings.command[0]}: {error.strerror}")
        raise
    observers: list[Observer] = [supervision.look]
    return _look_after(child, supervision, stop, observers, settings.look_every_s)


def _run_unobserved(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command with the launcher's own output and with the hooks off; its exit status."""
    stop = Stop(time.time)
    with listening(stop):
        child = subprocess.Popen(command, env={**environ, "ETT_DISABLED": "1"}, start_new_session=True)
        stop.send_to(child.pid)
        return shell_status(child.wait())


def _start(
    command: Sequence[str], environment: Mapping[str, str], outputs: Sequence[Path]
) -> subprocess.Popen[bytes]:
    """Start the command in a session of its own, its output appended to files."""
    with outputs[0].open("ab") as stdout, outputs[1].open("ab") as stderr:
        return subprocess.Popen(
            command, env=environment, stdout=stdout, stderr=stderr, start_new_session=True
        )


def _look_after(
    child: subprocess.Popen[bytes],
    supervision: Supervision,
    stop: Stop,
    observers: Sequence[Observer],
    look_every_s: float,
) -> int:
    """Let the observers look until the command ends; its exit status, whatever becomes of the watching."""
    stop.send_to(child.pid)
    alarm = Alarm()
    guard = Guard()
    told = False
    while (status := child.poll()) is None:
        for observe in observers:
            guard.call(observe)
        if stop.decided is not None and not told:
            told = True
            supervision.fact("launcher", f"the launcher was told to stop: {stop.decided[0]}")
        alarm.watch([child.pid, *supervision.rank_pids])
        supervision.heard(alarm.wait(look_every_s))
    alarm.close()
    guard.call(supervision.end, child.pid, status, stop.decided)
    return status


def launcher_identity(environ: Mapping[str, str]) -> Identity:
    """Who the launcher is: rank -1 of the attempt that it begins."""
    ranks_own = ("RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")
    mine = {name: text for name, text in environ.items() if name not in ranks_own}
    return msgspec.structs.replace(identity_from_env(mine), rank=LAUNCHER_RANK)


@contextmanager
def copying(paths: Sequence[Path], sinks: Sequence[Sink]) -> Iterator[None]:
    """Pass the output files on while the command runs, to their ends."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=copy, args=(Tail(path), sink, stop), name="ett-output", daemon=True)
        for path, sink in zip(paths, sinks, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=LAST_OUTPUT_S)


@contextmanager
def shipping(settings: LaunchSettings, say: Callable[[str], object]) -> Iterator[None]:
    """Ship the journals while the command runs, and what is left for a bounded time after it."""
    if settings.exporter_url is None:
        yield
        return
    exporter = exporter_address(settings.exporter_url)
    shipper = Shipper(settings.journal_dir, poster(settings.exporter_url), exporter)
    stop = threading.Event()
    thread = threading.Thread(
        target=shipper.run, args=(stop, settings.drain_s), name="ett-shipper", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=settings.drain_s + 1.0)
        if left := shipper.unsent_bytes():
            say(
                f"{left} bytes of events are not shipped yet "
                f"(the last answer: {shipper.tally.last_answer}); send them with: "
                f"ett ship {settings.journal_dir} --exporter {settings.exporter_url} --once"
            )


def stream_sink(stream: BinaryIO) -> Sink:
    """A sink that writes to a stream and flushes at once."""

    def sink(data: bytes) -> None:
        stream.write(data)
        stream.flush()

    return sink


def shell_status(status: int) -> int:
    """An exit status as a shell shows it.

    >>> shell_status(3), shell_status(-9)
    (3, 137)
    """
    return 128 - status if status < 0 else status
