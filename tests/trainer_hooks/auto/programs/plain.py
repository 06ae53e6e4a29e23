"""A plain loop with torch.compile, an evaluation and torch.save."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.full((8,), float(index)), torch.tensor([float(index)])


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
compiled = torch.compile(model, dynamic=True)
for _epoch in range(2):
    for features, target in DataLoader(Numbers(), batch_size=8):
        loss = (compiled(features) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
    with torch.no_grad():
        for features, _ in DataLoader(Numbers(), batch_size=16):
            model(features)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, sys.argv[1])
print(f"loss {loss.item():.4f}")
