"""Saves that are killed at the n-th thing they do to files, for every n until one gets through.

Prints a JSON list: for each save that was begun, which steps a later start finds, and what they hold.
"""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path

from kill_at import was_killed

from ett_trainer_hooks.pipeline.checkpoint.retention import Retention
from ett_trainer_hooks.pipeline.checkpoint.store import CheckpointStore

PARTS = 2


def save(root: Path, step: int, content: str) -> None:
    store = CheckpointStore(root, retention=Retention(last=2), workers=1)
    directory = store.begin(step)
    for part in range(PARTS):
        (directory / f"__{part}_0.distcp").write_text(f"{content} {part}")
    store.commit(directory, step, metrics={"written": float(content)})
    store.retire()


def found(root: Path) -> dict[str, object]:
    """What a later start finds, and that it can save again."""
    newest = CheckpointStore(root).newest_intact()
    assert newest.manifest is not None, newest.passed_over
    assert newest.directory is not None
    held = sorted(path.read_text() for path in newest.directory.glob("*.distcp"))
    wrong = [str(each.why) for each in newest.passed_over]
    save(root, 900, "900")
    left = sorted(path.name for path in root.iterdir())
    return {"step": newest.manifest.step, "held": held, "passed_over": wrong, "left": left}


def sweep(root: Path, step: int, content: str) -> list[dict[str, object]]:
    """A save of the step beside steps 100 and 200, killed at each of its points in turn."""
    results: list[dict[str, object]] = []
    number = 0
    while True:
        number += 1
        shutil.rmtree(root, ignore_errors=True)
        save(root, 100, "100")
        save(root, 200, "200")
        killed = was_killed(number, partial(save, root, step, content))
        results.append({"killed": killed, **found(root)})
        if not killed:
            return results


if __name__ == "__main__":
    place = Path(sys.argv[1])
    print(json.dumps({"next": sweep(place, 300, "300"), "again": sweep(place, 200, "201")}))
