"""One rank whose save never ends: a writer that waits for good; says `saving` once it does."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed.checkpoint as torch_dcp

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters import dcp


class Stuck(torch_dcp.FileSystemWriter):
    """Storage that takes the data and never answers."""

    def finish(self, *_args, **_kwargs) -> None:
        print("saving", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    recorder = Recorder.from_env()
    for _ in recorder.batches(range(1)):
        state = {"w": torch.ones(1000)}
        dcp.async_save(recorder, state, step=1, storage_writer=Stuck(Path(sys.argv[1])))
        time.sleep(1000)
