"""Runs a command to its end, under observation, and again where that was asked for.

The launcher's main thread: it starts the command, lets the observers look, sees to it that a
command that was told to stop does stop and that none of its ranks outlives it, and starts it
again as the policy says. Each start is an attempt with a number of its own.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ett_trainer_hooks.guard import Guard, warn_on_stderr
from ett_trainer_hooks.launcher.alarm import Alarm
from ett_trainer_hooks.launcher.orphans import Family, end_all, in_pids
from ett_trainer_hooks.launcher.restarts import MOST_ATTEMPTS, RESTED_AFTER_S, Ending, RestartPolicy
from ett_trainer_hooks.launcher.stopping import Stop, hearing_directly, signal_group
from ett_trainer_hooks.launcher.supervision import Supervision
from ett_trainer_hooks.launcher.verdicts import in_words, verdict_of_status
from ett_trainer_hooks.procfs import Process

Observer = Callable[[], None]
"""Looks at the running job once, from the launcher's main thread; a fault of it is counted, not raised."""

AFTER_SIGKILL_S = 5.0


@dataclass
class Progress:
    """How far a command has come, for whoever has to see to it when the watching fails."""

    has_begun: bool = False
    """The command was started, or its start has failed."""
    status: int | None = None
    """Its exit status, once it is over for good."""


@dataclass(kw_only=True)
class Attempts:
    """The attempts of one command; see the module."""

    command: Sequence[str]
    environment: Mapping[str, str]
    outputs: Sequence[Path]
    """Files for standard output and standard error."""
    supervision: Supervision
    stop: Stop
    family: Family
    policy: RestartPolicy = field(default_factory=RestartPolicy)
    prepare: Callable[[dict[str, str]], object] = lambda _: None
    """Called before each attempt with a copy of the environment, which it may add to."""
    observers: Sequence[Observer] = ()
    oom_kills: Callable[[], int] = lambda: 0
    """Processes that the kernel has ended for want of memory, so far."""
    grace_s: float = 30.0
    look_every_s: float = 0.2
    say: Callable[[str], object] = lambda _: None
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        """Nothing has been started yet."""
        self._guard = Guard()
        self._first_attempt = self.supervision.attempt
        self._restarts_in_row = 0
        self.stop.senders = self.supervision.senders

    def run(self) -> int:
        """Run the command until it is over for good; its exit status.

        Raises:
            OSError: the command cannot be started.
        """
        restarts = 0
        environment = dict(self.environment)
        while True:
            began_s = time.monotonic()
            ending = self._run_once(environment)
            lasted_s = time.monotonic() - began_s
            if not self._goes_on(ending, restarts):
                break
            restarts += 1
            self._restarts_in_row = 1 if lasted_s >= RESTED_AFTER_S else self._restarts_in_row + 1
            if self._is_stopped_before(restarts, ending):
                break
            attempt = self.supervision.attempt + 1
            environment["ETT_ATTEMPT"] = str(attempt)
            self.supervision.start_again(attempt)
        self.progress.status = ending.status
        self._guard.call(self.supervision.end_job)
        return ending.status

    def _run_once(self, environment: Mapping[str, str]) -> Ending:
        """One attempt from its start until nothing of it is left."""
        self._guard.call(self.supervision.begin)
        killed_before = self._guard.call(self.oom_kills) or 0
        try:
            child = start(self.command, self._prepared(environment), self.outputs)
        except OSError as error:
            if (
                error.filename is None and not self.progress.has_begun
            ):  # the system lacks something, not the command
                raise
            self.progress.has_begun = True
            self._guard.call(self.supervision.end_unstarted, f"{self.command[0]}: {error.strerror}")
            raise
        self.progress.has_begun = True
        status = self._look_after(child)
        self._guard.call(self._end_orphans, child.pid, status)
        self._guard.call(self.supervision.end_attempt, child.pid, status, self.stop.decided)
        ranks = tuple(self.supervision.failed_statuses)
        return Ending(status, ranks, (self._guard.call(self.oom_kills) or killed_before) - killed_before)

    def _prepared(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of one attempt; what an earlier one was given is none of it."""
        prepared = dict(environment)
        self._guard.call(self.prepare, prepared)
        return prepared

    def _look_after(self, child: subprocess.Popen[bytes]) -> int:
        """Let the observers look until the command ends; its exit status, whatever the watching does."""
        self.stop.send_to(child.pid)
        alarm = Alarm()
        killed = False
        while (status := child.poll()) is None:
            self._guard.call(self._look, child.pid)
            if self.stop.is_due and not killed:
                killed = self._guard.call(self._kill, child.pid) or False
            faults = self._guard.faults
            self._guard.call(self._wait, alarm, child.pid)
            if self._guard.faults > faults:
                time.sleep(self.look_every_s)
        self._guard.call(alarm.close)
        self.stop.send_to(None)
        self._guard.call(self._look, child.pid, {child.pid: status})
        return status

    def _wait(self, alarm: Alarm, command: int) -> None:
        """Wait until a process of the job ends, or until it is time to look again."""
        alarm.watch([command, *self.supervision.rank_pids])
        self.supervision.heard(alarm.wait(self.look_every_s))

    def _look(self, command: int, after: Mapping[int, int] | None = None) -> None:
        """One round of looking; `after` holds the exit status of the command once it is over."""
        self.supervision.heard({**self.family.reap(command), **(after or {})})
        for observe in self.observers:
            self._guard.call(observe)
        while self.stop.notes:
            self.supervision.fact("launcher", self.stop.notes.pop(0))

    def _kill(self, group: int) -> bool:
        """End everything of the command that is left: its time is over. True: that is done."""
        left = self.family.living()
        words = f"the command did not end within its {self.grace_s:g} s of grace, or was told to stop twice"
        self.supervision.fact("launcher", f"{words}: SIGKILL to {in_pids(left)}")
        self.say(f"{words}; it is killed")
        self.supervision.senders.sent(signal.SIGKILL, "the launcher, as the command did not end in time")
        signal_group(group, signal.SIGKILL)
        end_all(left, signal.SIGKILL)
        return True

    def _end_orphans(self, command: int, status: int) -> None:
        """End what outlived the command, unless it succeeded and left ranks on purpose."""
        left = self._left_behind(command)
        if not left:
            return
        how = in_words("the command", verdict_of_status(status))
        if status == 0 and self.stop.decided is None:
            words = f"{how} and left ranks that go on: {in_pids(left)}; nobody watches them any more"
            self.supervision.fact("launcher", words)
            self.say(words)
            return
        limit_s = self.grace_s if self.stop.decided is None else self.stop.left_s
        words = f"{how} and left behind {in_pids(left)}"
        self.supervision.tell_command(command, status, self.stop.decided)
        self.supervision.fact("launcher", f"{words}; SIGKILL after {limit_s:.3g} s")
        self.say(f"{words}; {limit_s:.3g} s to end")
        untold = [each for each in left if not self._was_told(each, command)]
        self._end(untold, signal.SIGTERM, f"the launcher, as {how} and had left it behind")
        if not self._gone_within(command, limit_s):
            left = self._left_behind(command)
            self.supervision.fact("launcher", f"SIGKILL to {in_pids(left)}")
            self._end(left, signal.SIGKILL, "the launcher, as it did not end when told to")
            if not self._gone_within(command, AFTER_SIGKILL_S, heeds_stop=False):
                left = self._left_behind(command)
                self.say(f"the kernel does not end {in_pids(left)}; this machine may need a look")

    def _end(self, processes: Sequence[Process], number: int, by: str) -> None:
        self.supervision.senders.sent(number, by, [each.pid for each in processes])
        end_all(processes, number)

    def _left_behind(self, command: int) -> list[Process]:
        """The ranks that live; where the job was stopped, also what is left of the command's group.

        That group was told to stop and may be about its last checkpoint.
        """
        ranks = self.family.workers(self.supervision.rank_pids)
        if self.stop.decided is None:
            return ranks
        known = {each.pid for each in ranks}
        return ranks + [
            each for each in self.family.living() if each.pid not in known and each.group == command
        ]

    def _was_told(self, process: Process, command: int) -> bool:
        """The process got the signal that stopped the job with the rest of the command's group."""
        return self.stop.decided is not None and process.group == command

    def _gone_within(self, command: int, limit_s: float, *, heeds_stop: bool = True) -> bool:
        """Look until nothing is left; False where something is after `limit_s`, or after a second stop."""
        deadline_s = time.monotonic() + limit_s
        alarm = Alarm()
        try:
            while (left := self._left_behind(command)) or self.family.ended(command):
                if time.monotonic() >= deadline_s or (heeds_stop and self.stop.is_due):
                    return False
                alarm.watch([each.pid for each in left])
                self.supervision.heard(alarm.wait(min(self.look_every_s, 0.1)))
                self._guard.call(self._look, command)
        finally:
            alarm.close()
            self._guard.call(self._look, command)
        return True

    def _goes_on(self, ending: Ending, restarts: int) -> bool:
        """The command is started again after this end."""
        if self.stop.decided is not None or not self.policy.allows(ending):
            return False
        if restarts >= self.policy.max_restarts:
            if self.policy.max_restarts:
                self.say(f"not started again: {restarts} of {self.policy.max_restarts} restarts are used up")
            return False
        if self.supervision.attempt + 1 >= self._first_attempt + MOST_ATTEMPTS:
            self.say(f"not started again: {MOST_ATTEMPTS} attempts are as many as can be told apart")
            return False
        return True

    def _is_stopped_before(self, restart: int, ending: Ending) -> bool:
        """Wait before a restart; True where somebody stops the job meanwhile."""
        delay_s = self.policy.delay_before(self._restarts_in_row)
        how = in_words("the command", verdict_of_status(ending.status))
        words = f"{how}; restart {restart} of {self.policy.max_restarts} in {delay_s:g} s"
        self.supervision.decision("restart", words, {"restart": restart, "delay_s": delay_s})
        self.say(words)
        if not self.stop.asked.wait(delay_s):
            return False
        self.supervision.stopped_between(self.stop.decided)
        return True


def start(
    command: Sequence[str], environment: Mapping[str, str], outputs: Sequence[Path]
) -> subprocess.Popen[bytes]:
    """Start the command in a session of its own, its output appended to files.

    Where a file cannot be opened, that stream is the launcher's own.

    Raises:
        OSError: it cannot be started.
    """
    with ExitStack() as files, hearing_directly():
        stdout, stderr = (_opened(path, files) for path in outputs)
        return subprocess.Popen(
            command, env=environment, stdout=stdout, stderr=stderr, start_new_session=True
        )


def _opened(path: Path, files: ExitStack) -> BinaryIO | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return files.enter_context(path.open("ab"))
    except OSError as error:
        warn_on_stderr(f"{path}: {error.strerror}; this output is not watched")
        return None


def run_unobserved(command: Sequence[str], environ: Mapping[str, str], stop: Stop) -> int:
    """Run the command with the launcher's own output and with the hooks off; its exit status."""
    with hearing_directly():
        child = subprocess.Popen(command, env={**environ, "ETT_DISABLED": "1"}, start_new_session=True)
    stop.send_to(child.pid)
    idle = threading.Event()
    alarm = Alarm()
    while child.poll() is None:
        if stop.is_due:
            signal_group(child.pid, signal.SIGKILL)
            idle.wait(0.1)
        alarm.watch([child.pid])
        alarm.wait(0.2)
    alarm.close()
    return child.wait()
