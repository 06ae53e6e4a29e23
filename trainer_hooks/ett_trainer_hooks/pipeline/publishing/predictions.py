"""What a trainer predicts with the weights that it hands over: inputs and outputs, as bytes of a file."""

from __future__ import annotations

import io
from collections.abc import Mapping

import torch

from ett_trainer_hooks.pipeline.publishing.serving import Bags


def packed(numbers: torch.Tensor, bags: Mapping[str, Bags], predictions: torch.Tensor) -> bytes:
    """The inputs that `ServedModel.predict` takes, and what the trainer predicts for them."""
    place = io.BytesIO()
    told = {
        "numbers": numbers.detach().cpu(),
        "ids": {feature: each.ids.cpu() for feature, each in bags.items()},
        "lengths": {feature: each.lengths.cpu() for feature, each in bags.items()},
        "predictions": predictions.detach().float().cpu(),
    }
    torch.save(told, place)
    return place.getvalue()


def unpacked(data: bytes) -> tuple[torch.Tensor, dict[str, Bags], torch.Tensor]:
    """Numbers, ids of each feature, and predictions."""
    told = torch.load(io.BytesIO(data), weights_only=True)
    bags = {feature: Bags(ids, told["lengths"][feature]) for feature, ids in told["ids"].items()}
    return told["numbers"], bags, told["predictions"]
