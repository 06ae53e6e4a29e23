"""One rank of the training job, from the imports to the last step, under the recorder's eyes.

Every rank runs `train` in its own process; gloo joins them. Its start is declared as stages, each
a phase for the recorder: a plain trainer runs them one after another; with the part `stages` those
that do not need each other run side by side. Stages with collectives have `main=True`, so that
they come in one order on all ranks. Nothing here imports torch: that is a stage too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from types import ModuleType
from typing import Any

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import standby, toolchain
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy
from ett_trainer_hooks.pipeline.collectives import CollectiveCount
from ett_trainer_hooks.pipeline.fast_batch import FastBatch
from ett_trainer_hooks.pipeline.imports import uncollected
from ett_trainer_hooks.pipeline.stages import Here, Stage, run
from ett_trainer_hooks.pipeline.takes import Lease
from ett_trainer_hooks.reference import criteo, notes, standing_by
from ett_trainer_hooks.reference.compiled import BUNDLE, Compiled
from ett_trainer_hooks.reference.saving import policy_of
from ett_trainer_hooks.reference.settings import Settings
from ett_trainer_hooks.reference.source import Source


def train(settings: Settings, recorder: Recorder, *, clock: Callable[[], float] = time.monotonic) -> None:
    """Start, resume from the newest intact checkpoint, train to the last step."""
    with ExitStack() as leaving:
        start = Start(settings, recorder, leaving, policy_of(settings, recorder, clock, os.environ))

        def first_steps_done() -> None:
            start.compiled.first_steps_done()
            standing_by.ask(settings)

        begun = run(start.stages(), recorder, side_by_side=settings.uses("stages"))
        start.collectives.tell(recorder)
        work = begun["imports"]
        if begun.get("toolchain") is False:
            toolchain.distrust_processor()
        fast = begun.get("fast_batch")
        batches = fast.checked(begun["data"]) if fast else begun["data"]
        loop = work.Loop(
            settings, recorder, begun["learner"], begun["checkpoints"], start.policy, lease=start.lease
        )
        loop.run(batches, begun["position"], first_steps_done=first_steps_done)
        work.part()
        start.compiled.close()


class Start:
    """The stages of one rank's start; a method each, given the results that the stage needs.

    What must be closed at the end of the training goes to `leaving`.
    """

    def __init__(
        self, settings: Settings, recorder: Recorder, leaving: ExitStack, policy: CheckpointPolicy
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._leaving = leaving
        self.policy = policy
        """How often the loop saves; a checkpoint brings back what it has learnt."""
        self.collectives = CollectiveCount()
        """Those of the start, from the first process group on."""
        self._prepared: standing_by.Prepared | None = standby.prepared()
        in_memory = self._prepared is not None and self._prepared.is_compiled
        self.compiled = Compiled(settings, recorder, in_memory=in_memory)
        """What need not be compiled here."""
        self.lease: Lease | None = None
        """On the first rank, what keeps other starts from writing to the same checkpoints."""

    def stages(self) -> list[Stage]:
        """The stages in the order in which a plain trainer runs them."""
        loading = self.compiled.stages()
        asked = tuple(stage.name for stage in loading[:1] if stage.name == BUNDLE)
        loaded = tuple(stage.name for stage in loading[-1:])
        return [
            Stage("imports", self.imports, main=True),
            *loading,
            Stage("device", self.device, ("imports",), "device_init", main=True),
            Stage("ranks", self.ranks, ("imports", "device"), "process_group", main=True),
            *self._compiling("toolchain", self.toolchain, ("imports", *asked)),
            Stage("source", self.source, (), "preproc_creation"),
            Stage("checkpoints", self.checkpoints, ("imports", "ranks"), "checkpoint_load", main=True),
            Stage("position", self.position, ("checkpoints",), "checkpoint_load", main=True),
            Stage("model", self.model, ("imports", "device"), "model_init"),
            Stage("plan", self.plan, ("imports", "device", "model", "ranks"), "sharding_plan", main=True),
            Stage("shards", self.shards, ("imports", "device", "model", "plan"), "model_init", main=True),
            Stage(
                "learner", self.learner, ("shards", "checkpoints", "position"), "checkpoint_load", main=True
            ),
            *self._compiling("fast_batch", self.fast_batch, ("imports", "model", "shards", *loaded)),
            Stage("data", self.data, ("imports", "source", "position"), "data_warmup"),
        ]

    def _compiling(self, part: str, work: Callable[..., Any], needs: tuple[str, ...]) -> list[Stage]:
        """The stage of a part that has to do with compiling, where it is used."""
        if not (self._settings.compile and self._settings.uses(part)):
            return []
        return [Stage(part, work, needs, "compile")]

    def imports(self, _: Here) -> ModuleType:
        """Torch, TorchRec and what uses them."""
        if self._settings.compile and self._settings.uses("toolchain"):
            toolchain.trust_processor()
        with uncollected():
            from ett_trainer_hooks.reference import work  # noqa: PLC0415 - takes seconds

        notes.pass_over()
        return work

    def device(self, _: Here, work: ModuleType) -> Any:  # noqa: ANN401 - torch is not there yet
        """Where this rank computes."""
        return work.device()

    def ranks(self, _: Here, work: ModuleType, __: Any) -> None:  # noqa: ANN401
        """The process group of all ranks."""
        self.collectives.start()
        work.join_ranks(self._leaving)

    def toolchain(self, _: Here, *__: object) -> bool:
        """The native compiler made ready where it is needed; False where it does not fit the processor."""
        if self.compiled.has_bundle or self.compiled.follows:
            return True
        return toolchain.prepare(self._recorder)

    def source(self, here: Here) -> Callable[[int], criteo.Samples]:
        """A function from step to the samples of this rank, which a cancelled start does not wait for."""
        source = None if self._prepared is None else self._prepared.source
        if source is None:
            source = Source(self._settings, self._recorder, keeps=self._settings.uses("kept_data"))
        return source.samples(int(os.environ["RANK"]), here.cancelled)

    def checkpoints(self, _: Here, work: ModuleType, __: None) -> Any:  # noqa: ANN401
        """What saves the learner, and finds what was saved."""
        self.lease = work.claim(self._settings, self._recorder)
        return work.keeper(self._settings, self._recorder, self.policy, self.lease, self._leaving)

    def position(self, _: Here, keeper: Any) -> int:  # noqa: ANN401
        """Steps that the checkpoint to resume from holds; 0 without one."""
        return int(keeper.find())

    def model(self, _: Here, work: ModuleType, device: Any) -> Any:  # noqa: ANN401
        """The model, no memory taken for its tables yet."""
        return work.build(self._settings, device)

    def plan(self, _: Here, work: ModuleType, device: Any, model: Any, __: None) -> Any:  # noqa: ANN401
        """Which rank keeps which part of the tables."""
        if not self._settings.uses("stored_plan"):
            return work.model.plan_shards(model, device)
        return work.plan_again(model, device, f"{self._settings.cache}/plans", self._recorder)

    def shards(self, _: Here, work: ModuleType, device: Any, model: Any, plan: Any) -> Any:  # noqa: ANN401
        """The learner with this rank's part of the tables, as yet with its first weights."""
        with work.local_metadata(self._recorder) if self._settings.uses("local_metadata") else nullcontext():
            return work.model.shard(model, plan, self._settings, device)

    def learner(self, here: Here, learner: Any, keeper: Any, step: int) -> Any:  # noqa: ANN401
        """The learner with what the checkpoint holds."""
        keeper.load(learner)
        here.span.resumed_step = step
        return learner

    def fast_batch(self, _: Here, work: ModuleType, model: Any, *__: object) -> FastBatch:  # noqa: ANN401
        """The dense parts compiled with a made-up batch, once all that draws random numbers is done."""
        fast: FastBatch = work.fast_batch(self._settings, self._recorder)
        fast.rehearse(work.model.dense_parts(model))
        return fast

    def data(
        self, _: Here, work: ModuleType, samples: Callable[[int], criteo.Samples], first: int
    ) -> Iterator[Any]:
        """Batches from the first step on; the first lies ready."""
        batches: Iterator[Any] = work.reader(samples, first, self._settings.steps, self._leaving)
        return batches
