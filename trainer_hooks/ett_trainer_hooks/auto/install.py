"""Puts the seams in place as torch's modules are imported; called once, before the first of them.

Each seam is a public function or hook of torch; one that a torch lacks is left out and said once.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial, wraps
from threading import get_ident
from types import ModuleType
from typing import Any

from ett_trainer_hooks import torch_private
from ett_trainer_hooks.after_import import Action, AfterImport
from ett_trainer_hooks.auto import saving
from ett_trainer_hooks.auto.recorder import AutomaticRecorder
from ett_trainer_hooks.auto.watch import Watch
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.recording.compiling import CompileWatch
from ett_trainer_hooks.recording.handover import PROCESS
from ett_trainer_hooks.standby.handing_over import PLACE

LIGHTNING = ("lightning.fabric.plugins.io.torch_io", "lightning_fabric.plugins.io.torch_io")
STATE_DICTS = ("get_state_dict", "get_optimizer_state_dict", "set_state_dict", "set_optimizer_state_dict")

Function = Callable[..., Any]
Wrapper = Callable[[Watch, Function], Function]


def install() -> Watch | None:
    """Observe this process from now on; None where the program has a recorder of its own."""
    watch = Watch(AutomaticRecorder())
    if not PROCESS.offer(watch.stand_back):
        watch.stand_back()
        return None
    guard = watch.recorder.guard
    if PLACE in os.environ:
        watch.settled = partial(ask_for_standby, dict(os.environ), watch.recorder)
    watch.recorder.watch_compile(
        CompileWatch(watch.recorder, thread=lambda: watch.thread, around=watch.whole)
    )
    AfterImport({name: protected(guard, action) for name, action in seams(watch).items()})
    os.register_at_fork(after_in_child=watch.forked)
    atexit.register(watch.finish)
    sys.exit = watch.noting_exit(sys.exit)
    return watch


def ask_for_standby(at_import: Mapping[str, str], recorder: AutomaticRecorder) -> None:
    """Have one made that imports what the program has; `at_import` is what was set before torch came."""
    from ett_trainer_hooks.auto import ahead  # noqa: PLC0415 - only where there are standbys

    ahead.ask(at_import, recorder)


def seams(watch: Watch) -> dict[str, Action]:
    """What to do with each module of torch."""
    together, apart = saving.saving_together, saving.saving_asynchronously
    return {
        "torch.optim.optimizer": partial(follow_optimizers, watch),
        "torch.utils.data.dataloader": partial(follow_loaders, watch),
        "torch.serialization": wrapping(watch, save=saving.saving, load=saving.loading),
        "torch.distributed.distributed_c10d": wrapping(watch, init_process_group=joining),
        "torch.distributed.checkpoint.state_dict_saver": wrapping(watch, save=together, async_save=apart),
        "torch.distributed.checkpoint.state_dict_loader": wrapping(watch, load=saving.loading_together),
        "torch.distributed.checkpoint.state_dict": wrapping(watch, **dict.fromkeys(STATE_DICTS, arranging)),
        "torch.compiler": wrapping(watch, load_cache_artifacts=saving.loading_caches),
        "safetensors.torch": wrapping(watch, save_file=saving.saving_to(1, "filename")),
        **dict.fromkeys(LIGHTNING, partial(follow_lightning, watch)),
    }


def protected(guard: Guard, action: Action) -> Action:
    """The action, whose faults cost what it would have seen and nothing else."""

    def act(module: ModuleType) -> None:
        guard.call(action, module)

    return act


def wrapping(watch: Watch, **wrappers: Wrapper) -> Action:
    """An action that puts a wrapper around functions of a module, before anybody took them from it."""

    def act(module: Any) -> None:  # noqa: ANN401 - a module of torch
        for name, wrapper in wrappers.items():
            if callable(function := getattr(module, name, None)):
                setattr(module, name, wrapper(watch, function))

    return act


def arranging(watch: Watch, arrange: Function) -> Function:
    """A function that gets or sets state for a distributed checkpoint.

    So that there is a state to get or set, it has a fresh optimizer make a step with nothing to learn.
    """

    @wraps(arrange)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        with watch.without_steps():
            return arrange(*args, **kwargs)

    return observed


def joining(watch: Watch, join: Function) -> Function:
    """`init_process_group`: a phase; whoever joins is a rank."""

    @wraps(join)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        if not watch.here:
            return join(*args, **kwargs)
        if "RANK" in os.environ:
            watch.rank()
        with watch.whole(), watch.phase("process_group"):
            result = join(*args, **kwargs)
        watch.recorder.guard.call(_joined, watch)
        return result

    return observed


def _joined(watch: Watch) -> None:
    distributed = sys.modules["torch.distributed"]
    watch.rank(distributed.get_rank(), distributed.get_world_size())


def follow_optimizers(watch: Watch, module: Any) -> None:  # noqa: ANN401 - torch.optim.optimizer
    """Steps by torch's hook for all optimizers; the making of one by its constructor."""
    guard, torch = watch.recorder.guard, sys.modules["torch"]
    kind = module.Optimizer
    make = kind.__init__

    @wraps(make)
    def made(self: object, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as torch's
        make(self, *args, **kwargs)
        guard.call(watch.optimizer_made, self)

    kind.__init__ = made

    def stepped(optimizer: object, _args: object, _kwargs: object) -> None:
        if not torch.compiler.is_compiling():  # a compiled step stays one graph, without us in it
            guard.call(watch.stepped, optimizer)

    module.register_optimizer_step_post_hook(stepped)


def follow_lightning(watch: Watch, module: Any) -> None:  # noqa: ANN401 - of Lightning
    """Its checkpoints, which it puts together in memory, by the plugin that takes them to their place."""
    wrapping(watch, save_checkpoint=saving.saving_to(2, "path"))(module.TorchCheckpointIO)


def follow_loaders(watch: Watch, module: Any) -> None:  # noqa: ANN401 - torch.utils.data.dataloader
    """Waits for batches, by the iterators of a DataLoader."""
    guard, passes, monotonic = watch.recorder.guard, watch.passes, watch.recorder.monotonic
    start = module.DataLoader.__iter__
    iterators = torch_private.iterator_class({module.__name__: module})
    if iterators is None:
        guard.say_once("loader", "this torch's DataLoader is not known; waits for data are not seen")
        return
    take = iterators.__next__

    @wraps(start)
    def started(self: object) -> Any:  # noqa: ANN401 - an iterator of torch
        if not watch.here:
            return start(self)
        asked_s = monotonic()
        with watch.whole():
            iterator = start(self)
        guard.call(passes.started, iterator, asked_s, monotonic())
        return iterator

    @wraps(take)
    def taken(self: Any) -> Any:  # noqa: ANN401 - an iterator and a batch of torch
        if not watch.on or watch.inside or get_ident() != watch.thread:
            return take(self)
        asked_s = monotonic()
        passes.before()
        watch.inside = True
        try:
            batch = take(self)
        except StopIteration:
            guard.call(passes.exhausted, self, asked_s, monotonic())
            raise
        finally:
            watch.inside = False
        guard.call(passes.delivered, self, asked_s, monotonic())
        return batch

    module.DataLoader.__iter__ = started
    iterators.__next__ = taken
