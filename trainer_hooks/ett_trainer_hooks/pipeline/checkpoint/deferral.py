"""Copies that are made while the next forward pass runs, and are waited for before the weights change.

Weights change in `optimizer.step()`, and those of TorchRec's tables already in the backward pass. Buffers
change in the forward pass; so they, and small tensors, of which a copy is cheap, are copied at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ett_trainer_hooks import Recorder

SMALL = 64 << 10
"""Bytes of a tensor that is copied at once."""


class Deferral:
    """Which copies may wait, and until when; nothing may before `guard`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._model: torch.nn.Module | None = None
        self._copied = threading.Event()
        self._copied.set()

    def guard(self, model: torch.nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """From now on, copies may wait until the backward pass of the model or a step of an optimizer."""
        self._model = model
        model.register_forward_hook(self._before_backward)
        for optimizer in optimizers:
            optimizer.register_step_pre_hook(self.join)

    def may_wait(self) -> Callable[[torch.Tensor], bool]:
        """Whether the copy of a tensor may wait."""
        if self._model is None:
            return lambda _: False
        buffers = {buffer.untyped_storage().data_ptr() for buffer in self._model.buffers()}

        def later(tensor: torch.Tensor) -> bool:
            storage = tensor.untyped_storage()
            return storage.nbytes() >= SMALL and storage.data_ptr() not in buffers

        return later

    def begin(self) -> None:
        """Copies are about to be made beside the training."""
        self._copied.clear()

    def done(self) -> None:
        """They are made, or will not be."""
        self._copied.set()

    def join(self, *_: Any) -> None:  # noqa: ANN401 - as torch calls hooks
        """Wait until they are made; the wait is told as blocking."""
        if not self._copied.is_set():
            with self._recorder.phase("checkpoint"):
                self._copied.wait()

    def _before_backward(self, _: torch.nn.Module, __: Any, outcome: Any) -> None:  # noqa: ANN401 - as torch calls
        """Join when there is a gradient of what the forward pass gave, before those of weights."""
        if self._copied.is_set():
            return
        followed = [tensor for tensor in _tensors_in(outcome) if tensor.requires_grad]
        for tensor in followed:
            tensor.register_hook(self.join)
        if not followed:
            self.join()


def _tensors_in(outcome: object) -> Iterator[torch.Tensor]:
    if isinstance(outcome, torch.Tensor):
        yield outcome
    elif isinstance(outcome, Mapping):
        for value in outcome.values():
            yield from _tensors_in(value)
    elif isinstance(outcome, list | tuple):
        for value in outcome:
            yield from _tensors_in(value)
