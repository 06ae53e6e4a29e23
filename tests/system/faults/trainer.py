"""Data parallel over gloo, each rank saves its part; `trainer.py FAULT DIRECTORY` fails in one real way.

It knows nothing of whoever observes it. Before the fault, rank 0 prints how long it has trained since
the last save, by its own clock, and when that was.
"""

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

FAULT, SAVES = sys.argv[1], Path(sys.argv[2])
RANK = int(os.environ["RANK"])
SAVE_AT, FAIL_AT = (2, 4), 10
STEPS = 100_000 if FAULT == "stopped now and then" else 100
STEP_S = 0.05
MB = 1 << 20
PART = SAVES / f"part{RANK}.pt"


class Rows(Dataset):
    """Rows of a data set whose worker may die."""

    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, index):
        if RANK == 1 and index // 8 == FAIL_AT and FAULT == "loader worker killed":
            os.kill(os.getpid(), signal.SIGKILL)
        wide = MB if FAULT == "shared memory" and index // 8 == FAIL_AT else 64
        return torch.full((wide,), 0.5)


def limit_memory():
    """Leave this process 256 MB more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 256 * MB,) * 2)
    torch.empty(4096 * MB // 4).fill_(1.0)


def take_all_memory():
    """Touch more memory than the cgroup has."""
    return [torch.ones(64 * MB) for _ in range(64)]


def look_up_out_of_range():
    """A row of an embedding table that is not there."""
    from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor  # noqa: PLC0415 - of one fault

    table = EmbeddingBagConfig(name="t", embedding_dim=8, num_embeddings=10, feature_names=["f"])
    rows = KeyedJaggedTensor(["f"], torch.tensor([3, 77]), lengths=torch.tensor([1, 1]))
    EmbeddingBagCollection(tables=[table])(rows)


def wait_for_ever():
    """Leave the others in their collective operation."""
    while True:
        time.sleep(1.0)


def fail(loss):
    """What goes wrong at one step of rank 1."""
    if FAULT in ("exception", "signal of the agent"):
        raise KeyError("user_id")
    if FAULT in ("SIGKILL", "SIGTERM", "SIGSTOP"):
        os.kill(os.getpid(), getattr(signal, FAULT))
    if FAULT == "no loss":
        loss = loss * float("nan")
        if not torch.isfinite(loss):
            raise RuntimeError(f"loss is {loss.item()} at step {FAIL_AT}, stopping")
    doings = {
        "stuck save": save_to_nobody,
        "address space": limit_memory,
        "memory cgroup": take_all_memory,
        "out of range": look_up_out_of_range,
        "hang": wait_for_ever,
        "slow compiler": compile_slowly,
        "stopped now and then": tell_my_pid,
    }
    if FAULT in doings:
        doings[FAULT]()


def save(model, step):
    """Write this rank's part of a checkpoint."""
    more = 8 * MB if FAULT == "disk full" and step == FAIL_AT and RANK == 1 else 1
    torch.save({"model": model.state_dict(), "step": step, "more": torch.zeros(more)}, PART)


def compile_slowly():
    """Compile with a compiler that takes longer than anybody waits."""
    torch.compile(lambda x: (x * 2).sin().sum())(torch.ones(64))


def tell_my_pid():
    """So that somebody can stop this process."""
    fresh = SAVES / "pid.new"
    fresh.write_text(str(os.getpid()))
    fresh.rename(SAVES / "pid")


def save_to_nobody():
    """Open a place to save to that never answers: a pipe that nobody reads."""
    PART.unlink()
    os.mkfifo(PART)
    save(model, FAIL_AT)


def resume(model):
    """Go on from a checkpoint of which one part was cut off when it was written."""
    save(model, 0)
    if RANK == 1:
        os.truncate(PART, PART.stat().st_size // 2)
    model.load_state_dict(torch.load(PART)["model"])


if FAULT == "slow compiler":
    import torch._inductor.compile_fx  # that is no part of what takes long
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
if FAULT == "truncated":
    resume(model)


def loss_of(features):
    """What is made smaller."""
    return model(features[:, :64]).square().mean()


loss_of = torch.compile(loss_of) if FAULT == "no compiler" else loss_of
workers = 1 if FAULT in ("loader worker killed", "shared memory") else 0
began = saved = time.perf_counter()
for step, features in enumerate(DataLoader(Rows(), batch_size=8, num_workers=workers), start=1):
    if step == FAIL_AT:
        if RANK == 0:
            unsaved_s = time.perf_counter() - saved
            print(json.dumps({"unsaved_s": unsaved_s, "saved_at": time.time() - unsaved_s}), flush=True)
        if FAULT == "disk full":
            save(model, step)
        if RANK == 1:
            fail(features.sum())
    if RANK == 0 and step >= FAIL_AT and FAULT == "signal of the agent":
        wait_for_ever()
    if step == 1 and workers:
        began = saved = time.perf_counter()
    optimizer.zero_grad()
    loss_of(features).backward()
    optimizer.step()
    time.sleep(STEP_S)
    if step in SAVE_AT:
        save(model, step)
        saved = time.perf_counter()
