"""A plain PyTorch loop that tells where its time goes: the two lines are marked.

    ett run -- python examples/two_lines/train.py
    ett account DIR      # DIR as printed by ett run

Without `ett run` the same program trains as ever and writes nothing.
"""

from __future__ import annotations

import argparse

import torch

from ett_trainer_hooks import Recorder  # line 0: the import

WIDTH = 32


def batches(steps: int, seed: int = 7) -> torch.utils.data.DataLoader[tuple[torch.Tensor, ...]]:
    """Inputs and the sums that the model has to learn."""
    numbers = torch.randn(steps * 64, WIDTH, generator=torch.Generator().manual_seed(seed))
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(numbers, numbers.sum(dim=1, keepdim=True)), batch_size=64
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    arguments = parser.parse_args()
    recorder = Recorder.from_env()  # line 1
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for inputs, wanted in recorder.batches(batches(arguments.steps)):  # line 2
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
    print(f"{recorder.step} steps, loss {loss.item():.4f}")
    recorder.close()  # says that it ended well; `ett run` finds out by itself


if __name__ == "__main__":
    main()
