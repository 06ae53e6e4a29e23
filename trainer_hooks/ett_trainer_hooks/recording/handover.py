"""Who records this process: the program's own recorder, or the automatic part until there is one.

One process, one `PROCESS`. The program's recorder always wins: from the moment it asks, the
automatic part is silent. Whoever asks again, such as a callback in a program that has a recorder,
gets the one that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ett_trainer_hooks.recording.recorder import Recorder


class Handover:
    """Holds at most one offer of an automatic part, until it is taken, and the program's recorder."""

    def __init__(self) -> None:
        self.is_taken = False
        """The program records by itself."""
        self._give: Callable[[], Recorder | None] | None = None
        self._running: Recorder | None = None

    def offer(self, give: Callable[[], Recorder | None]) -> bool:
        """Record until the program takes over with `give`; False where it has its own recorder already.

        `give` silences the automatic part and returns the recorder that has spoken for this process,
        None where nothing was said yet.
        """
        if not self.is_taken:
            self._give = give
        return not self.is_taken

    def hold(self, recorder: Recorder) -> None:
        """This is the program's recorder."""
        self._running = recorder

    def take(self) -> Recorder | None:
        """The program records by itself from now on; the recorder that it goes on with, if there is one.

        One that is closed, or that a parent of this process has, is none.
        """
        self.is_taken = True
        give, self._give = self._give, None
        if give is not None:
            self._running = give()
        running = self._running
        return running if running is not None and running.active else None


def is_imported_by_worker() -> bool:
    """Whether this process is a worker, started by `spawn` or `forkserver`, that imports its program."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and hasattr(process.current_process(), "_inheriting")


PROCESS = Handover()
