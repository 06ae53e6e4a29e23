"""Two ranks of which one is killed once, after step 35; the other one saves every 20 steps."""

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.AdamW(model.parameters())
done = 0
if Path(sys.argv[1]).exists():
    saved = torch.load(sys.argv[1])
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    done = saved["done"]
for batch in DataLoader(TensorDataset(torch.ones(2 * (60 - done), 2)), batch_size=2):
    optimizer.zero_grad()
    model(batch[0]).sum().backward()
    optimizer.step()
    time.sleep(0.05)
    done += 1
    if done % 20 == 0 and dist.get_rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "done": done}
        torch.save(state, sys.argv[1])
    if done == 35 and dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
