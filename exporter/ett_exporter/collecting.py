"""Short pauses for the collector of reference cycles in a process that holds very many jobs.

Python's collector looks at every object that is there while nothing else runs: a second for 10,000
jobs. Jobs hold no cycles and are freed without it, so what has stood the first look is put aside
(`gc.freeze`), and each further look is at what is new. Cycles do arise where errors are kept; of
those, what was put aside before it became garbage is found by a look at everything, seldom enough
to take a thousandth of the time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

LOOK_EVERY_S = 0.1
WHOLE_EVERY_S = 600.0
WHOLE_EVERY_TIMES = 1000
"""A look at everything waits for at least so many times what the last one took."""


class Collector:
    """Looks for cycles; held by one thread at a time."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._whole_at_s = monotonic() + WHOLE_EVERY_S

    def look(self) -> None:
        """Free the cycles among what is new, or where that is due among everything; put the rest aside."""
        if self._monotonic() < self._whole_at_s:
            gc.collect()
        else:
            began_s = self._monotonic()
            gc.unfreeze()
            gc.collect()
            now_s = self._monotonic()
            self._whole_at_s = now_s + max(WHOLE_EVERY_S, WHOLE_EVERY_TIMES * (now_s - began_s))
        gc.freeze()
