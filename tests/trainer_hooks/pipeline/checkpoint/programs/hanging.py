"""Two ranks that leave although saves hang: in a place that is silent, in a process that writes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import torch
import torch.distributed as dist
from gloo_ranks import answer, join

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteStore
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore


class Hanging(RemoteStore):
    """Answers uploads no longer where it is told so."""

    silent = False

    def __init__(self, url):
        super().__init__(url)
        self.asked = threading.Event()
        self._put, self._fs.put_file = self._fs.put_file, self.put_file

    def put_file(self, *arguments):
        if self.silent:
            self.asked.set()
            threading.Event().wait()
        self._put(*arguments)


def main(folder: Path) -> None:
    rank = join()
    recorder, remote = Recorder.from_env(), Hanging((folder / "remote").as_uri())
    nodes = Checkpointer(NodeDisk(folder / f"disk_{rank}", remote), recorder)
    shared = Checkpointer(CheckpointStore(folder / "shared"), recorder, mode="async_process")
    state = {f"w{rank}": torch.ones(1000)}
    for step, keeper in ((1, nodes), (2, shared)):
        keeper.save(step, state)
        assert keeper.wait_until_durable()
    dist.barrier()
    if rank == 1:
        remote.silent = True
        os.kill(shared._scribe.pid, signal.SIGSTOP)
    nodes.save(3, state)
    shared.save(4, state)
    if rank == 1:
        remote.asked.wait()
    dist.barrier()
    durable = [nodes.close(0.0), shared.close(0.0)]
    recorder.close()
    answer(durable)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
