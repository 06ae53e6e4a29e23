"""Two ranks that are told to go, one of them or both: what each of them does then."""

from __future__ import annotations

import signal

import torch
import torch.distributed as dist
from gloo_ranks import answer, join

from ett_core.leaving import Standing
from ett_trainer_hooks.pipeline.notice import Notice
from ett_trainer_hooks.pipeline.preemption import agree_to_leave

STEPS = 20
NOTICED_AT = 7
QUICK = Standing(unsaved_s=900.0, save_s=5.0)
SLOW = Standing(unsaved_s=900.0, save_s=500.0)


class Told:
    """What was decided, in place of a recorder."""

    def __init__(self) -> None:
        self.decisions = []

    def decision(self, what, why, values=None):
        self.decisions.append([what, why, values])


def life(standing, numbers):
    """A loop that agrees after each step; `numbers` are the signals of the ranks that get one."""
    told, asked = Told(), []

    def stands():
        asked.append(dist.get_rank())
        return standing

    with Notice({signal.SIGTERM: 300.0, signal.SIGUSR2: 600.0}) as notice:
        for step in range(1, STEPS + 1):
            if step == NOTICED_AT and (number := numbers.get(dist.get_rank())) is not None:
                signal.raise_signal(number)
            noticed = torch.tensor([float(notice.came)])
            dist.all_reduce(noticed)
            if noticed > 0:
                leaving = agree_to_leave(notice, stands, told)
                return {
                    "step": step,
                    "way": leaving.way,
                    "left_s": leaving.values["left_s"],
                    "told": told.decisions,
                    "asked": asked,
                }
    return {"step": STEPS, "way": "", "told": told.decisions, "asked": asked}


join()
answer(
    {
        "none": life(QUICK, {}),
        "both": life(QUICK, {0: signal.SIGTERM, 1: signal.SIGTERM}),
        "one": life(QUICK, {1: signal.SIGUSR2}),
        "sooner": life(QUICK, {0: signal.SIGUSR2, 1: signal.SIGTERM}),
        "slow": life(SLOW, {0: signal.SIGTERM}),
    }
)
