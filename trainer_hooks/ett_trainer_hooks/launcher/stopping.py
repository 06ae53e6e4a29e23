"""The signals that a launcher gets: it passes them on, remembers who stopped the job, and sees to the end.

One thread waits for the signals while the command runs, as only waiting tells who sent them; all
other threads have them blocked. Handlers stand behind it for the moments in which the main thread
lets signals through (while it starts the command, so that the command gets an ordinary mask).
Used in the main thread of a program; elsewhere nothing is heard.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import msgspec

from ett_trainer_hooks import procfs
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.launcher.senders import Senders

STATUS_OF_SIGNAL: Mapping[int, str] = {
    signal.SIGINT: "cancelled",
    signal.SIGQUIT: "cancelled",
    signal.SIGHUP: "cancelled",
    signal.SIGTERM: "preempted",
}
"""How a job ends that somebody stopped by a signal to its launcher."""
WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals by which schedulers warn a job; they stop nobody who does not want it."""
HEARD = (*STATUS_OF_SIGNAL, *WARNINGS)
ONE_PRESS_S = 0.5
"""What comes within this after a stop is the same stop: some senders signal a process and its group."""
TIME_LIMIT_SLACK_S = 5.0
SENDS_TO_ALL = ("slurmstepd",)
"""Programs that send a signal to every process of a step, and to the shell alone of a batch script."""


class Sender(msgspec.Struct, frozen=True):
    """Who sent a signal; `pid` 0 is the kernel, or a process that cannot be seen from here."""

    pid: int
    uid: int
    name: str = ""

    def __str__(self) -> str:
        """In words, for a person."""
        if self.pid == 0:
            return "the kernel or a process outside this container"
        name = f"{self.name or 'a process that is gone'}, "
        return f"process {self.pid} ({name}uid {self.uid})"


class Stop:
    """What the launcher was told by signals; it is passed on, and the first stop is remembered.

    From the first stop on the command has `grace_s` seconds; a second stop ends it at once.
    `ends_at` is the Unix time at which the scheduler ends the job, where that is known. As a task of
    a Slurm step (`is_task`) the launcher gets what all processes of the step get.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        now: Callable[[], float],
        *,
        grace_s: float = 30.0,
        ends_at: float | None = None,
        is_task: bool = False,
        say: Callable[[str], object] = lambda _: None,
        send: Callable[[int, int], bool] | None = None,
    ) -> None:
        self.decided: tuple[str, float] | None = None
        """How the job ends, and since when that is so; None while nobody has stopped it."""
        self.notes: list[str] = []
        """What happened, in sentences; whoever tells them takes them away."""
        self.asked = threading.Event()
        """Set once somebody has stopped the job."""
        self.senders = Senders()
        """Is told of the signals that are passed on."""
        self._now = now
        self._grace_s = grace_s
        self._ends_at = ends_at
        self._is_task = is_task
        self._say = say
        self._send = send or signal_group
        self._group: int | None = None
        self._early: list[int] = []
        self._at_once = False

    @property
    def is_due(self) -> bool:
        """The time that the command had to end by itself is over."""
        return self.decided is not None and self.left_s <= 0

    @property
    def left_s(self) -> float:
        """Seconds that the command still has to end by itself; all of them while nobody has stopped it."""
        if self.decided is None:
            return self._grace_s
        return 0.0 if self._at_once else max(self.decided[1] + self._grace_s - self._now(), 0.0)

    def send_to(self, group: int | None) -> None:
        """Pass signals on to this process group, also those that came before it was there."""
        self._group = group
        early, self._early = self._early, []
        for number in early:
            self._pass_on(number, None)

    def heard(self, number: int, sender: Sender | None = None) -> None:
        """Take a signal in."""
        words = f"{signal.Signals(number).name} from {sender or 'a sender that is not known'}"
        went_to_all = self._reaches_all(sender)
        by = str(sender) if went_to_all else f"the launcher, which got it from {sender or 'somebody unknown'}"
        status = STATUS_OF_SIGNAL.get(number)
        if status is None:
            self.senders.sent(number, by)
            self._pass_on(number, sender)
            self.notes.append(f"the launcher got {words} and passed it on to those who handle it")
            return
        if self.decided is None:
            self.decided = (self._status(status), self._now())
            self.asked.set()
            self.senders.sent(number, by)
            self._pass_on(number, sender)
            self.notes.append(f"the launcher was told to stop: {words}; the job ends as {self.decided[0]}")
            how = "sent to every process of the step" if went_to_all else "passed on"
            self._say(f"{words}: {how}; the command has {self._grace_s:g} s to end")
        elif self._now() - self.decided[1] >= ONE_PRESS_S:
            self._at_once = True
            self.notes.append(f"the launcher was told again to stop: {words}; the command is ended at once")

    def _status(self, usual: str) -> str:
        """A stop by the scheduler at the end of the time that it gave is its time limit."""
        at_limit = self._ends_at is not None and self._now() >= self._ends_at - TIME_LIMIT_SLACK_S
        return "timed_out" if at_limit and usual == "preempted" else usual

    def _reaches_all(self, sender: Sender | None) -> bool:
        """The sender signals the processes of the command itself."""
        return self._is_task and sender is not None and sender.name in SENDS_TO_ALL

    def _pass_on(self, number: int, sender: Sender | None) -> None:
        if self._group is None:
            self._early.append(number)
        elif self._reaches_all(sender):
            return
        elif number in WARNINGS:
            warn(self._group, number)
        elif not self._send(self._group, number):
            self.notes.append(f"{signal.Signals(number).name} to the command was refused by the kernel")


@contextmanager
def listening(stop: Stop) -> Iterator[None]:
    """Hear the signals to this program for a while (in its main thread only)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in HEARD if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    over = threading.Event()

    def handle(number: int, _frame: FrameType | None) -> None:
        stop.heard(number)

    before = {number: signal.signal(number, handle) for number in heard}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    thread = threading.Thread(target=_wait, args=(stop, heard, over), name="ett-signals", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be had: the handlers hear, without knowing the sender
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield
    finally:
        over.set()
        if thread.ident is not None and heard:
            signal.pthread_kill(thread.ident, heard[0])
            thread.join(1.0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def hearing_directly() -> Iterator[None]:
    """Let signals through to the handlers of the main thread, as while a process is started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _wait(stop: Stop, heard: list[int], over: threading.Event) -> None:
    """Take signals in one after the other; one that comes when it is `over` only wakes."""
    guard = Guard()
    while heard:
        told = signal.sigwaitinfo(heard)
        if over.is_set():
            return
        sender = Sender(told.si_pid, told.si_uid, procfs.name(told.si_pid))
        guard.call(stop.heard, told.si_signo, sender)


def signal_group(group: int, number: int, kill: Callable[[int, int], None] = os.killpg) -> bool:
    """Send a signal to a process group; False where that is not allowed. One that is gone is no error."""
    try:
        kill(group, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def warn(leader: int, number: int) -> None:
    """Send a signal to those of a command that have a handler for it: of the others it would be the end."""
    pids = {leader, *procfs.descendants([leader], procfs.processes())}
    for pid in pids:
        if procfs.catches(pid, number):
            signal_process(pid, number)


def signal_process(pid: int, number: int) -> bool:
    """Send a signal to one process; False where it is gone or that is not allowed."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def scheduled_end(environ: Mapping[str, str]) -> float | None:
    """Unix seconds at which Slurm ends the job; None where that is not told.

    >>> scheduled_end({"SLURM_JOB_END_TIME": "1764000000"}), scheduled_end({"SLURM_JOB_END_TIME": "x"})
    (1764000000.0, None)
    """
    text = environ.get("SLURM_JOB_END_TIME", "").strip()
    return float(text) if text.isdecimal() else None
