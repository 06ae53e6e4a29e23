"""The dense part of a model on its way from a checkpoint into a file that torch runs without its code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from ett_trainer_hooks.pipeline.publishing.publishable import Publishable, UnfitError
from ett_trainer_hooks.pipeline.publishing.weights import Weights
from ett_trainer_hooks.recording.spans import describe


class ExportError(Exception):
    """Torch cannot export the dense part; the message says why."""


def dense_with_weights(model: Publishable, weights: Weights) -> torch.nn.Module:
    """The dense part with the weights of a checkpoint, ready to predict.

    Raises:
        UnfitError: the checkpoint does not have one, or of another size.
        DamagedError: one cannot be read.
    """
    dense = model.dense().eval()
    wanted = {name: model.key(name) for name in dense.state_dict()}
    for name, own in dense.state_dict().items():
        if (size := weights.size(wanted[name])) != tuple(own.shape):
            differ = f"{size} in the checkpoint, {tuple(own.shape)} in the model"
            raise UnfitError(f"size mismatch for {wanted[name]}: {differ}")
    read = weights.read(wanted.values())
    dense.load_state_dict({name: read[key] for name, key in wanted.items()})
    return dense.requires_grad_(requires_grad=False)


def export(
    dense: torch.nn.Module, numbers: torch.Tensor, pooled: Mapping[str, torch.Tensor], path: Path
) -> None:
    """Write the dense part, for any number of samples.

    Raises:
        ExportError: torch cannot.
        OSError: the disk does not take it.
    """
    samples = torch.export.Dim("samples", min=1)
    sizes = ({0: samples}, {feature: {0: samples} for feature in pooled})
    try:
        with torch.no_grad():
            program = torch.export.export(dense, (numbers, dict(pooled)), dynamic_shapes=sizes)
    except Exception as error:  # compilers raise errors of all kinds
        raise ExportError(describe(error)) from error
    try:
        torch.export.save(program, path)
    except RuntimeError as error:  # of the disk: torch tells of positions in the file
        raise OSError(f"{path.name} cannot be written: {error}") from error
