"""Copies of a checkpointer that are made as late as they may be: once the training waits for them."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping

import torch

from ett_trainer_hooks.pipeline.checkpoint.arena import Arena
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer

PATIENCE_S = 60.0


def copy_late(keeper: Checkpointer) -> None:
    """From now on, copies that may wait are made only once a hook waits for them."""
    assert keeper._arena is not None
    keeper._deferral._copied = _AskedFor(keeper._arena)


class _AskedFor(threading.Event):
    """In the place of the event that all copies are made."""

    def __init__(self, arena: Arena) -> None:
        super().__init__()
        self.set()
        self._asked, self._fill = threading.Event(), arena.fill
        arena.fill = self._fill_once_asked  # type: ignore[method-assign]

    def clear(self) -> None:
        """A save begins."""
        self._asked.clear()
        super().clear()

    def wait(self, timeout: float | None = None) -> bool:
        """A hook waits."""
        self._asked.set()
        return super().wait(timeout)

    def _fill_once_asked(self, tensors: Mapping[Hashable, torch.Tensor]) -> None:
        assert threading.current_thread() is threading.main_thread() or self._asked.wait(PATIENCE_S)
        self._fill(tensors)
