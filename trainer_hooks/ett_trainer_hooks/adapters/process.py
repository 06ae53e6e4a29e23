"""What all adapters of one process share: its recorder, the phases that are open, and how it ends.

Used by the training thread. One process is one rank; trainers that follow each other in it are
parts of the same attempt.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
from collections.abc import Callable, Mapping

from ett_trainer_hooks.adapters.stages import Stages
from ett_trainer_hooks.recording.recorder import Recorder


class Process:
    """The recorder of this process, made when it is first needed.

    Args:
        make: gives a recorder for an environment.
        environ: the environment to start from.
    """

    def __init__(
        self,
        make: Callable[[Mapping[str, str]], Recorder] = Recorder.from_env,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._make = make
        self._environ = environ
        self._recorder: Recorder | None = None
        self._stages: Stages | None = None
        self._pid = 0
        self._status = ""
        self.has_trained = False
        """A trainer has trained, or does."""

    def adopt(self, recorder: Recorder) -> None:
        """Record with the program's own recorder."""
        self._recorder = recorder
        self._stages = None
        self._pid = os.getpid()
        atexit.register(self.leave)

    def recorder(self, rank: int = 0, world_size: int = 1) -> Recorder:
        """The recorder; what the framework says of rank and world counts more than the environment."""
        if self._recorder is None or self._pid != os.getpid():
            self.adopt(self._make(with_rank(self._environ, rank, world_size)))
        assert self._recorder is not None  # noqa: S101 - for the type checker
        return self._recorder

    @property
    def stages(self) -> Stages:
        """The phases of the main track that adapters have opened."""
        if self._stages is None:
            self._stages = Stages(self.recorder())
        return self._stages

    def training(self) -> None:
        """A trainer is at work: the process has no end to be told yet."""
        self._status = ""
        self.has_trained = True

    def ended(self, status: str) -> None:
        """The work of a trainer ended with this status; it is told if nothing follows.

        A process that a launcher has spawned for this work alone ends here.
        """
        self._status = status
        if multiprocessing.parent_process() is not None:
            self.leave()

    def leave(self) -> None:
        """The interpreter ends; a success is one unless the program exits with another status."""
        if self._recorder is None or self._pid != os.getpid() or not self._status:
            return
        if self._status == "succeeded":
            self._recorder.leave()
        self._recorder.close(self._status)


def with_rank(environ: Mapping[str, str], rank: int, world_size: int) -> Mapping[str, str]:
    """The environment of this rank, where there is more than one.

    >>> with_rank({}, 1, 2), with_rank({"RANK": "5"}, 0, 1)
    ({'RANK': '1', 'WORLD_SIZE': '2'}, {'RANK': '5'})
    """
    if world_size <= 1:
        return environ
    return {**environ, "RANK": str(rank), "WORLD_SIZE": str(world_size)}


THIS_PROCESS = Process()
