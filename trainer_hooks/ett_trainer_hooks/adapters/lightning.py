"""Lightning tells where its time goes: `Trainer(callbacks=[ETTCallback()])`.

Works with `lightning` and with `pytorch_lightning`. Every hook runs on the thread that trains, in
each rank. The recorder is asked for when a trainer is set up, which is when Lightning knows the
rank of the process. No hook raises, and after `teardown` the trainer is as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from ett_trainer_hooks.adapters.lightning_run import Run
from ett_trainer_hooks.adapters.process import THIS_PROCESS, Process
from ett_trainer_hooks.guard import Guard, hook
from ett_trainer_hooks.recording.recorder import Recorder

Theirs: TypeAlias = Any
"""An object of Lightning or of the program: what is read of it is public."""

PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _callback_class() -> Theirs:
    """The base class, from the package that the program has imported, else from one that is there.

    Raises:
        ImportError: neither package is installed.
    """
    packages = sorted(PACKAGES, key=lambda name: name not in sys.modules)
    for name in packages:
        if find_spec(name.partition(".")[0]) is not None:
            return import_module(name).Callback
    raise ImportError("ETTCallback for Lightning needs lightning or pytorch_lightning: pip install lightning")


class ETTCallback(_callback_class()):  # type: ignore[misc]
    """Tells phases, steps, waits, evaluations and checkpoints of a Lightning trainer.

    Args:
        recorder: the program's own recorder, where it has one.
        samples: samples of a batch, or a function that tells them.
        process: what this process shares between its trainers.
    """

    def __init__(
        self,
        recorder: Recorder | None = None,
        *,
        samples: float | Callable[[Theirs], float] = 0,
        process: Process = THIS_PROCESS,
    ) -> None:
        super().__init__()
        self.guard = Guard()
        self._samples = samples
        self._process = process
        self._run: Run | None = None
        if recorder is not None:
            process.adopt(recorder)

    def __getstate__(self) -> dict[str, Theirs]:
        """What goes along to a process that Lightning spawns: settings, nothing that runs."""
        return {**self.__dict__, "_run": None, "_process": None}

    def __setstate__(self, state: dict[str, Theirs]) -> None:
        """In another process: share what that process shares."""
        self.__dict__.update(state, _process=THIS_PROCESS)

    @hook
    def setup(self, trainer: Theirs, pl_module: object, stage: str) -> None:  # noqa: ARG002
        """Fit, validate, test or predict begins."""
        if self._run is not None:
            self._run.over()
        recorder = self._process.recorder(trainer.global_rank, trainer.world_size)
        self._run = Run(trainer, recorder, self._process, self._samples) if recorder.active else None
        if self._run is not None:
            self._process.training()
            if stage == "fit":
                self._process.stages.turn_to("model_init")

    @hook
    def on_fit_start(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """The model is set up; data and what is left of a checkpoint follow."""
        if self._run is not None:
            self._process.stages.turn_to("data_warmup")

    @hook
    def on_sanity_check_start(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """A few batches of validation before training."""
        self._enter("sanity_check")

    @hook
    def on_sanity_check_end(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """They are over."""
        self._leave("sanity_check")

    @hook
    def on_train_start(self, trainer: Theirs, pl_module: object) -> None:  # noqa: ARG002
        """The step to go on from is known."""
        if self._run is not None:
            self._run.recorder.resumed(trainer.global_step)

    @hook
    def on_train_epoch_start(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """A pass over the data begins: its workers start and its first batch is waited for."""
        if self._run is not None:
            self._run.waiting()

    @hook
    def on_train_batch_start(self, trainer: object, pl_module: object, batch: Theirs, batch_idx: int) -> None:  # noqa: ARG002
        """A batch is there."""
        if self._run is not None:
            self._run.batch_began(batch)

    @hook
    def on_train_batch_end(
        self,
        trainer: object,  # noqa: ARG002
        pl_module: object,  # noqa: ARG002
        outputs: object,  # noqa: ARG002
        batch: object,  # noqa: ARG002
        batch_idx: int,  # noqa: ARG002
    ) -> None:
        """A batch is done; a step is, where an optimizer has stepped."""
        if self._run is not None:
            self._run.batch_ended()

    @hook
    def on_validation_start(self, trainer: Theirs, pl_module: object) -> None:  # noqa: ARG002
        """An evaluation begins, unless it is the sanity check."""
        if not trainer.sanity_checking:
            self._enter("evaluation")

    @hook
    def on_validation_end(self, trainer: Theirs, pl_module: object) -> None:  # noqa: ARG002
        """It is over."""
        if not trainer.sanity_checking:
            self._leave("evaluation")

    @hook
    def on_test_start(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """A test begins."""
        self._enter("evaluation")

    @hook
    def on_test_end(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """It is over."""
        self._leave("evaluation")

    @hook
    def on_predict_start(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """Predictions begin."""
        self._enter("prediction")

    @hook
    def on_predict_end(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """They are over."""
        self._leave("prediction")

    @hook
    def on_train_end(self, trainer: object, pl_module: object) -> None:  # noqa: ARG002
        """The loop is over; what follows is the end of the job, until another trainer is set up."""
        if self._run is not None:
            self._run.trained = True
            self._process.stages.turn_to("shutdown")

    @hook
    def teardown(self, trainer: object, pl_module: object, stage: str) -> None:  # noqa: ARG002
        """Fit, validate, test or predict ended well."""
        if self._run is None:
            return
        if stage == "fit" and not self._run.trained:
            self._process.stages.leave_all()
        self._run.over()
        self._run = None
        self._process.ended("succeeded")

    @hook
    def on_exception(self, trainer: object, pl_module: object, exception: BaseException) -> None:  # noqa: ARG002
        """Something ended the work. Lightning exits by itself after Ctrl-C and SIGTERM."""
        if self._run is None:
            return
        self._process.stages.leave_all()
        kinds = {kind.__name__ for kind in type(exception).__mro__}
        if "KeyboardInterrupt" in kinds:
            self._process.ended("cancelled")
        elif "SIGTERMException" in kinds:
            self._process.ended("preempted")
        elif not isinstance(exception, SystemExit):
            self._run.recorder.failure(exception)

    def _enter(self, name: str) -> None:
        if self._run is not None:
            self._process.stages.enter(name)

    def _leave(self, name: str) -> None:
        if self._run is not None:
            self._process.stages.leave(name)
