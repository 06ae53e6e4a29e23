"""Where the batches of the reference trainer come from: at once, or after a while as from afar.

With the part `kept_data`, what the first start on a host has made of its data lies on its disk for the
next one, which then need not wait.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.bundle.trust import own_directory
from ett_trainer_hooks.reference import criteo
from ett_trainer_hooks.reference.settings import Settings

CODE = 1
"""Of what is kept: another number where another signal would be made of the same settings."""


class CancelledError(Exception):
    """The start was cancelled while the data were being made: they are not kept."""


class Source:
    """A source that is opened when it is made, and gives its first batch `data_warmup_s` later.

    `keeps` has what was made of the data kept on this host. Used by one thread at a time.
    """

    def __init__(self, settings: Settings, recorder: Recorder, *, keeps: bool) -> None:
        self._settings = settings
        self._recorder = recorder
        self._ready_at = time.monotonic() + settings.data_warmup_s
        self._keeps = keeps
        self._signal = None if keeps else self._made()

    def warm_up(self, cancelled: threading.Event | None = None) -> criteo.Signal:
        """What batches are made with, once the source gives them or the start was cancelled."""
        over = cancelled or threading.Event()
        if self._signal is None:
            self._signal = self._kept(over)
        elif not self._keeps:
            over.wait(max(0.0, self._ready_at - time.monotonic()))
        return self._signal

    def samples(self, rank: int, cancelled: threading.Event) -> Callable[[int], criteo.Samples]:
        """A function from step to the samples of a rank, which a cancelled start does not wait for."""

        def make(step: int) -> criteo.Samples:
            signal, settings = self.warm_up(cancelled), self._settings
            return criteo.samples(signal, settings.seed, rank, step, settings.batch_size)

        return make

    def _kept(self, cancelled: threading.Event) -> criteo.Signal:
        from ett_trainer_hooks.pipeline.kept_data import kept  # noqa: PLC0415 - of an extra

        def make(directory: Path) -> None:
            if cancelled.wait(max(0.0, self._ready_at - time.monotonic())):
                raise CancelledError
            signal = self._made()
            np.savez(directory / "signal.npz", dense=signal.dense, ids=signal.ids)

        place = Path(tempfile.gettempdir()) / f"ett-kept-{os.getuid()}"
        context = {"seed": self._settings.seed, "rows": self._settings.rows, "code": CODE}
        try:
            own_directory(place)
        except OSError as error:
            self._recorder.decision("kept data", f"signal: not kept, as this is no place for it: {error}")
            cancelled.wait(max(0.0, self._ready_at - time.monotonic()))
            return self._made()
        try:
            directory = kept("signal", make, place=place, context=context, recorder=self._recorder)
        except CancelledError:
            return self._made()
        with np.load(directory / "signal.npz", allow_pickle=False) as found:
            return criteo.Signal(found["dense"], found["ids"])

    def _made(self) -> criteo.Signal:
        return criteo.planted_signal(self._settings.seed, self._settings.rows)
