"""A trainer class in the manner of the well-known ones: hooks, two optimizers, accumulation, validation."""

import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def training_step(self, batch):
        features, target = batch
        return nn.functional.mse_loss(self.head(self.body(features)), target)

    def configure_optimizers(self):
        return [torch.optim.AdamW(part.parameters(), lr=1e-3) for part in (self.body, self.head)]


class Trainer:
    def __init__(self, epochs, accumulate, checkpoint):
        self.epochs = epochs
        self.accumulate = accumulate
        self.checkpoint = Path(checkpoint)

    def fit(self, module, train, validation):
        self.module = module
        self.optimizers = module.configure_optimizers()
        if self.checkpoint.exists():
            saved = torch.load(self.checkpoint)
            module.load_state_dict(saved["state_dict"])
            for optimizer, kept in zip(self.optimizers, saved["optimizer_states"], strict=True):
                optimizer.load_state_dict(kept)
        self.validate(validation, limit=2)  # the sanity check
        for _ in range(self.epochs):
            for index, batch in enumerate(train):
                (module.training_step(batch) / self.accumulate).backward()
                time.sleep(0.005)
                if (index + 1) % self.accumulate == 0:
                    for optimizer in self.optimizers:
                        optimizer.step()
                        optimizer.zero_grad()
            self.validate(validation)
            self.save()

    @torch.no_grad()
    def validate(self, loader, limit=None):
        self.module.eval()
        for index, batch in enumerate(loader):
            if limit is not None and index >= limit:
                break
            time.sleep(0.005)
            self.module.training_step(batch)
        self.module.train()

    def save(self):
        states = [optimizer.state_dict() for optimizer in self.optimizers]
        torch.save({"state_dict": self.module.state_dict(), "optimizer_states": states}, self.checkpoint)


def loader(batches, seed):
    torch.manual_seed(seed)
    return DataLoader(TensorDataset(torch.randn(8 * batches, 4), torch.randn(8 * batches, 1)), batch_size=8)


Trainer(epochs=2, accumulate=4, checkpoint=sys.argv[1]).fit(Module(), loader(16, 1), loader(6, 2))
