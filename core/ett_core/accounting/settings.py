"""The few numbers that the accounting takes as given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits of the accounting, in seconds of event time."""

    stall_after_s: float = 60.0
    """A step, or a silence in the loop, is no stall while it is shorter than this."""
    stall_steps: float = 10.0
    """Nor while it is shorter than this many mean steps."""
    lost_after_s: float = 600.0
    """An attempt that has been silent for longer has failed at its last word."""
    abandon_after_s: float = 6 * 3600.0
    """A failed job that has been silent for longer ended with its last attempt."""
    late_window_s: float = 120.0
    """Events that come later than this are folded again from the history."""

    def __post_init__(self) -> None:
        """Refuse limits that mean nothing.

        Raises:
            ValueError: a limit is not positive.
        """
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"{name} must be greater than 0, not {value}")
