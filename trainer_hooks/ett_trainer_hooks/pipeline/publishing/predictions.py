"""Samples of a model, and what a trainer predicts for them with the weights that it hands over."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import NamedTuple

import torch


class Bags(NamedTuple):
    """The ids of a feature: those of all samples in a row, and how many belong to each sample."""

    ids: torch.Tensor
    lengths: torch.Tensor


def packed(numbers: torch.Tensor, bags: Mapping[str, Bags], predictions: torch.Tensor) -> bytes:
    """The inputs that `ServedModel.predict` takes, and what the trainer predicts for them, as a file."""
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
