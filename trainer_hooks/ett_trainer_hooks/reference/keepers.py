"""What the reference trainer saves with, and resumes from.

All ranks call the same methods in the same order, on their training threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy
from ett_trainer_hooks.reference.checkpoints import CheckpointStore
from ett_trainer_hooks.reference.model import Learner
from ett_trainer_hooks.reference.settings import Settings


class Keeper(Protocol):
    """Keeps the learner, and what the policy has learnt; tells the recorder and the policy of it."""

    root: Path
    """The directory that gets one of each step."""

    def find(self) -> int:
        """Steps that the newest intact checkpoint holds; 0 without one."""
        ...

    def load(self, learner: Learner) -> None:
        """Bring back what was found, if anything; `learner` is the one that will be saved."""
        ...

    def save(self, step: int, learner: Learner, *, leave_in_s: float | None = None) -> None:
        """Save the learner after `step`.

        `leave_in_s`: seconds in which the job leaves; then no failure lies between this and the next attempt.
        """
        ...

    @property
    def elsewhere(self) -> bool:
        """What was found lies where this keeper only reads."""
        ...

    @property
    def fault(self) -> str:
        """Why the save that was told of last has failed; empty where it has not.

        That a remote place has failed is known to the rank that leads.
        """
        ...

    def close(self, patience_s: float | None = None) -> bool:
        """Nothing more is saved; what was is durable, or is told as failed after `patience_s`, if given.

        False where it still hangs: whoever asks for it might hang, too. Only the first call waits.
        """
        ...


class Waiting:
    """As torchrec's examples save: the trainer waits for torch's `save`."""

    def __init__(self, settings: Settings, recorder: Recorder, policy: CheckpointPolicy) -> None:
        self._recorder = recorder
        self._policy = policy
        self.root = settings.checkpoint_dir
        self._store = CheckpointStore(self.root, keep=settings.keep)
        self._found = 0

    def find(self) -> int:
        """As `Keeper`."""
        self._found = self._store.newest()
        return self._found

    def load(self, learner: Learner) -> None:
        """As `Keeper`."""
        if self._found:
            state = {**learner.state(), "policy": as_tensors(self._policy.state_dict())}
            self._store.load(self._found, state)
            learner.load(state)
            self._policy.load_state_dict({name: float(value) for name, value in state["policy"].items()})

    def save(self, step: int, learner: Learner, *, leave_in_s: float | None = None) -> None:
        """As `Keeper`."""
        learnt = self._policy.state_dict(leaving=leave_in_s is not None)
        state = {**learner.state(), "policy": as_tensors(learnt)}
        with self._policy.saving(step), self._recorder.checkpoint(step, mode="sync") as save:
            size = self._store.save(step, state)
            save.bytes = size
        self._policy.durable(step)
        if size is not None:
            self._recorder.durable(step, bytes=size)

    @property
    def elsewhere(self) -> bool:
        """As `Keeper`."""
        return False

    @property
    def fault(self) -> str:
        """As `Keeper`; here a save that fails has raised."""
        return ""

    def close(self, patience_s: float | None = None) -> bool:  # noqa: ARG002 - nothing is on its way
        """As `Keeper`."""
        return True


def as_tensors(state: Mapping[str, float]) -> dict[str, torch.Tensor]:
    """Numbers in a form that torch's checkpoints find again: plain ones are looked for under another key."""
    return {name: torch.tensor(value, dtype=torch.float64) for name, value in state.items()}
