"""What the log was told of a trouble that lasts, so that it is told once and not with each look at it."""

from __future__ import annotations

import threading

from ett_exporter.recent import Recent

REMEMBERED = 10_000


class Told:
    """Remembers the troubles that were told last; any thread may ask.

    >>> told = Told()
    >>> told.is_new("segment 7 is damaged"), told.is_new("segment 7 is damaged")
    (True, False)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Recent[str, str] = Recent(REMEMBERED)

    def is_new(self, trouble: str) -> bool:
        """Whether it was not told yet; it is from now on."""
        with self._lock:
            is_new = self._known.get(trouble) is None
            self._known.put(trouble, trouble)
            return is_new
