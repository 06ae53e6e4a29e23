"""A loop of one's own with Accelerate, in two lines and one more for each checkpoint.

    ett run -- python examples/accelerate/train.py
    ett account DIR      # DIR as printed by ett run

Run again with the same `--saves` it goes on from the last checkpoint. Without `ett run` the same
program trains as ever and writes no events.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

from ett_trainer_hooks import Recorder

WIDTH, SAVE_EVERY = 32, 100


def loader(batches: int, seed: int = 7) -> DataLoader[tuple[torch.Tensor, ...]]:
    """Inputs and the sums that the model has to learn."""
    numbers = torch.randn(batches * 64, WIDTH, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(numbers, numbers.sum(dim=1, keepdim=True)), batch_size=64)


def last_step(saves: Path) -> int:
    """The step of the last checkpoint, 0 where there is none."""
    return max((int(path.name) for path in saves.glob("[0-9]*")), default=0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--saves", type=Path, default=Path("saves"), help="directory of the checkpoints")
    arguments = parser.parse_args()
    accelerator = Accelerator(cpu=True)
    recorder = Recorder.from_env()  # line 1
    torch.manual_seed(0)
    with recorder.phase("model_init"):
        model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        batches = loader(arguments.steps * accelerator.num_processes)
        model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    done = last_step(arguments.saves)
    if done:
        with recorder.phase("checkpoint_load") as span:
            accelerator.load_state(str(arguments.saves / str(done)))
            batches = accelerator.skip_first_batches(batches, done)
            span.resumed_step = done
    loss = torch.zeros(())
    for inputs, wanted in recorder.batches(batches, samples=64):  # line 2
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        accelerator.backward(loss)
        optimizer.step()
        step = recorder.step + 1
        if step % SAVE_EVERY == 0:
            with recorder.checkpoint(step):
                accelerator.save_state(str(arguments.saves / str(step)))
                accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                recorder.durable(step)
    accelerator.print(f"{recorder.step} steps, loss {loss.item():.4f}")
    recorder.close()
    accelerator.end_training()


if __name__ == "__main__":
    main()
