# run: torchrun --standalone --nproc-per-node 2 train.py
"""Data-parallel training that saves while it trains, and resumes: the lines for ettwatch are marked.

    ett run -- torchrun --standalone --nproc-per-node 2 train.py
    ett account DIR      # DIR as printed by ett run

Run it again, or kill it and run it again, and it goes on from its newest checkpoint. Without `ett run`
the same program trains as ever and writes no journal.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ett_trainer_hooks import Recorder  # line 0: the imports
from ett_trainer_hooks.adapters import dcp

WIDTH = 256


def loader(epoch_of: int, batch_size: int = 32) -> DataLoader[tuple[torch.Tensor, ...]]:
    """Inputs and the sums that the model has to learn; each rank sees its own half."""
    inputs = torch.randn(epoch_of, WIDTH, generator=torch.Generator().manual_seed(7))
    data = TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
    return DataLoader(data, batch_size=batch_size, sampler=DistributedSampler(data, shuffle=False))


def newest(place: Path) -> Path | None:
    """The newest complete checkpoint: torch writes `.metadata` last."""
    complete = [each.parent for each in place.glob("step_*/.metadata")]
    return max(complete, key=lambda path: int(path.name.removeprefix("step_")), default=None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--save-every", type=int, default=30)
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"))
    arguments = parser.parse_args()
    recorder = Recorder.from_env()  # line 1
    dist.init_process_group("gloo")
    uploads = dist.new_group(backend="gloo")  # saves get a group of their own
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(WIDTH, 512), torch.nn.Linear(512, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    state: dict[str, Any] = {"model": model.module.state_dict(), "step": 0}
    if found := newest(arguments.checkpoints):
        dcp.load(recorder, state, checkpoint_id=found, step=lambda: state["step"])  # line 2
    rest = arguments.steps - state["step"]
    loss = torch.tensor(float("nan"))
    for inputs, wanted in recorder.batches(loader(rest * 64), samples=64):  # line 3
        step = recorder.step + 1
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        if step % arguments.save_every == 0:
            state = {"model": model.module.state_dict(), "step": step}
            where = arguments.checkpoints / f"step_{step}"
            dcp.async_save(recorder, state, step=step, checkpoint_id=where, process_group=uploads)  # line 4
    dcp.wait(recorder)  # line 5: the last save, too, is told
    if dist.get_rank() == 0:
        print(f"{recorder.step} steps, loss {float(loss.detach()):.4f}")
    dist.destroy_process_group()
    recorder.close()  # says that it ended well; `ett run` finds out by itself


if __name__ == "__main__":
    main()
