"""Where the batches of the reference trainer come from: at once, or after a while as from afar."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ett_trainer_hooks.reference import criteo
from ett_trainer_hooks.reference.settings import Settings


class Source:
    """A source that is opened when it is made, and gives its first batch `data_warmup_s` later."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._signal = criteo.planted_signal(settings.seed, settings.rows)
        self._ready_at = time.monotonic() + settings.data_warmup_s

    def warm_up(self) -> None:
        """Wait until it gives batches."""
        time.sleep(max(0.0, self._ready_at - time.monotonic()))

    def samples(self, rank: int, cancelled: threading.Event) -> Callable[[int], criteo.Samples]:
        """A function from step to the samples of a rank, which a cancelled start does not wait for."""

        def make(step: int) -> criteo.Samples:
            cancelled.wait(max(0.0, self._ready_at - time.monotonic()))  # a source that is not there yet
            settings = self._settings
            return criteo.samples(self._signal, settings.seed, rank, step, settings.batch_size)

        return make
