"""Data parallel over gloo, distributed checkpoints of both kinds; rank 1 is killed once, by the machine."""

import json
import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

spent = dict.fromkeys(("process_group", "load", "steps", "saves"), 0.0)


@contextmanager
def timed(name):
    began = time.perf_counter()
    yield
    spent[name] += time.perf_counter() - began


with timed("process_group"):
    dist.init_process_group("gloo")
uploads = dist.new_group(backend="gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(256, 512), torch.randn(256, 512))
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
saves = Path(sys.argv[1])
done = max((int(path.name) for path in saves.glob("[0-9]*") if (path / ".metadata").exists()), default=0)
if done:
    state = {"model": model.state_dict()}
    with timed("load"):
        dcp.load(state, storage_reader=dcp.FileSystemReader(f"{saves}/{done}"))
    model.load_state_dict(state["model"])
began_at = done
kept = 0.0
upload = None
for features, target in loader:
    with timed("steps"):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(features), target).backward()
        optimizer.step()
        time.sleep(0.04)
    done += 1
    if done % 8 == 0:
        if upload is not None:
            upload.result()
        kept = spent["steps"]
        with timed("saves"):
            if done % 16:
                dcp.save({"model": model.state_dict()}, checkpoint_id=f"{saves}/{done}")
            else:
                where = f"{saves}/{done}"
                upload = dcp.async_save(
                    {"model": model.state_dict()}, checkpoint_id=where, process_group=uploads
                )
    if done == 20 and dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        print(json.dumps({"kept": kept, "lost": spent["steps"] - kept}), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if done == 32:
        break
upload.result()
if dist.get_rank() == 0:
    print(json.dumps({"began_at": began_at, **spent}), flush=True)
dist.destroy_process_group()
