"""Both sides of a hand-over, killed at the n-th thing they do to its files, for many n.

Prints a JSON object: what is found after each kill, and what a second publisher makes of it.
"""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import toy_model
from kill_at import was_killed

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore
from ett_trainer_hooks.pipeline.publishing import working
from ett_trainer_hooks.pipeline.publishing.handover import HandOver, find
from ett_trainer_hooks.pipeline.publishing.serving import load

warnings.filterwarnings("ignore", message="torch.distributed is (disabled|unavailable)")
NOBODY = Recorder.from_env({})
NUMBERS, BAGS = toy_model.samples()
WANTED = toy_model.predicted(toy_model.weights(), NUMBERS, BAGS)


def publish(handover: HandOver, models: Path) -> int:
    with redirect_stdout(sys.stderr):
        return working.run(handover, str(models), NOBODY, form="plain")


def points(root: Path, begin: Callable[[], Callable[[], object]], stride: int) -> Iterator[bool]:
    """Whether the work was killed, for each point, or for some, the last being that it got through."""
    number, killed = 1, True
    while killed:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        killed = was_killed(number, begin(), str(root))
        yield killed
        number += stride


def of_publisher(root: Path, stride: int) -> Iterator[dict[str, object]]:
    """What there is of a model after its publisher was killed, and after the next one."""
    models = root / "models"

    def begin() -> Callable[[], object]:
        return partial(publish, toy_model.handed_over(root / "job"), models)

    for killed in points(root, begin, stride):
        (handover,) = find(root / "job")
        state, seen = handover.state(), is_right(models)
        published = publish(handover, models)
        folders = [entry.name for entry in models.iterdir() if entry.is_dir()]
        yield {
            "killed": killed,
            "state": state,
            "seen": seen,
            "published": published,
            "right": is_right(models),
            "folders": len(folders),
        }


def of_trainer(root: Path, stride: int) -> Iterator[dict[str, object]]:
    """Whether a checkpoint was there after the trainer was killed, and what a publisher made of it."""

    def begin() -> Callable[[], object]:
        return partial(toy_model.handed_over, root / "job")

    for killed in points(root, begin, stride):
        anchored = CheckpointStore(root / "job").newest_intact().manifest is not None
        states = [handover.state() for handover in find(root / "job")]
        yield {"killed": killed, "anchored": anchored, "states": states}


def is_right(models: Path) -> bool | None:
    """Whether what a reader sees is the model; None where it sees none."""
    if not (models / "latest").exists():
        return None
    return bool((load(models).predict(NUMBERS, BAGS) - WANTED).abs().max() < 1e-6)


if __name__ == "__main__":
    place, stride = Path(sys.argv[1]), int(sys.argv[2])
    publish(toy_model.handed_over(place / "job"), place / "models")  # children find imported what this needs
    told = {
        "publisher": list(of_publisher(place, stride)),
        "trainer": list(of_trainer(place, max(stride // 4, 1))),
    }
    print(json.dumps(told))
