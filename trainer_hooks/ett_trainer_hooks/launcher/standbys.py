"""The standbys of a launcher's node: one a local rank, made when its rank asks for it, ended with the job.

An observer of the launcher's main thread. It keeps a directory that only this user may enter, in which
ranks put what they want and keepers listen. A keeper whose standby has been taken goes on without the
launcher; all others end when the launcher closes the socket that it shares with them, or dies.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ett_trainer_hooks.launcher.settings import LaunchSettings
from ett_trainer_hooks.launcher.stopping import hearing_directly
from ett_trainer_hooks.standby.handing_over import PLACE, parted
from ett_trainer_hooks.standby.wanted import OURS, Wanted

MESSAGE_BYTES = 65536
PARTING = b"parted"
ENDS_WITHIN_S = 5.0
LONGEST_PLACE = 74
"""Characters: with those of the directory and the socket in it they are fewer than the kernel's 108."""


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
        self, local_rank: int, keeper: subprocess.Popen[bytes], control: socket.socket, wanted: Wanted
    ) -> None:
        self.local_rank = local_rank
        self.keeper = keeper
        self.control = control
        self.wanted = wanted
        self.standby: int | None = None
        self.taken_by: int | None = None

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
    the place of each standby that has taken over, by the pid of that.

    Raises:
        OSError: there is no place for a directory.
    """

    def __init__(self, reporter: Reporter, log: Callable[[int], Path], stand_ins: dict[int, StandIn]) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="ett-standby-", dir=short_place()))
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
            if kept.keeper.poll() is not None:
                self._forget(kept)
        for path in self.place.glob("*.wanted"):
            local_rank = int(path.stem)
            stamp = path.stat().st_mtime_ns
            if self._seen.get(local_rank) != stamp:
                self._seen[local_rank] = stamp
                self._make(local_rank, path)

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
        shutil.rmtree(self.place, ignore_errors=True)

    def _make(self, local_rank: int, path: Path) -> None:
        wanted = Wanted.load(path)
        before = self._kept.get(local_rank)
        if before is not None:
            self._hear(before)  # it may have been taken by the very rank that asks
        if before is not None and before.taken_by is None:
            if before.wanted.is_like(wanted):
                return
            before.part()
        if before is not None:
            self._leaving.append(before)
        parts = parted(wanted.argv)
        if parts is None:
            self._tell("no standby", local_rank, "the program is neither a file nor a module")
            return
        self._kept[local_rank] = self._started(local_rank, wanted, parts[0], path)

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
        return _Kept(local_rank, keeper, mine, wanted)

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
            megabytes = told["bytes"] / 1e6
            words = f"it holds {megabytes:.0f} MB and waits (pid {kept.standby})"
            self._tell("a standby is ready", local_rank, words, bytes=told["bytes"])
        elif "failed" in told:
            self._tell(
                "no standby",
                local_rank,
                f"preparing it failed: {told['failed']}; see {self._log(local_rank)}",
            )
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
        else:
            del self._kept[kept.local_rank]


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


def short_place() -> str:
    """A directory for temporary files whose name leaves room for that of a socket.

    Raises:
        OSError: there is none.
    """
    for place in (tempfile.gettempdir(), "/tmp", "/dev/shm"):  # noqa: S108 - a directory of our own lies in it
        if len(place) <= LONGEST_PLACE and os.access(place, os.W_OK):
            return place
    raise OSError("there is no directory for temporary files with a name that is short enough for a socket")
