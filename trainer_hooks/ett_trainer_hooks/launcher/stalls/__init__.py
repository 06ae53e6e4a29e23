"""Stalls: noticed by the journals of the ranks, and recorded with what each process is doing.

`watchdog` decides, by `rank_progress`; `stacks` and `flight_recorder` ask the processes.
"""

from ett_trainer_hooks.launcher.stalls.watchdog import StallSettings

__all__ = ["StallSettings"]
