"""The launcher: runs a training command, watches it from outside, passes its output on.

The command runs in a process group of its own with its output going to files, so that stopping
or killing the launcher neither stops nor blocks it. The main thread looks at journals, processes
and output; two threads copy output; one writes the launcher's journal; one ships the directory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import BinaryIO

import msgspec

from ett_core.events import LAUNCHER_RANK
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.follow import Tail, copy
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import (
    Identity,
    identity_from_env,
    is_first_node,
    label_variable,
    sanitised_job_id,
)
from ett_trainer_hooks.journal import Journal, journal_path
from ett_trainer_hooks.ranks import Alarm, RankWatch
from ett_trainer_hooks.shipper import Shipper
from ett_trainer_hooks.supervision import Supervision
from ett_trainer_hooks.transport import poster

STATUS_OF_SIGNAL: Mapping[int, str] = {signal.SIGINT: "cancelled", signal.SIGTERM: "preempted"}
"""How a job ends that somebody stopped by a signal to its launcher."""

LAST_OUTPUT_S = 5.0

Sink = Callable[[bytes], object]


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
        """The environment of the command: what surrounds the launcher, and the job."""
        ours = {
            "ETT_JOB_ID": sanitised_job_id(self.job_id),
            "ETT_JOURNAL_DIR": str(self.journal_dir.absolute()),
        }
        if self.exporter_url is not None:
            ours["ETT_EXPORTER_URL"] = self.exporter_url
        return {**environ, **ours, **{label_variable(name): text for name, text in self.labels.items()}}


class Stop:
    """A signal that the launcher got: it is passed on to the command's group, and remembered."""

    def __init__(self, clock: Clock) -> None:
        self.decided: tuple[str, float] | None = None
        self._clock = clock
        self._group: int | None = None
        self._early: int | None = None

    def send_to(self, group: int) -> None:
        """Pass signals on to this process group, also one that came before it was there."""
        self._group = group
        if self._early is not None:
            signal_group(group, self._early)

    def heard(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.decided is None:
            self.decided = (STATUS_OF_SIGNAL[number], self._clock.now())
        if self._group is None:
            self._early = number
        else:
            signal_group(self._group, number)


def launch(
    settings: LaunchSettings,
    environ: Mapping[str, str] = os.environ,
    *,
    out: Sink | None = None,
    err: Sink | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> int:
    """Run the command to its end; returns its exit status (128 + n where signal n ended it).

    Args:
        settings: what to run, and where its journals go.
        environ: the environment to start from.
        out: takes what the command prints; this process's standard output by default.
        err: takes what it prints as errors; this process's standard error by default.
        say: takes sentences for the person who started the launcher.

    Raises:
        ValueError: an environment variable cannot be understood; the message names it.
        OSError: the journal directory cannot be made, or the command cannot be started.
    """
    environment = settings.environment(environ)
    settings.journal_dir.mkdir(parents=True, exist_ok=True)
    identity = launcher_identity(environment)
    clock = Clock()
    outputs = [settings.journal_dir / f"{identity.writer}.{name}.log" for name in ("stdout", "stderr")]
    watch = RankWatch(settings.journal_dir, job_id=identity.job_id, node=identity.node, now=clock.now)
    journal = Journal(journal_path(settings.journal_dir, identity.writer, os.getpid()), identity, clock=clock)
    supervision = Supervision(journal, watch, outputs[1], clock, tells_job_end=is_first_node(environ))
    sinks = (out or stream_sink(sys.stdout.buffer), err or stream_sink(sys.stderr.buffer))
    stop = Stop(clock)
    with shipping(settings, say), copying(outputs, sinks), closing(journal), listening(stop):
        supervision.begin()
        try:
            child = _start(settings, environment, outputs)
        except OSError as error:
            supervision.end_unstarted(f"{settings.command[0]}: {error.strerror}")
            raise
        status = _look_after(child, supervision, stop, settings.look_every_s)
    return shell_status(status)


def _start(
    settings: LaunchSettings, environment: Mapping[str, str], outputs: Sequence[Path]
) -> subprocess.Popen[bytes]:
    """Start the command in a session of its own, its output appended to files."""
    with outputs[0].open("ab") as stdout, outputs[1].open("ab") as stderr:
        return subprocess.Popen(
            settings.command, env=environment, stdout=stdout, stderr=stderr, start_new_session=True
        )


def _look_after(
    child: subprocess.Popen[bytes], supervision: Supervision, stop: Stop, look_every_s: float
) -> int:
    """Watch the command until it ends; its exit status, whatever becomes of the watching."""
    stop.send_to(child.pid)
    alarm = Alarm()
    guard = Guard()
    told = False
    while (status := child.poll()) is None:
        guard.call(supervision.look)
        if stop.decided is not None and not told:
            told = True
            supervision.fact("launcher", f"the launcher was told to stop: {stop.decided[0]}")
        alarm.watch([child.pid, *supervision.rank_pids])
        alarm.wait(look_every_s)
    alarm.close()
    guard.call(supervision.end, child.pid, status, stop.decided)
    return status


def launcher_identity(environ: Mapping[str, str]) -> Identity:
    """Who the launcher is: rank -1 of the attempt that it begins."""
    ranks_own = ("RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")
    mine = {name: text for name, text in environ.items() if name not in ranks_own}
    return msgspec.structs.replace(identity_from_env(mine), rank=LAUNCHER_RANK)


@contextmanager
def listening(stop: Stop) -> Iterator[None]:
    """Handle the signals that stop a job while the command runs (main thread only)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop.heard) for number in STATUS_OF_SIGNAL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    shipper = Shipper(settings.journal_dir, poster(settings.exporter_url))
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
                f"{left} bytes of events are not shipped yet; send them with: "
                f"ett ship {settings.journal_dir} --exporter {settings.exporter_url} --once"
            )


def stream_sink(stream: BinaryIO) -> Sink:
    """A sink that writes to a stream and flushes at once."""

    def sink(data: bytes) -> None:
        stream.write(data)
        stream.flush()

    return sink


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group; one that is gone is no error."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def shell_status(status: int) -> int:
    """An exit status as a shell shows it.

    >>> shell_status(3), shell_status(-9)
    (3, 137)
    """
    return 128 - status if status < 0 else status
