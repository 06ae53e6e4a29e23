"""All ranks leave alike when the job is told to go: one of them decides, for the grace time that is left.

Every rank calls `agree_to_leave` in the same place of its program, once an agreement of the ranks has
shown that a notice came to one of them (a number of their next all-reduce): it may have come to one rank
or to all, and to each at another moment.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import torch
import torch.distributed as dist

from ett_core.leaving import GO, SAVE, WAIT, Leaving, Standing, way_to_leave
from ett_core.waits import LONGEST_WAIT_S
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.agreement import device_of
from ett_trainer_hooks.pipeline.notice import Notice

EXIT_STATUS = 128 + signal.SIGTERM
"""What a process that leaves should exit with: schedulers start a job again that ended so, not one with 0."""
_WORDS = {
    SAVE: "told to go: saves and leaves",
    WAIT: "told to go: leaves once the save in flight is durable",
    GO: "told to go: leaves without another save",
}


def agree_to_leave(
    notice: Notice,
    standing: Callable[[], Standing],
    recorder: Recorder,
    *,
    group: dist.ProcessGroup | None = None,
) -> Leaving:
    """How all ranks of the group leave; the first of them decides, and tells why.

    Args:
        notice: what this rank has heard.
        standing: where the job stands with its saves; asked on the first rank only.
        recorder: is told of the decision on the first rank.
        group: the ranks that leave; all without it.
    """
    left_s = min(notice.left_s, LONGEST_WAIT_S)
    least = torch.tensor([left_s], dtype=torch.float32, device=device_of(group))
    dist.all_reduce(least, op=dist.ReduceOp.MIN, group=group)
    decided: list[Leaving | None] = [None]
    if dist.get_rank(group) == 0:
        leaving = way_to_leave(standing(), float(least[0]))
        heard = "another rank" if notice.signal is None else signal.Signals(notice.signal).name
        recorder.decision(_WORDS[leaving.way], f"{leaving.why} (notice: {heard})", leaving.values)
        decided = [leaving]
    dist.broadcast_object_list(decided, group=group, group_src=0, device=device_of(group))
    assert decided[0] is not None  # noqa: S101 - the first rank has decided
    return decided[0]
