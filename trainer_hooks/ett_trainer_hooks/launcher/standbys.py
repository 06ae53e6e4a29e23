"""The standbys of a launcher's node: one a local rank, made when its rank asks for it, ended with the job.

An observer of the launcher's main thread. It keeps a directory that only this user may enter, in which
ranks put what they want and keepers listen. A keeper whose standby has been taken goes on without the
launcher; all others end when the launcher closes the socket that it shares with them, or dies.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ett_trainer_hooks import procfs
from ett_trainer_hooks.launcher.settings import LaunchSettings
from ett_trainer_hooks.launcher.standby_place import StandbyPlace
from ett_trainer_hooks.launcher.stopping import hearing_directly
from ett_trainer_hooks.launcher.unready import NOT_READY_S, Preparing
from ett_trainer_hooks.standby.handing_over import PLACE, parted
from ett_trainer_hooks.standby.wanted import OURS, Wanted

MESSAGE_BYTES = 65536
PARTING = b"parted"
ENDS_WITHIN_S = 5.0


class StandIn(NamedTuple):
    """The process that waits in the place of a standby that has taken over, and what it was started with."""

    rank_pid: int
    environ: Mapping[str, str]


class Reporter(Protocol):
    """Who tells of standbys."""

    def decision(self, what: str, why: str, values: Mapping[str, float]) -> None:
        """Something was decided."""

    def heard(self, statuses: Mapping[int, int]) -> None:
        """Processes have ended, with these exit statuses."""


class _Kept:
    """A keeper, what it was made for, and what it has told so far."""

    def __init__(
        self,
        local_rank: int,
        keeper: subprocess.Popen[bytes],
        control: socket.socket,
        wanted: Wanted,
        begun_s: float,
    ) -> None:
        self.local_rank = local_rank
        self.keeper = keeper
        self.control = control
        self.wanted = wanted
        self.begun_s = begun_s
        self.standby: int | None = None
        self.taken_by: int | None = None
        self.has_failed = False
        self.is_late = False
        """It was said that it takes long."""

    def part(self) -> None:
        """Let the keeper go: a standby that nobody has come for ends."""
        with suppress(OSError):  # it is gone
            self.control.send(PARTING)
        self.control.close()


class NoStandbys:
    """Where none are wanted."""

    environment: Mapping[str, str] = {}

    def onlookers(self) -> set[int]:
        """There are none."""
        return set()

    def look(self) -> None:
        """Nothing is to be seen."""


class Standbys:
    """See the module.

    `log` gives the file for what a standby prints, by its local rank. `stand_ins` is filled: who waits in
    the place of each standby that has taken over, by the pid of that. `clock` counts seconds.

    Raises:
        OSError: there is no place for a directory.
    """

    def __init__(
        self,
        reporter: Reporter,
        log: Callable[[int], Path],
        stand_ins: dict[int, StandIn],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home = StandbyPlace()
        self.place = self._home.path
        self._clock = clock
        self._stand_ins = stand_ins
        self._reporter = reporter
        self._log = log
        self._kept: dict[int, _Kept] = {}
        self._leaving: list[_Kept] = []
        self._seen: dict[int, int] = {}

    @property
    def environment(self) -> dict[str, str]:
        """What a command needs so that its ranks find the standbys."""
        return {PLACE: str(self.place)}

    def onlookers(self) -> set[int]:
        """Processes that do no work of the job: keepers, standbys that wait, ranks that wait for one."""
        everyone = self._all()
        found = {kept.keeper.pid for kept in everyone}
        found |= {kept.standby for kept in everyone if kept.standby and kept.taken_by is None}
        return found | {kept.taken_by for kept in everyone if kept.taken_by is not None}

    def look(self) -> None:
        """Hear what the keepers tell, and have those standbys made that ranks ask for."""
        for kept in self._all():
            self._hear(kept)
        for kept in list(self._kept.values()):
            if kept.standby is None and not kept.has_failed:
                self._look_at_unready(kept)
        for kept in self._all():
            if kept.keeper.poll() is not None:
                self._forget(kept)
        for path in self.place.glob("*.wanted"):
            try:
                local_rank, stamp = int(path.stem), path.stat().st_mtime_ns
                if self._seen.get(local_rank) == stamp:
                    continue
                wanted = Wanted.load(path)
            except FileNotFoundError:  # the rank has started again
                continue
            self._seen[local_rank] = stamp
            self._make(local_rank, wanted, path)

    def close(self) -> None:
        """End the standbys that nobody has come for, and remove the directory."""
        for kept in self._all():
            kept.part()
            if kept.taken_by is None:
                try:
                    kept.keeper.wait(ENDS_WITHIN_S)
                except subprocess.TimeoutExpired:
                    kept.keeper.kill()
                    kept.keeper.wait()
        self._kept.clear()
        self._home.remove()

    def _make(self, local_rank: int, wanted: Wanted, path: Path) -> None:
        before = self._kept.get(local_rank)
        if before is not None:
            self._hear(before)  # it may have been taken by the very rank that asks
        if before is not None and before.taken_by is None:
            if before.wanted.is_like(wanted):
                return
            before.part()
        if before is not None:
            self._leaving.append(self._kept.pop(local_rank))
        parts = parted(wanted.argv)
        if parts is None:
            self._tell("no standby", local_rank, "the program is neither a file nor a module")
            return
        try:
            self._kept[local_rank] = self._started(local_rank, wanted, parts[0], path)
        except OSError as error:
            self._tell("no standby", local_rank, f"it cannot be started: {error}")

    def _started(self, local_rank: int, wanted: Wanted, options: list[str], path: Path) -> _Kept:
        """A new keeper, in a session of its own, which comes after those of the ranks."""
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.setblocking(False)  # noqa: FBT003
        environ = {name: text for name, text in wanted.environ.items() if name not in OURS}
        words = [str(its.fileno()), str(path), str(path.with_suffix(".socket"))]
        with ExitStack() as files, hearing_directly():
            files.enter_context(its)
            printed = files.enter_context(self._log(local_rank).open("ab"))
            keeper = subprocess.Popen(
                [wanted.executable, *options, "-m", "ett_trainer_hooks.standby", *words],
                env={**environ, "ETT_DISABLED": "1"},
                cwd=wanted.cwd,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        return _Kept(local_rank, keeper, mine, wanted, self._clock())

    def _look_at_unready(self, kept: _Kept) -> None:
        """End a standby whose rank has started without it; tell of one that takes long."""
        local_rank, since_s = kept.local_rank, self._clock() - kept.begun_s
        starts_again = not (self.place / f"{local_rank}.wanted").exists()
        if not starts_again and (kept.is_late or since_s <= NOT_READY_S):
            return
        pid = kept.keeper.pid
        so_far = Preparing(since_s, procfs.processor_s(pid), procfs.queued_s(pid))
        if starts_again:
            kept.part()
            self._leaving.append(self._kept.pop(local_rank))
            why = f"the rank started again before it was ready: {so_far.had()}"
            what, then = "no standby", "the next is made once the rank trains"
        else:
            kept.is_late = True
            what, why, then = "a standby is not ready yet", so_far.had(), so_far.why(self._log(local_rank))
        self._tell(what, local_rank, f"{why}; {then}", **so_far.values())

    def _all(self) -> list[_Kept]:
        return [*self._kept.values(), *self._leaving]

    def _hear(self, kept: _Kept) -> None:
        while True:
            try:
                told = kept.control.recv(MESSAGE_BYTES)
            except OSError:
                return
            if not told:
                return
            self._heard(kept, json.loads(told))

    def _heard(self, kept: _Kept, told: Mapping[str, Any]) -> None:
        local_rank = kept.local_rank
        if "ready" in told:
            kept.standby = told["ready"]
            megabytes, took_s = told["bytes"] / 1e6, self._clock() - kept.begun_s
            words = f"it holds {megabytes:.0f} MB and waits (pid {kept.standby}), made in {took_s:.0f} s"
            values = {"bytes": told["bytes"], "seconds": took_s}
            self._tell("a standby is ready", local_rank, words, **values)
        elif "failed" in told:
            kept.has_failed = True
            when = "preparing it failed: " if kept.standby is None else ""
            self._tell("no standby", local_rank, f"{when}{told['failed']}; see {self._log(local_rank)}")
        elif "refused" in told:
            self._tell(
                "the standby was not used", local_rank, f"{told['refused']}; the rank started as usual"
            )
        elif "taken" in told:
            kept.taken_by = told["rank_pid"]
            self._stand_ins[told["taken"]] = StandIn(told["rank_pid"], told["environ"])
            words = f"process {told['taken']} runs the program of process {told['rank_pid']}"
            self._tell("the standby took over", local_rank, words)
        elif "ended" in told:
            self._reporter.heard({told["ended"]: told["status"]})

    def _tell(self, what: str, local_rank: int, why: str, **values: float) -> None:
        self._reporter.decision(what, f"local rank {local_rank}: {why}", {"local_rank": local_rank, **values})

    def _forget(self, kept: _Kept) -> None:
        """The keeper has ended."""
        self._hear(kept)
        kept.control.close()
        if kept in self._leaving:
            self._leaving.remove(kept)
            return
        del self._kept[kept.local_rank]
        if kept.standby is None and not kept.has_failed:
            why = f"its process ended with status {kept.keeper.returncode}"
            self._tell("no standby", kept.local_rank, f"{why}; see {self._log(kept.local_rank)}")


def keeping(
    settings: LaunchSettings,
    reporter: Reporter,
    base: Path,
    stand_ins: dict[int, StandIn],
    say: Callable[[str], object],
) -> AbstractContextManager[Standbys | NoStandbys]:
    """The standbys of a launcher, where they are wanted and can be had; files are named after `base`."""
    if not settings.standby:
        return nullcontext(NoStandbys())

    def log(local_rank: int) -> Path:
        return base.with_name(f"{base.name}.standby-{local_rank}.log")

    try:
        return closing(Standbys(reporter, log, stand_ins))
    except OSError as error:
        say(f"no standbys: {error}")
        return nullcontext(NoStandbys())
