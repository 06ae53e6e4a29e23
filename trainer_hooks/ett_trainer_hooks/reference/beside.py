"""The part `async_checkpoint` of the reference trainer: saves go on beside the training.

What it keeps lies in a directory of its own; checkpoints that the trainer has made without the part
are found, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer, Mode
from ett_trainer_hooks.pipeline.checkpoint.found import Found
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteStore
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.takes import Lease
from ett_trainer_hooks.reference.keepers import Waiting
from ett_trainer_hooks.reference.model import Learner
from ett_trainer_hooks.reference.settings import Settings

DIRECTORY = "committed"


class Beside:
    """A `Keeper` that copies what it saves and writes it while the training goes on."""

    def __init__(
        self, settings: Settings, recorder: Recorder, policy: CheckpointPolicy, lease: Lease | None = None
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._without = Waiting(settings, recorder, policy)
        self.root = settings.checkpoint_dir / DIRECTORY
        stay, url = Retention(last=settings.keep), settings.checkpoint_remote
        remote = RemoteStore(url, retention=stay) if url else None
        store: CheckpointStore | NodeDisk = CheckpointStore(self.root, retention=stay, lease=lease)
        if remote is not None and settings.checkpoint_disk:
            store, remote = NodeDisk(Path(settings.checkpoint_disk), remote), None
        self._checkpointer = Checkpointer(
            store,
            recorder,
            remote=remote,
            mode=cast("Mode", settings.checkpoint_mode),
            close_patience_s=settings.close_patience_s,
            told=policy,
        )
        self._found: Found | None = Found(None, None, ())

    def find(self) -> int:
        """As `Keeper`."""
        found = self._checkpointer.find()
        step = found.manifest.step if found.manifest else 0
        without = self._without.find()
        self._found = found if step >= without else None
        return max(step, without)

    def load(self, learner: Learner) -> None:
        """As `Keeper`."""
        if self._found is None:
            self._without.load(learner)
        elif self._found.manifest is not None:
            state = learner.state()
            self._checkpointer.load(self._found, state, own={"policy": _Learnt(self._policy)})
            learner.load(state)
        if self._settings.uses("no_wait_staging"):
            self._checkpointer.no_wait(learner.model, learner.optimizer)

    def save(self, step: int, learner: Learner, *, leave_in_s: float | None = None) -> None:
        """As `Keeper`; no save comes after the last one that could make up for it."""
        learnt = _Learnt(self._policy, leaving=leave_in_s is not None)
        if step == self._settings.steps:
            leave_in_s = self._settings.close_patience_s
        with self._policy.saving(step):
            self._checkpointer.save(step, learner.state(), own={"policy": learnt}, patience_s=leave_in_s)

    @property
    def elsewhere(self) -> bool:
        """As `Keeper`: the trainer has saved it without the part."""
        return self._found is None

    @property
    def fault(self) -> str:
        """As `Keeper`."""
        return self._checkpointer.fault

    def close(self, patience_s: float | None = None) -> bool:
        """As `Keeper`."""
        self._checkpointer.close(patience_s)
        return self._checkpointer.wait(0.0)


@dataclass(frozen=True)
class _Learnt:
    """What the policy of a rank has learnt, as the checkpointer keeps it."""

    policy: CheckpointPolicy
    leaving: bool = False

    def state_dict(self) -> dict[str, float]:
        return self.policy.state_dict(leaving=self.leaving)

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.policy.load_state_dict(state)
