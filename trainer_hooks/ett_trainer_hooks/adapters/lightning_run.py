"""One call of Lightning's fit, validate, test or predict, seen from the trainer that runs it.

Used by the callback, on the thread that trains; an `AsyncCheckpointIO` calls in from its own
thread. What has no callback (saves, loads, waits, searches) is seen by functions put around public
methods of the trainer and of what it holds, until `over`. Imports nothing of Lightning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any, TypeAlias

from ett_trainer_hooks.adapters.process import Process
from ett_trainer_hooks.adapters.seams import Function, Seams
from ett_trainer_hooks.adapters.sizes import bytes_of
from ett_trainer_hooks.recording.recorder import Recorder
from ett_trainer_hooks.recording.spans import describe

Theirs: TypeAlias = Any
"""An object of Lightning or of the program: what is read of it is public."""

FETCH = "train_dataloader_next"
"""How Lightning's profilers call the wait for a batch."""
READING = ("load_checkpoint", "load_model_state_dict", "load_optimizer_state_dict")
TUNING = ("lr_find", "scale_batch_size")


class Run:
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
            is_ours = isinstance(checkpoint, dict) and "global_step" in checkpoint
            if get_ident() == self._thread or not is_ours:
                return save(plugin, checkpoint, path, *args, **kwargs)
            recorder = self.recorder
            began_s = recorder.monotonic()
            try:
                result = save(plugin, checkpoint, path, *args, **kwargs)
            except BaseException as error:
                recorder.guard.call(self._upload_failed, checkpoint, error)
                raise
            recorder.guard.call(self._upload_done, checkpoint, path, recorder.monotonic() - began_s)
            return result

        return uploaded

    def _upload_failed(self, checkpoint: Theirs, error: BaseException) -> None:
        self.recorder.checkpoint_failed(checkpoint["global_step"], describe(error), mode="async")

    def _upload_done(self, checkpoint: Theirs, path: Theirs, took_s: float) -> None:
        if "optimizer_states" in checkpoint:
            step = checkpoint["global_step"]
            self.recorder.durable(step, mode="async", bytes=bytes_of(path), duration_s=took_s)

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
