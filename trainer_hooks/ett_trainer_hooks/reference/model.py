"""The model: TorchRec's DLRM, its tables spread over the ranks, its dense parts compiled.

Every rank builds the same model on the meta device, agrees on one sharding plan (one broadcast)
and keeps its own shard of the tables. Sparse gradients are applied inside the backward pass,
dense ones by an optimiser; `CombinedOptimizer` holds the state of both for checkpoints.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.optim import _apply_optimizer_in_backward as apply_optimizer_in_backward
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.datasets.utils import Batch
from torchrec.distributed import (
    DistributedModelParallel,
    TrainPipeline,
    TrainPipelineBase,
    TrainPipelineSparseDist,
)
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.types import ModuleSharder, ShardingPlan
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

from ett_trainer_hooks.reference.criteo import DENSE_FEATURES, SPARSE_FEATURES, Samples
from ett_trainer_hooks.reference.settings import Settings


@dataclass(frozen=True)
class Learner:
    """A model in training with its optimiser."""

    model: torch.nn.Module
    optimizer: CombinedOptimizer

    def step(self, batch: Batch) -> torch.Tensor:
        """One training step; returns the loss, detached."""
        self.optimizer.zero_grad()
        loss, _ = self.model(batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def state(self) -> dict[str, Any]:
        """Everything that a resumed run needs, with the tensors in place (not copies)."""
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that was read into the tensors of `state()`."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def build(settings: Settings, device: torch.device) -> torch.nn.Module:
    """The DLRM with its tables on the meta device: no memory is taken for them yet."""
    torch.manual_seed(settings.seed)
    tables = [
        EmbeddingBagConfig(
            name=f"table_{feature}",
            embedding_dim=settings.embedding_dim,
            num_embeddings=settings.rows,
            feature_names=[feature],
        )
        for feature in SPARSE_FEATURES
    ]
    dlrm = DLRM(
        embedding_bag_collection=EmbeddingBagCollection(tables=tables, device=torch.device("meta")),
        dense_in_features=DENSE_FEATURES,
        dense_arch_layer_sizes=[64, settings.embedding_dim],
        over_arch_layer_sizes=[64, 1],
        dense_device=device,
    )
    sparse = dlrm.sparse_arch.parameters()
    apply_optimizer_in_backward(RowWiseAdagrad, sparse, {"lr": settings.learning_rate})
    return DLRMTrain(dlrm)


def compile_dense_parts(model: torch.nn.Module) -> None:
    """Mark the three dense parts for torch.compile; they compile in the first step.

    Compiled one by one they give three graphs without a break; the sharded model as a whole
    gives many.
    """
    for part in (model.model.dense_arch, model.model.inter_arch, model.model.over_arch):
        part.compile()


def planner(device: torch.device) -> EmbeddingShardingPlanner:
    """What plans for all ranks that there are, and for their hosts."""
    topology = Topology(
        world_size=dist.get_world_size(),
        local_world_size=int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size())),
        compute_device=device.type,
    )
    return EmbeddingShardingPlanner(topology=topology)


def sharders() -> list[ModuleSharder[Any]]:
    """What can be sharded."""
    return [EmbeddingBagCollectionSharder()]


def plan_shards(model: torch.nn.Module, device: torch.device) -> ShardingPlan:
    """One sharding plan, made by rank 0 and broadcast."""
    return planner(device).collective_plan(model, sharders(), dist.GroupMember.WORLD)


def shard(model: torch.nn.Module, plan: ShardingPlan, settings: Settings, device: torch.device) -> Learner:
    """Give every rank its shard of the tables and a replica of the dense parts."""
    parallel = DistributedModelParallel(module=model, device=device, plan=plan, sharders=sharders())
    dense = KeyedOptimizerWrapper(
        dict(in_backward_optimizer_filter(parallel.named_parameters())),
        lambda parameters: torch.optim.Adagrad(parameters, lr=settings.learning_rate),
    )
    return Learner(parallel, CombinedOptimizer([parallel.fused_optimizer, dense]))


def pipeline(name: str, learner: Learner) -> TrainPipeline[Any, Any]:
    """The train pipeline of TorchRec that makes the same steps as `Learner.step`, reading ahead."""
    device = next(learner.model.parameters()).device
    kind = {"base": TrainPipelineBase, "sparse_dist": TrainPipelineSparseDist}[name]
    return kind(learner.model, learner.optimizer, device)


def as_batch(samples: Samples) -> Batch:
    """The batch in TorchRec's form: one id a feature and sample."""
    count = samples.clicked.shape[0]
    sparse = KeyedJaggedTensor(
        keys=list(SPARSE_FEATURES),
        values=torch.from_numpy(samples.ids.reshape(-1)),
        lengths=torch.ones(len(SPARSE_FEATURES) * count, dtype=torch.int32),
    )
    return Batch(
        dense_features=torch.from_numpy(samples.dense),
        sparse_features=sparse,
        labels=torch.from_numpy(samples.clicked),
    )
