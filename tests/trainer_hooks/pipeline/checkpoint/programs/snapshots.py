"""Two ranks with sharded tables that save what they were at a moment, while their weights go on changing."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from gloo_ranks import answer, join
from late_copies import copy_late
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.arena import Arena
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.snapshot import SnapshotPlanner, snapshot
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.checkpoint.writer import StoreWriter


class Sum(torch.nn.Module):
    """A loss over tables."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables

    def forward(self, batch):
        return self.tables(batch).values().sum()


class Job:
    """Tables with a fused optimizer, some odd tensors, and a step."""

    def __init__(self):
        tables = [
            EmbeddingBagConfig(name=f"t{i}", embedding_dim=16, num_embeddings=9000, feature_names=[f"f{i}"])
            for i in range(3)
        ]
        fused = {"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "learning_rate": 0.01}
        self.model = DistributedModelParallel(
            EmbeddingBagCollection(tables=tables, device=torch.device("meta")),
            device=torch.device("cpu"),
            sharders=[EmbeddingBagCollectionSharder(fused_params=fused)],
        )
        self.odd = {
            "half": torch.arange(7, dtype=torch.bfloat16),
            "none": torch.empty(0, 4),
            "number": torch.tensor(3),
            "across": torch.arange(6.0).view(2, 3).t(),
        }
        self.step = 1

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.model.fused_optimizer.state_dict(),
            "odd": self.odd,
            "step": self.step,
        }

    def tensors(self):
        """All tensors of this rank: they share the memory of the model."""
        found = []

        def gather(value):
            if isinstance(value, dict):
                for inner in value.values():
                    gather(inner)
            elif hasattr(value, "local_shards"):
                found.extend(shard.tensor for shard in value.local_shards())
            elif isinstance(value, torch.Tensor):
                found.append(value)

        gather(self.state())
        return found

    def change(self):
        """Go on: every tensor changes."""
        with torch.no_grad():
            for tensor in self.tensors():
                tensor.add_(1)
        self.step += 1

    def train(self, model):
        """Go on as a trainer does: the tables change in the backward pass."""
        rows = KeyedJaggedTensor(
            keys=[f"f{i}" for i in range(3)],
            values=torch.arange(3000) * 3,
            lengths=torch.ones(3000, dtype=torch.int32),
        )
        before = [tensor.clone() for tensor in self.tensors()]
        model(rows).backward()
        return any(not torch.equal(a, b) for a, b in zip(before, self.tensors(), strict=True))


def main(root: Path) -> None:
    rank = join()
    job, arena, store = Job(), Arena(), CheckpointStore(root / "store")
    told = {}
    for step in (1, 2):  # the second one into the memory of the first
        dcp.save(job.state(), checkpoint_id=root / f"plain_{step}")
        taken = snapshot(job.state(), arena, leads=rank == 0)
        told[f"arena_{step}"] = arena.size
        before = [tensor.clone() for tensor in job.tensors()]
        job.change()
        dcp.save({}, storage_writer=StoreWriter(store, step), planner=SnapshotPlanner(taken))
    found = store.newest_intact()
    told["step"] = found.manifest.step
    told["world_size"] = found.manifest.world_size
    told["files"] = sorted(found.manifest.files)
    told["changed"] = any(not torch.equal(a, b) for a, b in zip(before, job.tensors(), strict=True))
    state = job.state()
    dcp.load(state, checkpoint_id=found.directory)
    told["restored"] = all(torch.equal(a, b) for a, b in zip(before, job.tensors(), strict=True))
    told["restored_step"] = state["step"]
    told["tensors"] = len(before)
    told["trained"] = without_waiting(job, root)
    answer(told)


def without_waiting(job: Job, root: Path) -> list[bool]:
    """Whether the tables changed in the steps that followed each save."""
    model, trained = Sum(job.model), []
    keeper = Checkpointer(CheckpointStore(root / "no_wait"), Recorder.from_env({}))
    keeper.no_wait(model)
    copy_late(keeper)
    for step in (3, 4):
        dcp.save(job.state(), checkpoint_id=root / f"plain_{step}")
        keeper.save(step, job.state())
        trained.append(job.train(model))
        keeper.wait()
    keeper.close()
    return trained


if __name__ == "__main__":
    main(Path(sys.argv[1]))
