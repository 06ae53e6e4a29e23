"""Data parallel over gloo, with distributed checkpoints."""

import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
saves = dist.new_group(backend="gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(256, 32), torch.randn(256, 1))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data), num_workers=1)


def state():
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


upload = None
step = 0
for _epoch in range(2):
    for features, target in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(features), target).backward()
        optimizer.step()
        time.sleep(0.01)
        step += 1
        if step % 8 == 0:
            dcp.save(state(), checkpoint_id=f"{sys.argv[1]}/{step}")
    if upload is not None:
        upload.result()
    upload = dcp.async_save(state(), checkpoint_id=f"{sys.argv[1]}/later{step}", process_group=saves)
upload.result()
dist.destroy_process_group()
