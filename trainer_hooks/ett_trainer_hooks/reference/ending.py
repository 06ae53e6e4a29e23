"""What becomes of the trained model. All ranks call the same methods in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.reference.model import Learner
from ett_trainer_hooks.reference.settings import Settings


class Ending(Protocol):
    """The end of one rank's training, as far as the model is concerned."""

    def before_anchor(self, step: int, learner: Learner, pipeline: Any) -> None:  # noqa: ANN401 - of TorchRec
        """The last step is done and not saved yet; `pipeline`, if any, has no batch in hand."""
        ...

    def after_anchor(self, *, over: bool) -> None:
        """The last checkpoint is durable, or told as failed; not `over`: who asks for it may hang."""
        ...


class NoEnding:
    """Nothing becomes of it: it stays in its checkpoints."""

    def before_anchor(self, step: int, learner: Learner, pipeline: Any) -> None:  # noqa: ANN401
        """As `Ending`."""

    def after_anchor(self, *, over: bool) -> None:
        """As `Ending`."""


def ending_of(settings: Settings, recorder: Recorder, checkpoints: Path) -> Ending:
    """The ending that the settings want; `checkpoints` is the directory that gets the last one."""
    if not (settings.uses("standalone_publishing") or settings.publish_to):
        return NoEnding()
    if settings.checkpoint_disk and settings.uses("async_checkpoint"):
        recorder.decision("the model is not handed over", "its checkpoints lie on the disks of nodes")
        return NoEnding()
    from ett_trainer_hooks.reference.handing_over import Publishing  # noqa: PLC0415 - needs an extra

    return Publishing(settings, recorder, checkpoints)
