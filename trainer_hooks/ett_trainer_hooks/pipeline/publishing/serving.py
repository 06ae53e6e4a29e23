"""A published model in use: load it, ask it. Needs torch and safetensors, not the code of the model.

`dense.pt2` and the tables are checked against the hashes of the card before they are loaded. Loading runs
what torch stored in the export: load models only from a place that nobody else can write to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import safe_open

from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError
from ett_trainer_hooks.pipeline.publishing import card as cards
from ett_trainer_hooks.pipeline.publishing.card import Form, TableCard
from ett_trainer_hooks.pipeline.publishing.predictions import Bags
from ett_trainer_hooks.pipeline.publishing.tables import WEIGHT

LATEST = "latest"


class ServedModel:
    """A published model in memory; tables are mapped from their files."""

    def __init__(self, folder: Path, form: Form, tables: Sequence[TableCard]) -> None:
        self._form: Form = form
        self._dense = torch.export.load(folder / cards.DENSE).module()
        self._tables = [(table, _mapped(folder / table.file)) for table in tables]

    def predict(self, numbers: torch.Tensor, bags: Mapping[str, Bags]) -> torch.Tensor:
        """The predictions for samples: their numbers [samples, n], and the ids of each feature."""
        with torch.no_grad():
            pooled = {
                feature: looked_up(table, weight, bags[feature], self._form)
                for table, weight in self._tables
                for feature in table.features
            }
            predictions: torch.Tensor = self._dense(numbers, pooled)
        return predictions


def load(place: Path) -> ServedModel:
    """The model in a folder; of a folder into which models are published, the latest.

    Raises:
        DamagedError: it is not what was published, or there is none.
        OSError: the disk cannot be read.
    """
    if not (place / cards.NAME).exists() and (place / LATEST).exists():
        place = place / (place / LATEST).read_text().strip()
    try:
        card = cards.decoded((place / cards.NAME).read_bytes())
    except FileNotFoundError:
        raise DamagedError(f"there is no published model in {place}") from None
    manifests.check(place, card.files)
    return ServedModel(place, card.form, card.tables)


def looked_up(table: TableCard, weight: torch.Tensor, bags: Bags, form: Form) -> torch.Tensor:
    """The pooled embeddings of a feature [samples, width]."""
    offsets = torch.zeros(len(bags.lengths) + 1, dtype=torch.int64)
    torch.cumsum(bags.lengths, 0, out=offsets[1:])
    if form == "int8":
        added = torch.ops.quantized.embedding_bag_byte_rowwise_offsets(
            weight, bags.ids.long(), offsets, include_last_offset=True
        )
    else:
        added = torch.nn.functional.embedding_bag(
            bags.ids.long(), weight, offsets, mode="sum", include_last_offset=True
        )
    if not table.mean:
        return added
    return added / bags.lengths.clamp(min=1).unsqueeze(1)


def _mapped(path: Path) -> torch.Tensor:
    with safe_open(path, framework="pt") as file:
        weight: torch.Tensor = file.get_tensor(WEIGHT)
    return weight if weight.dtype == torch.uint8 else weight.float()
