"""The two streams of a command's output: the files that it writes, and what becomes of them.

Opened by the launcher's main thread before the command starts, so that whoever follows the files
holds them from the beginning. Each is passed on by a thread of its own, and listened to and given
room on the disk by the main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ett_trainer_hooks.launcher.output.listener import Listener
from ett_trainer_hooks.launcher.output.passing import Passing, Sink
from ett_trainer_hooks.launcher.output.room import OutputRoom

TAIL_BYTES = {"stdout": 16 << 10, "stderr": 48 << 10}
"""What is kept of the last output of a rank, by stream: 64 KiB together."""


class Stream:
    """One stream: the file at `path`, passed on to `sink` until it is closed."""

    def __init__(self, name: str, path: Path, sink: Sink) -> None:
        self.name = name
        self.path = path
        with suppress(OSError):
            path.touch()
        self.listener = Listener(name, path, TAIL_BYTES[name])
        self._passing = Passing(path, sink)

    @property
    def done_with(self) -> int:
        """Bytes of the file that were passed on and listened to."""
        return min(self._passing.passed_bytes, self.listener.heard_bytes)

    def room(self, say: Callable[[Path], object]) -> OutputRoom:
        """What keeps room for it on the disk; `say` is told the path where it gives up old output."""
        return OutputRoom(self.path, lambda: self.done_with, say)

    def close(self, is_asked: Callable[[], bool]) -> str:
        """Nothing more will be written: pass the rest on; why not all of it, if so. See `Passing.finish`."""
        self.listener.close()
        return self._passing.finish(is_asked)


@contextmanager
def streams(
    beginning: Path, sinks: Sequence[Sink], is_asked: Callable[[], bool], say: Callable[[str], object]
) -> Iterator[list[Stream]]:
    """The streams of a command while it runs, in files whose names begin as `beginning`.

    Args:
        beginning: a path; `.stdout.log` and `.stderr.log` are put behind it.
        sinks: what takes standard output, and what takes standard error.
        is_asked: whether the job was asked to stop.
        say: takes sentences for a person.
    """
    opened = [
        Stream(name, beginning.with_name(f"{beginning.name}.{name}.log"), sink)
        for name, sink in zip(TAIL_BYTES, sinks, strict=True)
    ]
    try:
        yield opened
    finally:
        for each in opened:
            if trouble := each.close(is_asked):
                say(f"{each.name} was not passed on to its end ({trouble}); it is in {each.path}")
