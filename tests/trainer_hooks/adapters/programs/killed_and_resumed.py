"""One rank that saves every step, and is killed while a save is in flight unless it resumes from one.

Steps last 50 ms, so that what was lost can be told from what was saved.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as torch_dcp

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters import dcp

KILLED_IN, STUCK_FROM, STEPS, STEP_S = 8, 5, 10, 0.05


class Storage(torch_dcp.FileSystemWriter):
    """Takes all saves at once but one, which it never ends."""

    def __init__(self, path: Path, *, is_stuck: bool) -> None:
        super().__init__(path)
        self.is_stuck = is_stuck

    def write_data(self, plan, planner):
        if self.is_stuck:
            threading.Event().wait()
        return super().write_data(plan, planner)


def main(place: Path) -> None:
    recorder = Recorder.from_env()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    state = {"w": torch.zeros(1000), "step": 0}
    complete = [int(path.parent.name) for path in place.glob("*/.metadata")]
    if complete:
        where = place / str(max(complete))
        dcp.load(recorder, state, checkpoint_id=where, step=lambda: state["step"])
    for _ in recorder.batches(range(STEPS - state["step"])):
        step = recorder.step + 1
        threading.Event().wait(STEP_S)
        state["step"], state["w"] = step, state["w"] + 1
        if step == KILLED_IN and not complete:
            recorder.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if step <= STUCK_FROM or complete:
            writer = Storage(place / str(step), is_stuck=step == STUCK_FROM and not complete)
            dcp.async_save(recorder, state, step=step, storage_writer=writer)
    dcp.wait(recorder)
    print(float(state["w"][0]))
    recorder.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
