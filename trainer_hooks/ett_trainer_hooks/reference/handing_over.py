"""The trained model is handed over to whoever publishes it, or published by the trainer itself.

What the trainer predicts is recorded before the last checkpoint, the anchor, is saved; both ways go by the
same record and checkpoint. A trainer that cannot hand over has trained nevertheless, and says so; one that
is to publish and cannot fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch.distributed as dist
from torchrec.distributed import TrainPipelineSparseDist

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.guard import type_and_text
from ett_trainer_hooks.journal import NullJournal
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError
from ett_trainer_hooks.pipeline.publishing.handover import HandOver, find, prepare
from ett_trainer_hooks.pipeline.publishing.places import place_at
from ett_trainer_hooks.reference import publishing
from ett_trainer_hooks.reference.model import Learner
from ett_trainer_hooks.reference.settings import Settings


class UnpublishedError(Exception):
    """The trainer was to publish its model, and has not; the message says why."""


class Publishing:
    """An `Ending` after which the model is published, by this process or another.

    Args:
        settings: of the trainer.
        recorder: of this rank.
        checkpoints: the directory that gets the last checkpoint.

    Raises:
        RemoteError: nobody knows the place that the model is to be published to.
    """

    def __init__(self, settings: Settings, recorder: Recorder, checkpoints: Path) -> None:
        self._settings = settings
        self._recorder = recorder
        self._checkpoints = checkpoints
        self._hands_over = settings.uses("standalone_publishing")
        self._handover: HandOver | None = None
        self._trained = False
        if settings.publish_to:
            place_at(settings.publish_to).close()  # told now, not when all is trained

    def before_anchor(self, step: int, learner: Learner, pipeline: Any) -> None:  # noqa: ANN401 - of TorchRec
        """As `Ending`: records what the model predicts."""
        self._trained = True
        with self._recorder.phase("publish"):
            if isinstance(pipeline, TrainPipelineSparseDist):
                pipeline.detach()  # the model looks its tables up by itself again
            predictions = publishing.recorded_predictions(learner, self._settings, dist.get_rank())
            if dist.get_rank() == 0:
                self._handover = self._prepared(step, predictions)

    def after_anchor(self, *, over: bool) -> None:
        """As `Ending`.

        Raises:
            UnpublishedError: this trainer was to publish, and could not.
        """
        if not over:
            self._given_up()
            return
        with self._recorder.phase("publish"):
            if self._hands_over:
                self._hand_over()
                return
            if dist.get_rank() == 0:
                self._publish()
            dist.barrier()

    def _prepared(self, step: int, predictions: bytes) -> HandOver | None:
        try:
            return prepare(
                self._checkpoints,
                step,
                job_id=self._recorder.identity.job_id,
                publishable=publishing.PUBLISHABLE,
                settings=publishing.settings_of(self._settings),
                predictions=predictions,
                labels=self._recorder.identity.labels,
            )
        except OSError as error:
            self._recorder.decision("the model is not handed over", type_and_text(error))
            return None

    def _given_up(self) -> None:
        why = "its last checkpoint was given up"
        if not self._hands_over:
            raise UnpublishedError(f"the model is not published: {why}")
        if dist.get_rank() == 0:
            self._recorder.decision("the model is not handed over", why)

    def _hand_over(self) -> None:
        """Tell that the anchor is there; without one, or a disk that takes it, nothing is handed over."""
        if self._handover is None:
            return
        try:
            self._handover.asked_for()
        except (OSError, DamagedError) as error:
            self._recorder.decision("the model is not handed over", type_and_text(error))
        else:
            self._recorder.decision("the model is handed over", f"to be published: {self._handover.folder}")

    def _publish(self) -> None:
        """Publish here; of its phases nothing is told, as all of it is `publish` in this job."""
        from ett_trainer_hooks.pipeline.publishing import working  # noqa: PLC0415 - needs an extra

        handover = self._handover if self._trained else self._of_an_earlier_start()
        if handover is None:
            why = "could not be recorded" if self._trained else "was not recorded by the start before"
            raise UnpublishedError(f"the model is not published: what it predicts {why}")
        silent = Recorder(identity=self._recorder.identity, journal=NullJournal())
        if working.run(handover, self._settings.publish_to, silent, form="plain"):
            outcome = handover.outcome()
            reason = outcome.reason if outcome else "its place cannot be used now"
            raise UnpublishedError(f"the model is not published: {reason}")

    def _of_an_earlier_start(self) -> HandOver | None:
        """What the start that has trained the last step has left, where this one had nothing to train."""
        of_step = [each for each in find(self._checkpoints) if each.step == self._settings.steps]
        recorded = [(record.made_at, each) for each in of_step if (record := each.record())]
        return max(recorded, key=lambda each: each[0])[1] if recorded else None
