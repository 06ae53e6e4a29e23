"""The compiler begins before the data are there: with a made-up batch, on copies of the model's dense parts.

Execution: `rehearse` runs on any one thread, usually a stage's, while the training thread restores a
checkpoint and the data warm up; the real parts, compiled with the same options, then find the code of
their copies. Copies keep weights, buffers and gradients of the real parts as they are. The states of
the random generators are put back, by torch's compiler too: nothing else may draw from them meanwhile.
Nothing here raises into the trainer: what cannot be done is a `decision` with its reason, and the
first step compiles as it would have.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from ett_trainer_hooks import torch_private
from ett_trainer_hooks.pipeline.batch_spec import Spec, make, mismatch
from ett_trainer_hooks.recording.recorder import Recorder
from ett_trainer_hooks.recording.spans import describe

T = TypeVar("T")

WHAT = "fast batch"


class FastBatch:
    """Compiles the dense parts of a model with a batch of the declared form.

    Args:
        spec: the fields of a batch.
        forward: computes a loss from copies of the parts, by name, and a made-up batch, by field, as the
            model does with real ones; where the model has embeddings it takes zeros of their shape,
            with `requires_grad`.
        recorder: whom to tell.
        options: what the real parts are compiled with, `part.compile(**options)`.
    """

    def __init__(
        self,
        spec: Spec,
        forward: Callable[[Mapping[str, Any], Mapping[str, Any]], Any],
        recorder: Recorder,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._spec = spec
        self._forward = forward
        self._recorder = recorder
        self._options = dict(options or {})
        self._rehearsed = False

    def rehearse(self, parts: Mapping[str, Any]) -> bool:
        """Forward and backward with copies of the parts; whether that went well."""
        try:
            with _unchanged_generators():
                copies = {name: copy.deepcopy(part) for name, part in parts.items()}
                for part in copies.values():
                    part.compile(**self._options)
                self._forward(copies, make(self._spec)).backward()
        except Exception as error:  # noqa: BLE001 - the trainer goes on without
            self._recorder.decision(WHAT, f"given up: {describe(error)}; the first step compiles")
            return False
        self._rehearsed = True
        return True

    def checked(self, batches: Iterable[T]) -> Iterator[T]:
        """The same batches; the first is compared with the declaration, and what became of it told.

        Where it differs, what was compiled is forgotten: torch would take the first real size for a
        second one and make code for sizes that change.
        """
        iterator = iter(batches)
        for batch in iterator:
            if self._rehearsed and (words := mismatch(self._spec, batch)):
                self._forget(words)
            graphs, step = _graphs(), self._recorder.step
            yield batch
            break
        for batch in iterator:
            if self._rehearsed and self._recorder.step > step:
                self._tell(graphs)
            yield batch

    def _forget(self, words: str) -> None:
        import torch  # noqa: PLC0415

        self._rehearsed = False
        torch.compiler.reset()
        self._recorder.decision(WHAT, f"refused: {words}; the first step compiles again")

    def _tell(self, before: int) -> None:
        self._rehearsed = False
        again = _graphs() - before
        found = "the first step compiled nothing" if not again else f"the first step compiled {again} graphs"
        self._recorder.decision(WHAT, f"used: {found}", {"graphs": before, "graphs_again": again})


def _graphs() -> int:
    """Graphs that torch has compiled in this process so far."""
    counters: Any = torch_private.part("counters")
    return int(counters["stats"]["unique_graphs"]) if isinstance(counters, Mapping) else 0


@contextmanager
def _unchanged_generators() -> Iterator[None]:
    """Put the states of torch's and Python's generators back afterwards."""
    import torch  # noqa: PLC0415

    state = random.getstate()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(state)
