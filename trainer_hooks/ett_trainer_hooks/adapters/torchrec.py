"""TorchRec's train pipelines, told step by step although they read ahead.

A pipeline asks its iterator for batches that it trains on one, two or three steps later, inside
`progress()`, which is called on the training thread; some read from a thread of their own. So a
step is a `progress()` that returned, the first batch begins with the first forward pass, and data
wait is what `progress()` spent in the iterator. Nothing of TorchRec is imported here: any object
with `progress(iterator)` will do.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

from ett_trainer_hooks import Recorder

_END = object()


class ObservedPipeline:
    """A train pipeline that tells `recorder` of its steps, and is the pipeline in all other respects.

    Args:
        recorder: the recorder of this process.
        pipeline: a `TrainPipelineBase`, `TrainPipelineSparseDist` or another of their kind.
        samples: the samples of a batch, or a function that tells them.
        monotonic: seconds of a clock that never steps.
    """

    def __init__(
        self,
        recorder: Recorder,
        pipeline: Any,  # noqa: ANN401 - TorchRec's
        *,
        samples: float | Callable[[Any], float] = 0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recorder = recorder
        self._pipeline = pipeline
        self._model: Any = getattr(pipeline, "_model", None)
        self._samples = samples
        self._monotonic = monotonic
        self._feed: _Feed | None = None
        self._ahead: deque[float] = deque()
        self._wait_s = 0.0
        self._thread = 0
        self._begins_with_batch = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - TorchRec's
        """Everything else is the pipeline's."""
        return getattr(self._pipeline, name)

    @property
    def prefetched(self) -> int:
        """Batches that were read and not trained on yet.

        A data loader's own position is this many batches ahead of the model: a checkpoint that holds
        the one with the other skips them when it is resumed.
        """
        return len(self._ahead)

    def progress(
        self,
        dataloader_iter: Iterator[Any],
        *args: Any,  # noqa: ANN401 - TorchRec's
        **words: Any,  # noqa: ANN401 - TorchRec's
    ) -> Any:  # noqa: ANN401 - TorchRec's
        """One training step, as the pipeline's own; raises StopIteration once all batches are trained on.

        Where the model is in evaluation mode it is no step, and nothing is told.
        """
        if self._model is not None and not self._model.training:
            return self._pipeline.progress(dataloader_iter, *args, **words)
        feed = self._feed
        if feed is None or feed.source is not dataloader_iter:
            feed = self._feed = _Feed(self, dataloader_iter)
        self._thread = get_ident()
        self._wait_s = 0.0
        try:
            progress = self._pipeline.progress if self._recorder.begun else self._first
            output = progress(feed, *args, **words)
        except StopIteration:
            self._ahead.clear()
            self._recorder.flush(0.0)
            raise
        samples = self._ahead.popleft() if self._ahead else 0.0
        self._recorder.step_done(samples=samples, data_wait_s=self._wait_s)
        return output

    def take(self, source: Iterator[Any]) -> Any:  # noqa: ANN401 - a batch
        """The next batch of `source`, whose wait is counted where it keeps the training thread."""
        here = get_ident() == self._thread
        if here and not self._recorder.begun:
            with self._recorder.phase("data_warmup"):
                batch = next(source, _END)
        else:
            asked_s = self._monotonic()
            batch = next(source, _END)
            if here:
                self._wait_s += self._monotonic() - asked_s
        if batch is _END:
            raise StopIteration
        self._ahead.append(self._count(batch))
        if self._begins_with_batch:
            self._step_begins()
        return batch

    def _count(self, batch: Any) -> float:  # noqa: ANN401 - a batch
        if not callable(self._samples):
            return self._samples
        counted = self._recorder.guard.call(self._samples, batch)
        return 0.0 if counted is None else counted

    def _first(self, feed: _Feed, *args: Any, **words: Any) -> Any:  # noqa: ANN401 - TorchRec's
        """The first `progress()`: batches are read ahead before the step begins with the forward pass."""
        forward = self._recorder.guard.call(self._before_forward)
        self._begins_with_batch = forward is None
        try:
            output = self._pipeline.progress(feed, *args, **words)
        finally:
            self._begins_with_batch = False
            if forward is not None:
                self._recorder.guard.call(forward.remove)
        self._step_begins()
        return output

    def _before_forward(self) -> Any:  # noqa: ANN401 - torch's handle of a hook
        """Hear of the first forward pass; None where the model is compiled as a whole, hooks included.

        Such a pipeline reads no batch ahead: its step begins with the batch.
        """
        kinds = {kind.__name__ for kind in type(self._pipeline).__mro__}
        if self._model is None or "TrainPipelinePT2" in kinds:
            return None
        return self._model.register_forward_pre_hook(lambda *_: self._step_begins())

    def _step_begins(self) -> None:
        if not self._recorder.begun:
            self._recorder.first_batch()
            self._wait_s = 0.0


class _Feed:
    """The iterator that the pipeline reads from: the program's, seen by its owner."""

    def __init__(self, owner: ObservedPipeline, source: Iterator[Any]) -> None:
        self.source = source
        self._owner = owner

    def __iter__(self) -> _Feed:
        """An iterator is its own."""
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - a batch
        """The next batch."""
        return self._owner.take(self.source)
