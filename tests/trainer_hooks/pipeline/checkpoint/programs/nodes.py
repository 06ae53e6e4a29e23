"""Two ranks, each on a node with a disk of its own, that save to one place, lose disks, and resume."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from gloo_ranks import answer, join

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.node_disk import NodeDisk
from ett_trainer_hooks.pipeline.checkpoint.remote import RemoteError, RemoteStore
from ett_trainer_hooks.pipeline.checkpoint.resumable import Randomness
from ett_trainer_hooks.pipeline.checkpoint.retention import Retention

SIZE = 20_000


class Watched(RemoteStore):
    """Notes what is fetched; cannot be reached where it is told so."""

    away = False

    def __init__(self, url):
        super().__init__(url, retention=Retention(last=2), pause=lambda _: None)
        self.fetched = []

    def get(self, manifest, name, file):
        super().get(manifest, name, file)
        self.fetched.append(name)

    def put(self, directory, name, files):
        if self.away:
            raise RemoteError("the network is down")
        super().put(directory, name, files)


class Node:
    """A rank with its disk."""

    def __init__(self, rank, folder, recorder):
        self.rank, self.recorder = rank, recorder
        self.url, self.disk = (folder / "remote").as_uri(), folder / f"disk_{rank}"

    def state(self, value):
        names = (f"w{self.rank}", "same")
        return {"model": {name: torch.full((SIZE,), float(value)) for name in names}, "step": value}

    def attempt(self, mode="async_thread"):
        """What a new process has."""
        remote = Watched(self.url)
        return Checkpointer(NodeDisk(self.disk, remote), self.recorder, mode=mode), remote

    def save(self, keeper, step):
        keeper.save(step, self.state(step), own={"random": Randomness()})
        keeper.wait()
        dist.barrier()

    def resume(self):
        """Step, whether the weights are those of the step, and which files were fetched for it."""
        keeper, remote = self.attempt()
        state = self.state(0)
        step = keeper.resume(state, own={"random": Randomness()})
        keeper.close()
        same = state["step"] == step and all(bool((t == step).all()) for t in state["model"].values())
        dist.barrier()
        return step, same, sorted(remote.fetched)

    def lies_here(self):
        return {
            path.name.partition("-")[0]: sorted(f.name for f in path.iterdir())
            for path in self.disk.iterdir()
        }


def main(folder: Path) -> None:
    rank = join()
    node = Node(rank, folder, Recorder.from_env())
    told = {}
    keeper, _ = node.attempt()
    told["nothing"] = keeper.find().manifest is None
    for step in (1, 2, 3):
        node.save(keeper, step)
    told["after_saves"] = node.lies_here()

    Watched.away = rank == 1
    node.save(keeper, 4)
    Watched.away = False
    told["after_failure"] = node.lies_here()
    keeper.close()

    told["restart"] = node.resume()
    if rank == 0:
        shutil.rmtree(node.disk)
    told["lost_disk"] = node.resume()
    if rank == 1:
        flip(next(node.disk.glob("step_3-*/__1_0.distcp")))
    told["damaged_disk"] = node.resume()
    if rank == 1:
        flip(next(node.disk.glob("step_3-*/__1_0.distcp")))
        flip(next((folder / "remote").glob("step_3-*/__1_0.distcp")))
    told["damaged_both"] = node.resume()

    keeper, _ = node.attempt("async_process")
    keeper.find()
    node.save(keeper, 5)
    keeper.close()
    told["at_last"] = node.resume()[:2]
    node.recorder.close()
    answer(told)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
