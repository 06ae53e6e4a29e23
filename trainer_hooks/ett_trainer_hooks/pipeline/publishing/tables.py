"""Tables on their way from a checkpoint into files: plain, or with 8 bits a weight.

A quantised row is what `torch.ops.quantized` makes of it: a byte a weight, then the scale and the lowest
weight of the row as 32-bit numbers; lookups work on that without turning it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from ett_trainer_hooks.pipeline.publishing.card import Form, TableCard
from ett_trainer_hooks.pipeline.publishing.publishable import Table, UnfitError
from ett_trainer_hooks.pipeline.publishing.weights import Weights

FOLDER = "tables"
WEIGHT = "weight"
MATRIX = 2


def write_tables(
    weights: Weights, tables: Sequence[Table], folder: Path, form: Form
) -> tuple[TableCard, ...]:
    """Write the tables into a folder, a file each, with what quantising has cost.

    Raises:
        UnfitError: the checkpoint does not have one, or what it has is no table.
        DamagedError: one cannot be read.
        OSError: the disk does not take it.
    """
    (folder / FOLDER).mkdir()
    by_key = {table.key: table for table in tables}
    if len(by_key) != len(tables):
        raise UnfitError("two tables have the same key")
    return tuple(_write(by_key[key], weight, folder, form) for key, weight in weights.each(by_key))


def _write(table: Table, weight: torch.Tensor, folder: Path, form: Form) -> TableCard:
    if weight.dim() != MATRIX or not weight.is_floating_point():
        raise UnfitError(f"{table.key} is no table: {weight.dtype}, size {tuple(weight.shape)}")
    written = torch.ops.quantized.embedding_bag_byte_prepack(weight.float()) if form == "int8" else weight
    largest, rms = _errors(weight, written) if form == "int8" else (0.0, 0.0)
    file = f"{FOLDER}/{table.name}.safetensors"
    try:
        save_file({WEIGHT: written.contiguous()}, folder / file, metadata={"form": form})
    except SafetensorError as error:  # of the disk, in words alone
        raise OSError(f"{file} cannot be written: {error}") from error
    return TableCard(
        name=table.name,
        file=file,
        features=table.features,
        mean=table.mean,
        rows=weight.shape[0],
        width=weight.shape[1],
        size=(folder / file).stat().st_size,
        largest_error=largest,
        rms_error=rms,
    )


def _errors(weight: torch.Tensor, packed: torch.Tensor) -> tuple[float, float]:
    """The largest and the root mean square error of a quantised table."""
    error = torch.ops.quantized.embedding_bag_byte_unpack(packed) - weight.float()
    if not error.numel():
        return 0.0, 0.0
    return float(error.abs().max()), float(error.square().mean().sqrt())
