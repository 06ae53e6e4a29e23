"""A small model with two tables, trained for no step, that is handed over to be published."""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.publishing.handover import HandOver, prepare
from ett_trainer_hooks.pipeline.publishing.predictions import Bags, packed
from ett_trainer_hooks.pipeline.publishing.publishable import Table

NUMBERS, ROWS, WIDTH, SAMPLES, STEP = 3, 50, 4, 7, 40
FEATURES = ("user", "friend", "item")
LABELS = {"cluster": "c1", "scheduler": "slurm", "team": "feed"}


class Dense(torch.nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.over = torch.nn.Linear(NUMBERS + len(FEATURES) * width, 1)

    def forward(self, numbers, pooled):
        both = torch.cat([numbers, *(pooled[feature] for feature in FEATURES)], dim=1)
        return torch.sigmoid(self.over(both)).squeeze(-1)


class Toy:
    """What the publisher builds; with a `gate`, once that file is there: until then it says so and waits."""

    def __init__(self, width=WIDTH, gate="", missing=""):
        self.width, self.gate, self.missing = width, gate, missing

    def dense(self):
        if self.gate:
            Path(self.gate + ".reached").touch()
            while not Path(self.gate).exists():
                time.sleep(0.01)
        return Dense(self.width)

    def key(self, name):
        return f"model.dense.{name}"

    def tables(self):
        return [
            Table(name="people", key=f"model.people{self.missing}", features=("user", "friend")),
            Table(name="items", key="model.items", features=("item",), mean=True),
        ]


def weights(seed=1):
    torch.manual_seed(seed)
    dense = {f"dense.{name}": value for name, value in Dense().state_dict().items()}
    return {**dense, "people": torch.randn(ROWS, WIDTH), "items": torch.randn(ROWS, WIDTH)}


def samples():
    """Numbers, and for each feature no, one and several ids."""
    torch.manual_seed(2)
    lengths = torch.tensor([0, 1, 2, 3, 1, 0, 4])
    count = int(lengths.sum())
    bags = {name: Bags(torch.randint(0, ROWS, (count,)), lengths) for name in FEATURES}
    return torch.randn(SAMPLES, NUMBERS), bags


def predicted(state, numbers, bags):
    """What the model predicts, computed bag by bag."""

    def pooled(table, each, *, mean):
        rows = [state[table][ids] for ids in each.ids.split(each.lengths.tolist())]
        return torch.stack([row.sum(0) / (max(len(row), 1) if mean else 1) for row in rows])

    dense = Dense()
    dense.load_state_dict({name: state[f"dense.{name}"] for name in dense.state_dict()})
    looked_up = {name: pooled("people", bags[name], mean=False) for name in ("user", "friend")}
    with torch.no_grad():
        return dense(numbers, {**looked_up, "item": pooled("items", bags["item"], mean=True)})


def save(root, *, safely=True, seed=1):
    """The checkpoint of the step, in the commit-safe store or as torch writes it."""
    state = {"model": weights(seed)}
    if not safely:
        dcp.save(state, checkpoint_id=root / f"step_{STEP}", no_dist=True)
        return
    checkpointer = Checkpointer(CheckpointStore(root), Recorder.from_env({}), mode="sync")
    checkpointer.save(STEP, state)
    checkpointer.close()


def record(root, *, off_by=0.0, **settings) -> HandOver:
    numbers, bags = samples()
    return prepare(
        root,
        STEP,
        job_id="trainer",
        publishable="toy_model:Toy",
        settings=settings,
        predictions=packed(numbers, bags, predicted(weights(), numbers, bags) + off_by),
        labels=LABELS,
    )


def handed_over(root, *, safely=True, **told) -> HandOver:
    handover = record(root, **told)
    save(root, safely=safely)
    handover.asked_for()
    return handover
