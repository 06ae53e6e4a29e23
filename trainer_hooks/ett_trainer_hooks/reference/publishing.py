"""How the model of the reference trainer is published, and what the trainer predicts with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torchrec.datasets.utils import Batch

from ett_trainer_hooks.pipeline.publishing.predictions import Bags, packed
from ett_trainer_hooks.pipeline.publishing.publishable import Table
from ett_trainer_hooks.reference import criteo, model
from ett_trainer_hooks.reference.criteo import SPARSE_FEATURES
from ett_trainer_hooks.reference.settings import Settings

PUBLISHABLE = "ett_trainer_hooks.reference.publishing:PublishableDlrm"
SAMPLES = 256
"""Predictions that are recorded."""
BEYOND = 1 << 40
"""A step that no training comes to: its samples were not learnt."""
_TABLE = "model.model.sparse_arch.embedding_bag_collection.embedding_bags.{name}.weight"


class PublishableDlrm:
    """The DLRM of the reference trainer, for the publisher.

    Args:
        rows: of each table.
        embedding_dim: width of an embedding.
    """

    def __init__(self, rows: int, embedding_dim: int) -> None:
        self._settings = Settings(rows=rows, embedding_dim=embedding_dim)

    def dense(self) -> torch.nn.Module:
        """As `Publishable`."""
        return _Dense(model.dense_parts(model.build(self._settings, torch.device("cpu"))))

    def key(self, name: str) -> str:
        """As `Publishable`."""
        return f"model.model.{name}"

    def tables(self) -> Sequence[Table]:
        """As `Publishable`."""
        return [
            Table(name=name, key=_TABLE.format(name=name), features=(feature,))
            for feature in SPARSE_FEATURES
            for name in (f"table_{feature}",)
        ]


class _Dense(torch.nn.Module):  # type: ignore[misc] # torch is not seen by mypy
    """The parts without tables, from numbers and pooled embeddings to the probability of a click."""

    def __init__(self, parts: Mapping[str, torch.nn.Module]) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, numbers: torch.Tensor, pooled: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The predictions [samples]."""
        sparse = torch.stack([pooled[feature] for feature in SPARSE_FEATURES], dim=1)
        both = self.inter_arch(dense_features=self.dense_arch(numbers), sparse_features=sparse)
        return torch.sigmoid(self.over_arch(both)).squeeze(-1)


def settings_of(settings: Settings) -> dict[str, Any]:
    """What `PublishableDlrm` is called with."""
    return {"rows": settings.rows, "embedding_dim": settings.embedding_dim}


def recorded_predictions(learner: model.Learner, settings: Settings, rank: int) -> bytes:
    """What the model predicts for samples of its own of each rank; all ranks call this together.

    The parts run as they are, not compiled: a compilation for predictions alone takes longer than they do.
    """
    signal = criteo.planted_signal(settings.seed, settings.rows)
    batch = model.as_batch(criteo.samples(signal, settings.seed, rank, BEYOND, SAMPLES))
    was_training = learner.model.training
    learner.model.eval()
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        _, (_, logits, _) = learner.model(batch)
    learner.model.train(was_training)
    return packed(batch.dense_features, _bags(batch), torch.sigmoid(logits.detach()))


def _bags(batch: Batch) -> dict[str, Bags]:
    return {
        name: Bags(each.values(), each.lengths()) for name, each in batch.sparse_features.to_dict().items()
    }
