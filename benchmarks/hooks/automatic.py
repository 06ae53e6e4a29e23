"""What a step costs under automatic observation, against the same loop without it.

One process runs the same loop of a DataLoader and an optimizer twice a run, in turns: watched and
not. The optimizer does nothing and the loader hands out one object, so that little but torch's own
work and the seams is measured. Usage: python benchmarks/hooks/automatic.py [--steps 20000] [--runs 9]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from ett_trainer_hooks.auto.install import follow_loaders, follow_optimizers, install
from ett_trainer_hooks.auto.watch import Watch


def observed(directory: str) -> Watch:
    os.environ.update(ETT_JOB_ID="benchmark", ETT_JOURNAL_DIR=directory)
    watch = install()
    if watch is None or "torch" in sys.modules:
        raise SystemExit("this process has a recorder or torch already")
    return watch


def loop_of(steps: int) -> tuple[Any, Any]:
    """A loader of `steps` batches and an optimizer whose step does nothing."""
    import torch  # noqa: PLC0415 - after the seams are in place
    from torch.utils.data import DataLoader, IterableDataset  # noqa: PLC0415

    class Same(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(steps))

    class Idle(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:  # noqa: ANN401, ARG002 - as torch's
            return

    return DataLoader(Same(), batch_size=None), Idle([torch.zeros(1)], {})


@contextmanager
def seams_taken_away() -> Iterator[None]:
    """Torch as it comes: the hook and the wrappers are out of the way, not only silent."""
    from torch.optim import optimizer  # noqa: PLC0415 - after the seams are in place
    from torch.utils.data import dataloader  # noqa: PLC0415

    hooks = optimizer._global_optimizer_post_hooks  # noqa: SLF001 - nothing public removes it
    iterators: Any = dataloader._BaseDataLoaderIter  # noqa: SLF001
    kept, taken = dict(hooks), iterators.__next__
    hooks.clear()
    iterators.__next__ = taken.__wrapped__
    try:
        yield
    finally:
        iterators.__next__ = taken
        hooks.update(kept)


def seconds_of(loader: Any, optimizer: Any) -> float:  # noqa: ANN401 - torch's
    began_s = time.perf_counter()
    for _ in loader:
        optimizer.step()
    return time.perf_counter() - began_s


LOADERS = "torch.utils.data.dataloader"


class Idle:
    """A stand-in for torch's optimizers that costs nothing."""

    param_groups = ({"params": ()},)


def seams_alone(watch: Watch, steps: int, runs: int) -> list[float]:
    """Microseconds a step of the hook and of the wrapper, around an iterator and a step that do nothing."""

    class Batches:
        def __init__(self) -> None:
            self.take = iter(range(steps)).__next__

        def __iter__(self) -> Batches:
            return self

        def __next__(self) -> int:
            return self.take()

    class Plain(Batches):
        pass

    hooks: list[Any] = []
    optimizers = SimpleNamespace(Optimizer=Idle, register_optimizer_step_post_hook=hooks.append)
    loader = type("DataLoader", (), {"__iter__": lambda _: Batches()})
    follow_loaders(watch, SimpleNamespace(__name__=LOADERS, DataLoader=loader, _BaseDataLoaderIter=Batches))
    follow_optimizers(watch, optimizers)
    Plain.__next__ = Batches.__next__.__wrapped__  # type: ignore[attr-defined,method-assign]
    optimizer, hook = Idle(), hooks[0]
    return [1e6 * (with_hook(Batches(), optimizer, hook) - without(Plain())) / steps for _ in range(runs)]


def with_hook(batches: Iterable[int], optimizer: object, hook: Any) -> float:  # noqa: ANN401 - a function
    began_s = time.perf_counter()
    for _ in batches:
        hook(optimizer, (), {})
    return time.perf_counter() - began_s


def without(batches: Iterable[int]) -> float:
    began_s = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        watch = observed(directory)
        loader, optimizer = loop_of(arguments.steps)
        took: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(arguments.runs):
            for on, surroundings in ((True, nullcontext), (False, seams_taken_away)):
                with surroundings():
                    took[on].append(1e6 * seconds_of(loader, optimizer) / arguments.steps)
        alone = seams_alone(watch, arguments.steps, arguments.runs)
        watch.recorder.close()
    extra = [on - off for on, off in zip(took[True], took[False], strict=True)]
    print(f"Python {platform.python_version()}, {arguments.steps} steps, {arguments.runs} runs")
    print(
        f"torch's own loop: median {statistics.median(took[False]):.2f} µs a step, min {min(took[False]):.2f}"
    )
    print(f"observed: {statistics.median(extra):.2f} µs a step more ({min(extra):.2f} to {max(extra):.2f})")
    print(f"the seams alone: median {statistics.median(alone):.2f} µs a step, min {min(alone):.2f}")
    print(f"difference of the minima: {min(took[True]) - min(took[False]):.2f} µs")


if __name__ == "__main__":
    main()
