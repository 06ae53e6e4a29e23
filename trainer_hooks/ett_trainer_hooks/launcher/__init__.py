"""`ett run`: a training command run to its end and watched from outside.

`launching` puts it together, `attempts` runs the command, `stopping`, `restarts` and `orphans` see to
its end and its next start. `supervision` says what happened, from what `ranks` sees of the rank
processes, from what `torchrun` leaves behind, from the command's `output`, and from the machine
(`kernel`, `cgroup`). `stalls` notices that nothing moves.
"""

from ett_trainer_hooks.launcher.launching import LaunchSettings, launch

__all__ = ["LaunchSettings", "launch"]
