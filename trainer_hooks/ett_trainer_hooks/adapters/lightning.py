"""Lightning tells where its time goes: `Trainer(callbacks=[ETTCallback()])`.

Works with `lightning` and with `pytorch_lightning`. Every hook runs on the thread that trains, in
each rank; an `AsyncCheckpointIO` calls in from its own thread. The recorder is asked for when a
trainer is set up, which is when Lightning knows the rank of the process. No hook raises, and after
`teardown` the trainer is as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from threading import get_ident
from typing import Any, TypeAlias

from ett_trainer_hooks.adapters.process import THIS_PROCESS, Process
from ett_trainer_hooks.adapters.seams import Function, Seams
from ett_trainer_hooks.adapters.sizes import bytes_of
from ett_trainer_hooks.guard import Guard, hook
from ett_trainer_hooks.recorder import Recorder
from ett_trainer_hooks.spans import describe

Theirs: TypeAlias = Any
"""An object of Lightning or of the program: what is read of it is public."""


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


PACKAGES = ("lightning.pytorch", "pytorch_lightning")
FETCH = "train_dataloader_next"
"""How Lightning's profilers call the wait for a batch."""
READING = ("load_checkpoint", "load_model_state_dict", "load_optimizer_state_dict")
TUNING = ("lr_find", "scale_batch_size")


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
        self._run: _Run | None = None
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
        self._run = _Run(trainer, recorder, self._process, self._samples) if recorder.active else None
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


class _Run:
    """One call of fit, validate, test or predict, seen from the trainer that runs it."""

    def __init__(
        self,
        trainer: Theirs,
        recorder: Recorder,
        process: Process,
        samples: float | Callable[[Theirs], float],
    ) -> None:
        self.recorder = recorder
        self.trained = False
        self._trainer = trainer
        self._stages = process.stages
        self._count = samples if callable(samples) else lambda _: samples
        self._thread = get_ident()
        self._began = False
        self._tuning = False
        self._samples = 0.0
        self._wait_s = 0.0
        self._asked_s: float | None = None
        self._seams = Seams()
        recorder.guard.call(self._place)

    def over(self) -> None:
        """Leave the trainer as it was."""
        self._seams.restore()

    def waiting(self) -> None:
        """The next batch is waited for from now on."""
        if self._asked_s is None and not self._tuning:
            self._asked_s = self.recorder.monotonic()

    def batch_began(self, batch: Theirs) -> None:
        """A batch is there; the first one of a fit begins its loop."""
        if not self._began:
            self._began = True
            self._stages.leave_all()
            self.recorder.first_batch()
            self._wait_s = 0.0
        self._samples += float(self._count(batch))

    def batch_ended(self) -> None:
        """Steps are those that the trainer counts, which its checkpoints are numbered by."""
        steps = self._trainer.global_step - self.recorder.step
        for _ in range(steps):
            self.recorder.step_done(self._samples, self._wait_s)
            self._samples = self._wait_s = 0.0

    def _place(self) -> None:
        trainer, seams = self._trainer, self._seams
        seams.around(trainer, "save_checkpoint", self._saving)
        for name in READING:
            seams.around(trainer.strategy, name, self._reading)
        for callback in trainer.callbacks:
            for name in TUNING:
                seams.around(callback, name, self._tuned)
        seams.around(trainer.profiler, "start", self._fetching)
        seams.around(trainer.profiler, "stop", self._fetched)
        if self._is_asynchronous():
            seams.around(
                type(trainer.strategy.checkpoint_io.checkpoint_io), "save_checkpoint", self._uploading
            )

    def _is_asynchronous(self) -> bool:
        plugin = self._trainer.strategy.checkpoint_io
        return any(kind.__name__ == "AsyncCheckpointIO" for kind in type(plugin).__mro__)

    def _saving(self, save: Function) -> Function:
        """`Trainer.save_checkpoint`, which every checkpoint goes through, on all ranks together."""

        @wraps(save)
        def saved(filepath: Theirs, *args: Theirs, **kwargs: Theirs) -> Theirs:
            if self._tuning:
                return save(filepath, *args, **kwargs)
            recorder = self.recorder
            mode = "async" if recorder.guard.call(self._is_asynchronous) else "sync"
            with recorder.checkpoint(self._trainer.global_step, mode) as span:
                result = save(filepath, *args, **kwargs)
                if mode == "sync" and recorder.identity.rank == 0:
                    span.bytes = bytes_of(filepath)
            weights_only = kwargs.get("weights_only", args[0] if args else None)
            if mode == "sync" and not weights_only and recorder.identity.rank == 0:
                recorder.durable(span.saved_step, bytes=span.bytes, duration_s=span.blocking_s)
            return result

        return saved

    def _uploading(self, save: Function) -> Function:
        """The write of an asynchronous save, in a thread of its own."""

        @wraps(save)
        def uploaded(
            plugin: Theirs, checkpoint: Theirs, path: Theirs, *args: Theirs, **kwargs: Theirs
        ) -> Theirs:
            if get_ident() == self._thread:
                return save(plugin, checkpoint, path, *args, **kwargs)
            recorder = self.recorder
            began_s = recorder.monotonic()
            try:
                result = save(plugin, checkpoint, path, *args, **kwargs)
            except BaseException as error:
                recorder.checkpoint_failed(checkpoint["global_step"], describe(error), mode="async")
                raise
            if "optimizer_states" in checkpoint:
                took_s = recorder.monotonic() - began_s
                step = checkpoint["global_step"]
                recorder.durable(step, mode="async", bytes=bytes_of(path), duration_s=took_s)
            return result

        return uploaded

    def _reading(self, read: Function) -> Function:
        @wraps(read)
        def loaded(*args: Theirs, **kwargs: Theirs) -> Theirs:
            if self._tuning:
                return read(*args, **kwargs)
            with self.recorder.phase("checkpoint_load"):
                return read(*args, **kwargs)

        return loaded

    def _tuned(self, tune: Function) -> Function:
        """The search for a batch size or a learning rate: trial steps, whose state is thrown away."""

        @wraps(tune)
        def searched(*args: Theirs, **kwargs: Theirs) -> Theirs:
            before, self._tuning = self._tuning, True
            try:
                with self.recorder.phase("tuning"):
                    return tune(*args, **kwargs)
            finally:
                self._tuning = before

        return searched

    def _fetching(self, start: Function) -> Function:
        @wraps(start)
        def started(action_name: str) -> Theirs:
            if str(action_name).endswith(FETCH):
                self.waiting()
            return start(action_name)

        return started

    def _fetched(self, stop: Function) -> Function:
        @wraps(stop)
        def stopped(action_name: str) -> Theirs:
            if str(action_name).endswith(FETCH) and self._asked_s is not None:
                self._wait_s += self.recorder.monotonic() - self._asked_s
                self._asked_s = None
            return stop(action_name)

        return stopped
