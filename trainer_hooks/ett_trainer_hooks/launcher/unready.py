"""Standbys that are not ready: when that is told, and what holds them up. Pure words.

A standby takes no processor from the trainer. What it prepares costs about what the start costs that it
spares; where no processor is ever idle, the trainer would pay that now for a start that may never
come. So a standby waits, however long, and that is told.
"""

from __future__ import annotations

from typing import NamedTuple

NOT_READY_S = 120.0
"""After so many seconds it is told that a standby is not ready yet."""
MUCH = 0.25
"""Of the seconds that went by: what took as much may be what holds it up."""


class Preparing(NamedTuple):
    """How the preparing of a standby has gone so far, in seconds."""

    since_s: float
    """Since it was begun."""
    processor_s: float
    """Of processor time, had."""
    queued_s: float | None
    """For a processor, while others had them all; None where the kernel does not count."""

    def had(self) -> str:
        """What it has had, in words.

        >>> Preparing(125.0, 3.2, 118.0).had()
        'after 125 s it has had 3 s of processor time, and waited 118 s for an idle processor'
        """
        had = f"after {self.since_s:.0f} s it has had {self.processor_s:.0f} s of processor time"
        if self.queued_s is None:
            return had
        return f"{had}, and waited {self.queued_s:.0f} s for an idle processor"

    def why(self, log: object) -> str:
        """What holds it up; what it prints stands in `log`.

        >>> Preparing(125.0, 3.2, 118.0).why("x.log")
        'it takes none from the trainer, and will be ready later'
        >>> Preparing(125.0, 80.0, 20.0).why("x.log")
        'what it prepares takes long; see x.log'
        >>> Preparing(125.0, 3.2, 4.0).why("x.log")
        'it waits for something else, such as data or a lock; see x.log'
        >>> Preparing(125.0, 3.2, None).why("x.log")
        'either no processor is idle for longer, or it waits for data or a lock; see x.log'
        """
        much_s = MUCH * self.since_s
        if self.processor_s >= max(much_s, self.queued_s or 0.0):
            return f"what it prepares takes long; see {log}"
        if self.queued_s is None:
            return f"either no processor is idle for longer, or it waits for data or a lock; see {log}"
        if self.queued_s >= much_s:
            return "it takes none from the trainer, and will be ready later"
        return f"it waits for something else, such as data or a lock; see {log}"

    def values(self) -> dict[str, float]:
        """What is told, as numbers."""
        values = {"seconds": self.since_s, "processor_s": self.processor_s}
        return values if self.queued_s is None else {**values, "queued_s": self.queued_s}
