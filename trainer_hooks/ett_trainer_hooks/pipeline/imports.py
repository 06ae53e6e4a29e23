"""Imports without the collector of garbage: what modules make when they are imported stays for good.

While torch and torchrec are imported Python looks for garbage again and again, each time through more
objects, of which none goes; later it looks through them whenever it looks through all that is old.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage within the block, and never look again through what is there at its end.

    Where the program has switched collections off, nothing is done. For one thread at a time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
