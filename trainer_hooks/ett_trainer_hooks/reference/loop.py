"""The training loop of one rank, under the recorder's eyes.

The ranks must do the same things in the same order, so whether a checkpoint is due is not read
from each one's clock: rank 0 says so when the ranks agree on the loss. What the recorder is told:

* the batches, through `recorder.batches` or, with a train pipeline of TorchRec, its adapter: both count
  steps and waits for data;
* every checkpoint, and when it became durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters.torchrec import ObservedPipeline
from ett_trainer_hooks.reference import model
from ett_trainer_hooks.reference.checkpoints import CheckpointStore
from ett_trainer_hooks.reference.settings import Settings


class Loop:
    """The training loop: steps, now and then an agreement of the ranks, checkpoints."""

    def __init__(
        self,
        settings: Settings,
        recorder: Recorder,
        learner: model.Learner,
        store: CheckpointStore,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._learner = learner
        self._store = store
        self._clock = clock
        self._saved_at: float | None = None

    def run(self, batches: Iterable[Any], done: int, *, first_steps_done: Callable[[], None]) -> None:
        """Train from step `done` to the last; the last step is always saved.

        `first_steps_done` is called once, after the first agreement.
        """
        told = False
        for step, loss in enumerate(self._losses(batches), start=done + 1):
            last = step == self._settings.steps
            if last or step % self._settings.agree_every == 0:
                mean_loss, due = self._agree(loss)
                self._say(step, mean_loss)
                if not told:
                    told = True
                    first_steps_done()
                if due or last:
                    self._save(step)

    def _losses(self, batches: Iterable[Any]) -> Iterator[torch.Tensor]:
        """Train on the batches, step by step."""
        samples = self._settings.batch_size
        if self._settings.pipeline == "none":
            for batch in self._recorder.batches(batches, samples=samples):
                yield self._learner.step(batch)
            return
        inner = model.pipeline(self._settings.pipeline, self._learner)
        pipeline = ObservedPipeline(self._recorder, inner, samples=samples)
        iterator = iter(batches)
        while (output := _progress(pipeline, iterator)) is not None:
            loss, *_ = output
            yield loss

    def _agree(self, loss: torch.Tensor) -> tuple[float, bool]:
        due = dist.get_rank() == 0 and self._is_due()
        both = torch.tensor([float(loss), float(due)])
        dist.all_reduce(both)
        return float(both[0]) / dist.get_world_size(), bool(both[1] > 0)

    def _is_due(self) -> bool:
        now = self._clock()
        if self._saved_at is None:  # the time before the first agreement went into compiling
            self._saved_at = now
        return now - self._saved_at >= self._settings.checkpoint_every_s

    def _save(self, step: int) -> None:
        with self._recorder.checkpoint(step, mode="sync") as save:
            size = self._store.save(step, self._learner.state())
            save.bytes = size
        if size is not None:
            self._recorder.durable(step, bytes=size)
        self._saved_at = self._clock()

    def _say(self, step: int, loss: float) -> None:
        if dist.get_rank() == 0:
            print(f"step {step} of {self._settings.steps}: loss {loss:.4f}", flush=True)


def _progress(pipeline: ObservedPipeline, batches: Iterator[Any]) -> Any:  # noqa: ANN401 - of the model
    """What the model gave for one more step; None where there was no batch left."""
    try:
        return pipeline.progress(batches)
    except StopIteration:
        return None
