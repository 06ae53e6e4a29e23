"""What this rank need not compile: what earlier starts have learnt or kept, and what local rank 0 compiles.

Made before torch is imported. Where none of these parts is on, every call does nothing.
"""

from __future__ import annotations

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import dynamic_sources, profile
from ett_trainer_hooks.pipeline.bundle.process import ProcessBundle
from ett_trainer_hooks.pipeline.bundle.settings import BundleSettings, prepare_compiler
from ett_trainer_hooks.pipeline.bundle.sharing import SharedCompiles, forget
from ett_trainer_hooks.pipeline.stages import Here, Stage
from ett_trainer_hooks.reference.settings import Settings

BUNDLE = "bundle"
"""The stage after which it is known whether the store has a bundle."""


class Compiled:
    """The parts `pgo`, `dynamic_sources`, `bundle` and `one_compile` of the reference trainer.

    With what it needs compiled `in_memory` of this very process, nothing is loaded or shared.
    """

    def __init__(self, settings: Settings, recorder: Recorder, *, in_memory: bool = False) -> None:
        self._recorder = recorder
        self._keeps_profile = settings.compile and settings.uses("pgo") and profile.keep(recorder)
        if settings.compile and settings.uses("dynamic_sources"):
            dynamic_sources.leave_open(recorder)
        self._bundle: ProcessBundle | None = None
        self._shared: SharedCompiles | None = None
        if in_memory:
            if settings.compile and (settings.uses("bundle") or settings.uses("one_compile")):
                prepare_compiler()
            return
        if settings.compile and settings.uses("bundle"):
            name = f"dlrm-batch{settings.batch_size}-dim{settings.embedding_dim}"
            store = BundleSettings(address=f"{settings.cache}/bundles", name=name)
            self._bundle = ProcessBundle(store, recorder)
        if settings.compile and settings.uses("one_compile"):
            know = forget if self._bundle is None else self._bundle.know
            self._shared = SharedCompiles(recorder, cache_dir=prepare_compiler(), know=know)

    @property
    def has_bundle(self) -> bool:
        """Whether the code of an earlier start is there; known after the stage `BUNDLE`."""
        return self._bundle is not None and self._bundle.use.outcome == "hit"

    @property
    def follows(self) -> bool:
        """Whether another rank of the node compiles for this one."""
        return self._shared is not None and self._shared.follows

    def stages(self) -> list[Stage]:
        """The stages that this adds to a start: the store is asked while torch is imported."""
        if self._bundle is not None:
            return [
                Stage(BUNDLE, self._fetch, (), "cache_load"),
                Stage("compiled", self._load, ("imports", BUNDLE), "cache_load"),
            ]
        return [] if self._shared is None else [Stage("compiled", self._share, ("imports",), "cache_load")]

    def first_steps_done(self) -> None:
        """What the first steps needed is compiled."""
        if self._keeps_profile:
            profile.tell(self._recorder)
        if self._shared is not None:
            self._shared.over()
        if self._bundle is not None:
            self._bundle.save()

    def close(self) -> None:
        """The training is over."""
        if self._shared is not None:
            self._shared.close()
        if self._bundle is not None:
            self._bundle.close()

    def _fetch(self, _: Here) -> None:
        assert self._bundle is not None  # noqa: S101 - for the type checker
        self._bundle.fetch()

    def _load(self, here: Here, _: object, __: None) -> None:
        assert self._bundle is not None  # noqa: S101 - for the type checker
        self._bundle.load()
        self._share(here, _)

    def _share(self, _: Here, __: object) -> None:
        if self._shared is not None:
            self._shared.begin(has_bundle=self.has_bundle)
