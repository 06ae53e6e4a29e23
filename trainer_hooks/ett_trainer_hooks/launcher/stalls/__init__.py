"""Stalls: noticed by the journals of the ranks, and recorded with what each process is doing.

`watchdog` decides, by the `settings`; `followed` reads a journal on, `rank_progress` knows what its
rank does and how long that may take. `stacks` and `flight_recorder` ask the processes. `stopped`
tells of ranks that a signal holds, whether or not the others still get on.
"""

from ett_trainer_hooks.launcher.stalls.settings import StallLimits, StallSettings

__all__ = ["StallLimits", "StallSettings"]
