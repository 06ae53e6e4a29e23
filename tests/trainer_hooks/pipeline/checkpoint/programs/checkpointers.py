"""Two ranks that save in every mode while their weights change, have saves fail, go on, and resume."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from gloo_ranks import answer, join

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.resumable import Randomness, key_of, packed
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore

SMALL = 100_000
PATIENCE_S = 600.0
"""On a busy machine a process that writes needs long to begin."""


class Position:
    """Where a loader of data is."""

    def __init__(self, at=0):
        self.at = at

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class RefusalError(Exception):
    """An error that cannot be sent to another process."""

    def __reduce__(self):
        raise TypeError


class Unsavable:
    """An object that cannot be saved."""

    def __reduce__(self):
        raise RefusalError("not me")


class Job:
    """The state of a rank: some of its own, some that all ranks have."""

    def __init__(self, rank, root, mode, recorder):
        torch.manual_seed(rank)
        self.rank, self.root = rank, root
        self.weights = {f"w{rank}": torch.randn(1000, 64), "same": torch.arange(1000.0)}
        self.loader = Position()
        self.own = {"data": self.loader, "random": Randomness()}
        self.store = CheckpointStore(root / "store")
        self.keeper = Checkpointer(self.store, recorder, mode=mode, patience_s=PATIENCE_S)

    def save(self, step, *, plainly=False, **more):
        """Save, and change everything at once; returns what a resumed run should find."""
        self.loader.at = step * 10 + self.rank
        state = {"model": self.weights, "step": step, **more}
        if plainly:
            own = {key_of(self.rank): packed(self.own)}
            dcp.save({**state, **own}, checkpoint_id=self.root / f"plain_{step}")
        kept = {name: tensor.clone() for name, tensor in self.weights.items()}
        self.keeper.save(step, state, own=self.own)
        drawn = torch.rand(3)
        for tensor in self.weights.values():
            tensor.add_(1)
        self.loader.at = -1
        return kept, drawn

    def has_bytes_of_a_plain_save(self, step):
        name = f"__{self.rank}_0.distcp"
        kept, plain = self.store.path_of(step) / name, self.root / f"plain_{step}" / name
        return kept.read_bytes() == plain.read_bytes()

    def resume(self):
        """The step, the weights, the position, the next random numbers of a run that resumes here."""
        state = {
            "model": {name: torch.zeros_like(tensor) for name, tensor in self.weights.items()},
            "step": 0,
        }
        step = self.keeper.resume(state, own=self.own)
        assert state["step"] == step
        return step, state["model"], self.loader.at, torch.rand(3)


@contextmanager
def full_disk(pid):
    """Meanwhile a process cannot write larger files."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (SMALL, before[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def main(root: Path) -> None:
    rank = join()
    recorder = Recorder.from_env()
    told = {mode: in_mode(Job(rank, root / mode, mode, recorder)) for mode in sys.argv[2:]}
    recorder.close()
    answer(told)


def in_mode(job):
    told = {}
    job.save(1, plainly=True)
    kept, drawn = job.save(2, plainly=True)
    job.keeper.wait()
    told["same_bytes"] = [job.has_bytes_of_a_plain_save(step) for step in (1, 2)]
    step, weights, at, numbers = job.resume()
    told["resumed"] = step
    told["weights"] = all(torch.equal(kept[name], weights[name]) for name in kept)
    told["random"] = torch.equal(drawn, numbers)
    told["position"] = at == 20 + job.rank

    job.save(3, **({"bad": Unsavable()} if job.rank == 1 else {}))
    job.keeper.wait()
    scribe = job.keeper._scribe
    with full_disk(scribe.pid if scribe else os.getpid()):
        job.save(4)
        job.keeper.wait()
    dist.barrier()  # rank 0 has tidied up
    told["after_failures"] = sorted(path.name for path in job.store.root.iterdir())
    job.save(5)
    job.keeper.wait()
    if scribe:
        if job.rank == 1:
            os.kill(scribe.pid, signal.SIGKILL)
        job.save(6)
        job.keeper.wait()
        job.save(7)
        job.keeper.wait()
        if job.rank == 1:
            os.kill(scribe.pid, signal.SIGSTOP)
        job.save(8)
        job.keeper._patience_s = 0.0
        job.save(9)
        if job.rank == 1:
            os.kill(scribe.pid, signal.SIGCONT)
        job.keeper.wait()
    told["newest"] = job.keeper.find().manifest.step
    told["size"] = job.store.newest_intact().manifest.world_size
    job.keeper.close()
    return told


if __name__ == "__main__":
    main(Path(sys.argv[1]))
