"""`ett run`: a training command run to its end and watched from outside.

`launching` puts it together for the `settings`. `attempts` runs the command; `alarm` wakes it,
`stopping`, `orphans` and `restarts` see to the end of the command and its next start. `supervision`
says what happened: from what `ranks` sees of the rank processes and `verdicts` makes of it, from what
`torchrun` leaves behind, from the command's `output`, and from the `machine` (`kernel`, `cgroup`).
`stalls` notices that nothing moves.
"""

from ett_trainer_hooks.launcher.launching import launch
from ett_trainer_hooks.launcher.settings import LaunchSettings

__all__ = ["LaunchSettings", "launch"]
