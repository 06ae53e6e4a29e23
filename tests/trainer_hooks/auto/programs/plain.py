"""A plain loop with torch.compile, an evaluation and torch.save; prints what its own clock says."""

import json
import sys
import time
from contextlib import contextmanager

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

spent = dict.fromkeys(("data", "first_step", "steps", "evaluation", "saves"), 0.0)


@contextmanager
def timed(name):
    began = time.perf_counter()
    yield
    spent[name] += time.perf_counter() - began


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.full((8,), float(index)), torch.tensor([float(index)])


def batches(loader):
    iterator = iter(loader)
    while True:
        with timed("data"):
            batch = next(iterator, None)
        if batch is None:
            return
        yield batch


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
compiled = torch.compile(model, dynamic=True)
step = 0
for _epoch in range(2):
    for features, target in batches(DataLoader(Numbers(), batch_size=8)):
        with timed("steps" if step else "first_step"):
            loss = (compiled(features) - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.04)
        step += 1
    with timed("evaluation"), torch.no_grad():
        for features, _ in DataLoader(Numbers(), batch_size=16):
            model(features)
    with timed("saves"):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, sys.argv[1])
print(json.dumps({"loss": loss.item(), **spent}))
