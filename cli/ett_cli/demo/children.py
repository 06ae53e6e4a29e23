"""The processes that the demo started: their logs, their health and their certain end.

Each child leads a process group of its own. `stop` asks every group to end, newest first, then
kills what is left of the run, found by its mark: a launcher or an agent that dies early leaves
ranks behind that belong to no group of ours any more.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ett_cli.demo.processes import marked

GRACE_S = 8.0
LOOK_S = 0.1
TAIL_LINES = 15


@dataclass(frozen=True)
class Child:
    """A process with its name and the file that takes its output."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    began_at_byte: int = 0
    """Length of the file before this process wrote to it."""

    def new_output(self) -> str:
        """What this process has said so far."""
        with self.log.open("rb") as stream:
            stream.seek(self.began_at_byte)
            return stream.read().decode(errors="replace")

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of its output."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


class Children:
    """A context: on leaving, however that happens, every process of the run is gone."""

    def __init__(
        self, mark: str, value: str, *, grace_s: float = GRACE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._mark = (mark, value)
        self._grace_s = grace_s
        self._clock = clock
        self._children: list[Child] = []

    def __enter__(self) -> Children:  # noqa: PYI034 - Self is younger than Python 3.10
        """Nothing runs yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything."""
        self.stop()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
        """Start a process whose output goes to `log`; it reads nothing."""
        with log.open("ab") as output:
            began_at_byte = output.tell()
            process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        child = Child(name, process, log, began_at_byte)
        self._children.append(child)
        return child

    def dead(self, names: Iterable[str]) -> Child | None:
        """The first of the named children that has ended; None while all run."""
        wanted = set(names)
        ended = (child for child in self._children if child.process.poll() is not None)
        return next((child for child in ended if child.name in wanted), None)

    def stop(self) -> None:
        """End every process of the run: ask, wait for at most the grace, kill."""
        running = [child for child in reversed(self._children) if child.process.poll() is None]
        for child in running:
            _signal_group(child.process.pid, signal.SIGTERM)
        end_s = self._clock() + self._grace_s
        for child in running:
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(timeout=max(end_s - self._clock(), LOOK_S))
        for child in running:
            _signal_group(child.process.pid, signal.SIGKILL)
        self._sweep()
        for child in running:
            child.process.wait()

    def _sweep(self) -> None:
        for pid in marked(*self._mark):
            if pid != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
