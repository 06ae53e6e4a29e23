"""Two ranks that train a few steps, save the last one in both kinds of stores, and hand it over."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from gloo_ranks import answer, join

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.checkpointer import Checkpointer
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.publishing.handover import prepare
from ett_trainer_hooks.reference import checkpoints, criteo, model, publishing
from ett_trainer_hooks.reference.settings import Settings

STEPS = 4
SETTINGS = Settings(rows=500, embedding_dim=8, batch_size=64, compile=False)


def main(root: Path) -> None:
    rank = join()
    device = torch.device("cpu")
    dlrm = model.build(SETTINGS, device)
    learner = model.shard(dlrm, model.plan_shards(dlrm, device), SETTINGS, device)
    signal = criteo.planted_signal(SETTINGS.seed, SETTINGS.rows)
    for step in range(STEPS):
        learner.step(model.as_batch(criteo.samples(signal, SETTINGS.seed, rank, step, SETTINGS.batch_size)))
    predictions = publishing.recorded_predictions(learner, SETTINGS, rank)
    for kind, save in (("plain", save_plainly), ("safe", save_safely)):
        handover = hand_over(root / kind, predictions) if rank == 0 else None
        save(root / kind, learner)
        if handover is not None and kind == "safe":  # the plain trainer dies before it asks
            handover.asked_for()
    answer("handed over")


def save_plainly(root: Path, learner: model.Learner) -> None:
    checkpoints.CheckpointStore(root, keep=2).save(STEPS, learner.state())


def save_safely(root: Path, learner: model.Learner) -> None:
    checkpointer = Checkpointer(CheckpointStore(root), Recorder.from_env())
    checkpointer.save(STEPS, learner.state())
    checkpointer.close()


def hand_over(root: Path, predictions: bytes):
    return prepare(
        root,
        STEPS,
        job_id="trainer",
        publishable=os.environ.get("PUBLISHABLE", publishing.PUBLISHABLE),
        settings=publishing.settings_of(SETTINGS),
        predictions=predictions,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
