"""The Trainer of transformers tells where its time goes: `Trainer(callbacks=[ETTCallback()])`.

Every hook runs on the thread that trains, in each rank. The recorder is asked for when training (or
an evaluation) begins. The Trainer tells a callback that a save or an evaluation is over, and by its
control flags that one is about to begin: a phase begins at the last word heard before it. No hook
raises.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ett_trainer_hooks.adapters.evaluation_sets import EvaluationSets
from ett_trainer_hooks.adapters.process import THIS_PROCESS, Process
from ett_trainer_hooks.adapters.sizes import bytes_of
from ett_trainer_hooks.guard import Guard, hook
from ett_trainer_hooks.recording.recorder import Recorder
from ett_trainer_hooks.recording.spans import SaveSpan

try:
    from transformers import TrainerCallback
except ModuleNotFoundError as error:
    raise ImportError("ETTCallback for Hugging Face needs transformers: pip install transformers") from error

Theirs: TypeAlias = Any
"""An object of transformers: what is read of it is public."""


class ETTCallback(TrainerCallback):  # type: ignore[misc]
    """Tells phases, steps, waits, evaluations and checkpoints of a Hugging Face Trainer.

    Args:
        recorder: the program's own recorder, where it has one.
        process: what this process shares between its trainers.
    """

    def __init__(self, recorder: Recorder | None = None, *, process: Process = THIS_PROCESS) -> None:
        super().__init__()
        self.guard = Guard()
        self._process = process
        self._recorder: Recorder | None = None
        self._made_s: float | None = None
        self._heard_s = 0.0
        self._wait_s = 0.0
        self._training = False
        self._begun = False
        self._sets = EvaluationSets()
        if recorder is not None:
            process.adopt(recorder)

    @hook
    def on_init_end(self, /, args: object, state: object, control: object, **_: object) -> None:  # noqa: ARG002
        """The Trainer is made."""
        self._made_s = time.monotonic()

    @hook
    def on_train_begin(self, /, args: Theirs, state: Theirs, control: object, **_: object) -> None:  # noqa: ARG002
        """Everything is ready, a checkpoint loaded; the data follow.

        Comes again where the Trainer tries a smaller batch size; its steps begin anew then.
        """
        recorder = self._listen(args)
        if recorder is None:
            return
        if self._made_s is not None and not self._process.has_trained:
            recorder.past_phase("trainer_setup", self._made_s, recorder.monotonic())
        self._process.training()
        self._training, self._begun = True, False
        self._process.stages.turn_to("data_warmup")
        recorder.resumed(state.global_step)

    @hook
    def on_epoch_begin(self, /, args: object, state: object, control: object, **_: object) -> None:  # noqa: ARG002
        """A pass over the data begins: its workers start and its first batch is waited for."""
        self._close_what_is_over()

    @hook
    def on_step_begin(self, /, args: object, state: object, control: object, **_: object) -> None:  # noqa: ARG002
        """The batches of a step are there."""
        recorder = self._recorder
        if recorder is None:
            return
        if self._begun:
            self._close_what_is_over(hear=False)
            self._wait_s = recorder.monotonic() - self._heard_s
            return
        self._begun = True
        self._process.stages.leave_all()
        recorder.first_batch()
        self._wait_s = 0.0

    @hook
    def on_step_end(self, /, args: Theirs, state: Theirs, control: Theirs, **_: object) -> None:
        """An optimizer step is done, which may be several batches."""
        if self._recorder is None:
            return
        self._recorder.step_done(data_wait_s=self._wait_s)
        self._wait_s = 0.0
        self._turn(args, state, control)

    @hook
    def on_epoch_end(self, /, args: Theirs, state: Theirs, control: Theirs, **_: object) -> None:
        """A pass over the data is over."""
        self._close_what_is_over()
        self._turn(args, state, control)

    @hook
    def on_log(self, /, args: object, state: object, control: object, **_: object) -> None:  # noqa: ARG002
        """Figures were gathered: until here no batch was waited for."""
        self._hear()

    @hook
    def on_prediction_step(self, /, args: Theirs, state: object, control: object, **_: object) -> None:  # noqa: ARG002
        """A batch of an evaluation is done, which nothing has announced where the program asked for it."""
        if self._listen(args) is not None and not self._process.stages.has("evaluation"):
            self._process.stages.enter("evaluation")

    @hook
    def on_evaluate(
        self, /, args: Theirs, state: Theirs, control: Theirs, metrics: Mapping[str, float], **_: object
    ) -> None:
        """An evaluation over one set of data is done; others may follow."""
        self._hear()
        if self._recorder is None or (self._training and not self._sets.are_done(metrics)):
            return
        self._process.stages.leave("evaluation")
        if self._training:
            self._turn(args, state, control, evaluated=True)
        else:
            self._process.ended("succeeded")

    @hook
    def on_predict(self, /, args: object, state: object, control: object, **_: object) -> None:  # noqa: ARG002
        """A prediction is done."""
        if self._recorder is not None:
            self._process.stages.leave("evaluation")
            self._hear()
            if not self._training:
                self._process.ended("succeeded")

    @hook
    def on_save(self, /, args: Theirs, state: Theirs, control: object, **_: object) -> None:  # noqa: ARG002
        """A checkpoint lies where it should."""
        recorder = self._recorder
        if recorder is None:
            return
        self._sets.round_over()
        stages, step = self._process.stages, state.global_step
        leader = recorder.identity.rank == 0
        size = bytes_of(Path(args.output_dir) / f"checkpoint-{step}") if leader else None
        span = stages.leave_save(size)
        if span is None:
            span = _told_afterwards(recorder, step, size, self._heard_s)
            stages.leave("evaluation")
        if leader and not args.save_only_model:
            recorder.durable(step, bytes=size, duration_s=span.blocking_s)
        self._hear()

    @hook
    def on_train_end(self, /, args: object, state: object, control: object, **_: object) -> None:  # noqa: ARG002
        """Training ended well; what follows is the end of the job, until a trainer begins again."""
        if self._recorder is not None:
            self._training = False
            self._process.stages.turn_to("shutdown")
            self._process.ended("succeeded")

    def _listen(self, args: Theirs) -> Recorder | None:
        """The recorder, where it records; None where the hooks are off."""
        if self._recorder is None:
            recorder = self._process.recorder(args.process_index, args.world_size)
            self._recorder = recorder if recorder.active else None
            self._hear()
        return self._recorder

    def _hear(self) -> None:
        if self._recorder is not None:
            self._heard_s = self._recorder.monotonic()

    def _turn(self, args: Theirs, state: Theirs, control: Theirs, *, evaluated: bool = False) -> None:
        """Begin what the Trainer is going to do by the flags of its control."""
        recorder = self._recorder
        if recorder is None:
            return
        self._hear()
        if control.should_evaluate and not evaluated:
            self._process.stages.enter("evaluation")
        elif control.should_save and str(getattr(args.save_strategy, "value", args.save_strategy)) != "best":
            self._process.stages.follow(recorder.checkpoint(state.global_step))

    def _close_what_is_over(self, *, hear: bool = True) -> None:
        """Nothing that was announced is going on any more, whether it came about or not."""
        if self._recorder is None or not self._begun:
            return
        if self._process.stages.is_open:
            self._sets.round_over()
            self._process.stages.leave_all()
            self._hear()
        elif hear:
            self._hear()


def _told_afterwards(recorder: Recorder, step: int, size: int | None, began_s: float) -> SaveSpan:
    """A save that nothing has announced, from the last word before it."""
    span = recorder.checkpoint(step)
    now_s = recorder.monotonic()
    recorder.past_phase(span.name, began_s, now_s)
    span.bytes, span.blocking_s = size, now_s - began_s
    recorder.save_ended(span)
    return span
