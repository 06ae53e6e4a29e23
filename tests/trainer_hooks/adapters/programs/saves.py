"""Data-parallel training that saves in every way, loads, and fills the disk; then again with torch alone."""

from __future__ import annotations

import resource
import sys
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as torch_dcp
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters import dcp

WIDTH = 64


class Saves:
    """Saves and loads, with the adapter or with torch alone."""

    def __init__(self, recorder: Recorder, place: Path, *, plain: bool) -> None:
        self.recorder = recorder
        self.place = place
        self.plain = plain
        self.uploads = dist.new_group(backend="gloo")
        self.pending = None

    def call(self, name, step):
        if self.plain:
            return getattr(torch_dcp, name)
        return partial(getattr(dcp, name), self.recorder, step=step)

    def save(self, step, state) -> None:
        where = self.place / f"step_{step}"
        if step == 1:
            self.call("save", step)(state, checkpoint_id=where)
            return
        if self.plain and self.pending:
            self.pending.result()
        how = {"process_group": self.uploads}
        if step > 3:
            how = {"async_checkpointer_type": AsyncCheckpointerType.PROCESS}
        self.pending = self.call("async_save", step)(state, checkpoint_id=where, **how)

    def load(self, step, like):
        read = {"model": {name: torch.zeros_like(value) for name, value in like.items()}, "step": 0}
        self.call("load", lambda: read["step"])(read, checkpoint_id=self.place / f"step_{step}")
        return read


def train(recorder: Recorder, saves: Saves, how: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(WIDTH, WIDTH))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + dist.get_rank())
    steps = range(1, 7)
    for step in steps if saves.plain else recorder.batches(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(32, WIDTH)).square().mean()
        loss.backward()
        optimizer.step()
        print(f"{how} step {step} {loss.item():.6f}", flush=True)
        if step < 6:
            saves.save(step, {"model": model.module.state_dict(), "step": step})
    saves.pending.result()
    dcp.wait(recorder)
    return model.module.state_dict()


def train_and_load(recorder: Recorder, place: Path, *, plain: bool) -> None:
    how = "plain" if plain else "told"
    saves = Saves(recorder, place / how, plain=plain)
    weights = train(recorder, saves, how)
    for step in range(1, 6):
        read = saves.load(step, weights)
        if dist.get_rank() == 0:
            total = sum(float(value.double().sum()) for value in read["model"].values())
            print(f"{how} loaded {read['step']} {total:.6f}", flush=True)


def fill_the_disk(recorder: Recorder, place: Path) -> None:
    """Saves to storage that takes no more than a megabyte a file."""
    uploads = dist.new_group(backend="gloo")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    state = {"w": torch.ones(1 << 20)}
    for step, save in ((101, dcp.save), (102, dcp.async_save)):
        where = {"checkpoint_id": place / f"full_{step}", "process_group": uploads}
        say_what_it_raises(step, save, recorder, state, step=step, **where)
    dcp.wait(recorder)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def say_what_it_raises(name, save, *args, **words) -> None:
    try:
        save(*args, **words).result()
    except BaseException as error:  # noqa: BLE001 - torch's is none of Exception
        print(f"full disk {name} {type(error).__name__}", flush=True)


def main(place: Path) -> None:
    recorder = Recorder.from_env()
    dist.init_process_group("gloo")
    train_and_load(recorder, place, plain=False)
    fill_the_disk(recorder, place)
    recorder.close()
    train_and_load(recorder, place, plain=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
