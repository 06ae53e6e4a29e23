"""Goes on from its distributed checkpoint as torch's own examples do: states are got before they are loaded.

`get_state_dict` has a fresh optimizer make a step with nothing to learn.
"""

import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.utils.data import DataLoader, TensorDataset

kind, path = sys.argv[1:]
model = torch.nn.Linear(8, 1)
optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=8)
step = 0
if saved := sorted(Path(path).glob("*"), key=lambda place: int(place.name)):
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.load(state, checkpoint_id=str(saved[-1]))
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    step = int(saved[-1].name)
for features, target in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(features), target).backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % 4 == 0:
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=f"{path}/{step}")
