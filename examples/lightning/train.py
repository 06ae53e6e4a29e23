"""A Lightning module that learns to add, watched by one callback.

    ett run -- python examples/lightning/train.py
    ett account DIR      # DIR as printed by ett run

Run again with the same `--saves` it goes on from the last checkpoint. Without `ett run` the same
program trains as ever and writes no events.
"""

from __future__ import annotations

import argparse

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from ett_trainer_hooks.adapters.lightning import ETTCallback

WIDTH = 32


def loader(batches: int, seed: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    """Inputs and the sums that the model has to learn."""
    numbers = torch.randn(batches * 64, WIDTH, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(numbers, numbers.sum(dim=1, keepdim=True)), batch_size=64)


class Adder(pl.LightningModule):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        return torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def validation_step(self, batch: list[torch.Tensor], _index: int) -> None:
        self.log("loss", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--saves", default="saves", help="directory of the checkpoints")
    parser.add_argument("--ranks", type=int, default=1, help="processes that Lightning starts")
    arguments = parser.parse_args()
    pl.seed_everything(0)
    saves = pl.callbacks.ModelCheckpoint(arguments.saves, every_n_train_steps=100, save_last=True)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=arguments.ranks,
        max_steps=arguments.steps,
        val_check_interval=100,
        logger=False,
        enable_progress_bar=False,
        callbacks=[saves, ETTCallback(samples=64)],  # the one line (samples: only for throughput)
    )
    trainer.fit(Adder(), loader(300, seed=7), loader(20, seed=8), ckpt_path="last")
    print(f"{trainer.global_step} steps, loss {trainer.callback_metrics['loss']:.4f}")


if __name__ == "__main__":
    main()
