"""What the machine says beside a job, from the log of its kernel and the memory cgroup of the job.

Used by the launcher's main thread.
"""

from __future__ import annotations

from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.launcher.cgroup import OomCounter
from ett_trainer_hooks.launcher.kernel import KernelLog, of_this_job
from ett_trainer_hooks.launcher.supervision import Supervision


class Machine:
    """Tells a supervision what is new."""

    def __init__(self, kernel: KernelLog, ooms: OomCounter, supervision: Supervision, clock: Clock) -> None:
        self._kernel = kernel
        self._ooms = ooms
        self._supervision = supervision
        self._clock = clock

    @property
    def oom_kills(self) -> int:
        """Processes that the kernel has ended for want of memory, so far."""
        return self._ooms.kills

    def look(self) -> None:
        """Tell what is new."""
        for line in of_this_job(self._kernel.look(), self._ooms.path):
            self._supervision.kernel_line(line.text, self._clock.wall_at(line.uptime_s))
        if sentence := self._ooms.look():
            self._supervision.fact("kernel", sentence, self._clock.now())
