"""The training loop of one rank, under the recorder's eyes.

The ranks must do the same things in the same order, so whether a checkpoint is due is not read
from each one's clock: rank 0 says so when the ranks agree on the loss. So it is with a notice to go,
which may come to one of them. What the recorder is told:

* the batches, through `recorder.batches` or, with a train pipeline of TorchRec, its adapter: both count
  steps and waits for data;
* every checkpoint, and when it became durable: by the keeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ett_core.leaving import END_S, GO, SAVE
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters.torchrec import ObservedPipeline
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy
from ett_trainer_hooks.pipeline.notice import GRACES_S, Notice
from ett_trainer_hooks.pipeline.preemption import EXIT_STATUS, agree_to_leave
from ett_trainer_hooks.pipeline.takes import Lease
from ett_trainer_hooks.reference import model
from ett_trainer_hooks.reference.ending import ending_of
from ett_trainer_hooks.reference.keepers import Keeper
from ett_trainer_hooks.reference.settings import Settings


class UnsavedError(Exception):
    """What was trained is not saved, and no later save will make up for it; the message says why."""


class Agreed(NamedTuple):
    """What the ranks agreed on: their mean loss, whether to save, whether one was told to go."""

    loss: float
    due: bool
    told_to_go: bool


class Loop:
    """The training loop: steps, now and then an agreement of the ranks, checkpoints."""

    def __init__(  # noqa: PLR0913 - what a rank has made
        self,
        settings: Settings,
        recorder: Recorder,
        learner: model.Learner,
        keeper: Keeper,
        policy: CheckpointPolicy,
        *,
        lease: Lease | None = None,
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._learner = learner
        self._keeper = keeper
        self._policy = policy
        self._lease = lease
        self._ending = ending_of(settings, recorder, keeper.root)
        self._inner: Any = None
        self._notice = Notice(dict.fromkeys(GRACES_S, settings.grace_s))

    def run(self, batches: Iterable[Any], done: int, *, first_steps_done: Callable[[], None]) -> None:
        """Train from step `done` to the last; the last step is always saved, and durable in the end.

        `first_steps_done` is called once, after the first agreement.

        Raises:
            SystemExit: the job was told to go, and leaves.
            UnsavedError: the save of the last step has failed.
            LostError: another start has taken over meanwhile.
        """
        with self._notice if self._settings.uses("preemption") else nullcontext():
            self._run(batches, done, first_steps_done)

    def _run(self, batches: Iterable[Any], done: int, first_steps_done: Callable[[], None]) -> None:
        told = False
        if done >= self._settings.steps:
            self._nothing_left(done)
        for step, loss in enumerate(self._losses(batches), start=done + 1):
            last = step == self._settings.steps
            if last or step % self._settings.agree_every == 0:
                agreed = self._agree(loss)
                self._say(step, agreed.loss)
                if not told:
                    told = True
                    self._policy.begin()  # the time before the first agreement went into compiling
                    first_steps_done()
                if agreed.told_to_go and not last:
                    self._leave(step)
                if last:
                    self._check_lease()
                    self._ending.before_anchor(step, self._learner, self._inner)
                if agreed.due or last:
                    self._save(step)
        self._ending.after_anchor(over=self._keeper.close())
        if why := self._keeper.fault:
            raise UnsavedError(f"the last step, {self._settings.steps}, is not saved: {why}")

    def _leave(self, step: int) -> None:
        """The last thing that the loop does when the job is told to go."""
        leaving = agree_to_leave(self._notice, self._policy.standing, self._recorder)

        def left_s() -> float:  # another rank's notice, where this one has none
            return max(0.0, min(self._notice.left_s, leaving.values["left_s"]) - END_S)

        if leaving.way == SAVE:
            self._save(step, leave_in_s=left_s())
        self._keeper.close(0.0 if leaving.way == GO else left_s())
        with self._recorder.phase("shutdown"):
            dist.barrier()  # what was saved is durable before the first rank says that it leaves
        self._recorder.close("preempted", exit_code=EXIT_STATUS)
        raise SystemExit(EXIT_STATUS)

    def _save(self, step: int, leave_in_s: float | None = None) -> None:
        self._check_lease()
        self._keeper.save(step, self._learner, leave_in_s=leave_in_s)

    def _check_lease(self) -> None:
        if self._lease is not None:
            self._lease.check()

    def _losses(self, batches: Iterable[Any]) -> Iterator[torch.Tensor]:
        """Train on the batches, step by step."""
        samples = self._settings.batch_size
        if self._settings.pipeline == "none":
            for batch in self._recorder.batches(batches, samples=samples):
                yield self._learner.step(batch)
            return
        self._inner = model.pipeline(self._settings.pipeline, self._learner)
        pipeline = ObservedPipeline(self._recorder, self._inner, samples=samples)
        iterator = iter(batches)
        while (output := _progress(pipeline, iterator)) is not None:
            loss, *_ = output
            yield loss

    def _agree(self, loss: torch.Tensor) -> Agreed:
        numbers = torch.tensor([float(loss), float(self._policy.is_due()), float(self._notice.came)])
        dist.all_reduce(numbers)
        return Agreed(float(numbers[0]) / dist.get_world_size(), bool(numbers[1] > 0), bool(numbers[2] > 0))

    def _say(self, step: int, loss: float) -> None:
        if dist.get_rank() == 0:
            print(f"step {step} of {self._settings.steps}: loss {loss:.4f}", flush=True)

    def _nothing_left(self, done: int) -> None:
        """Say so; what the keeper only reads it gets, for whoever looks for the model there."""
        if dist.get_rank() == 0:
            why = f"an earlier start has done {done} of {self._settings.steps} steps"
            print(f"nothing is left to train: {why}", flush=True)
            self._recorder.decision("nothing is left to train", why)
        if self._keeper.elsewhere:
            self._ending.before_anchor(done, self._learner, None)
            self._save(done)


def _progress(pipeline: ObservedPipeline, batches: Iterator[Any]) -> Any:  # noqa: ANN401 - of the model
    """What the model gave for one more step; None where there was no batch left."""
    try:
        return pipeline.progress(batches)
    except StopIteration:
        return None
