"""The model: TorchRec's DLRM, its tables spread over the ranks, its dense parts compiled.

Every rank builds the same model on the meta device, agrees on one sharding plan (one broadcast)
and keeps its own shard of the tables. Sparse gradients are applied inside the backward pass,
dense ones by an optimiser; `CombinedOptimizer` holds the state of both for checkpoints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
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
from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import KernelConfig, TopologyFactory, TrainerConfig
from torchrec.distributed.types import ModuleSharder, ShardingPlan
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

from ett_trainer_hooks.pipeline.batch_spec import Dense, Jagged, Spec
from ett_trainer_hooks.reference.criteo import DENSE_FEATURES, SPARSE_FEATURES, Samples
from ett_trainer_hooks.reference.settings import Settings

RESERVED_PART = 0.15
"""Of the memory of a device: not for tables, as TorchRec keeps by default."""


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


def compile_dense_parts(model: torch.nn.Module, backend: str) -> None:
    """Mark the three dense parts for torch.compile; they compile in the first step.

    Compiled one by one they give three graphs without a break; the sharded model as a whole
    gives many.
    """
    for part in dense_parts(model).values():
        part.compile(backend=backend)


def dense_parts(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """The parts of the DLRM without tables, by name."""
    return {name: getattr(model.model, name) for name in ("dense_arch", "inter_arch", "over_arch")}


def batch_spec(settings: Settings) -> Spec:
    """What every batch looks like."""
    samples = settings.batch_size
    return {
        "dense_features": Dense((samples, DENSE_FEATURES)),
        "sparse_features": Jagged(SPARSE_FEATURES, samples),
        "labels": Dense((samples,)),
    }


def dense_forward(settings: Settings) -> Callable[[Mapping[str, Any], Mapping[str, Any]], torch.Tensor]:
    """A function from dense parts and the fields of a batch to a loss, as DLRMTrain computes it.

    What the tables would give is zeros.
    """

    def forward(parts: Mapping[str, Any], batch: Mapping[str, Any]) -> torch.Tensor:
        pooled = torch.zeros(
            settings.batch_size, len(SPARSE_FEATURES), settings.embedding_dim, requires_grad=True
        ).clone()
        dense = parts["dense_arch"](batch["dense_features"])
        both = parts["inter_arch"](dense_features=dense, sparse_features=pooled)
        logits = parts["over_arch"](both).squeeze(-1)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, batch["labels"])

    return forward


def planner(device: torch.device) -> EmbeddingShardingPlanner:
    """What plans for all ranks that there are, and for their hosts."""
    ranks = TrainerConfig(
        world_size=dist.get_world_size(),
        local_world_size=int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size())),
    )
    return EmbeddingShardingPlanner(
        topology=TopologyFactory.create_topology(
            ranks, kernel_config=KernelConfig(compute_device=device.type)
        ),
        storage_reservation=FixedPercentageStorageReservation(RESERVED_PART),
    )


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
