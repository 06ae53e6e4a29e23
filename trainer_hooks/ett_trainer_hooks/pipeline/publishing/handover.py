"""How a trainer hands its model over, so that the death of either side loses nothing.

    checkpoints/
        step_400/                     the anchor: the checkpoint that is published
        publish/step_400-5f0c2a11/
            record.json               before the anchor is saved: what it will be, and how it is built
            predictions.pt            what the trainer predicts with the weights of that step
            request.json              the anchor is durable: which checkpoint it is
            take-1.json ...           a publisher is at work (see `takes`)
            outcome.json              it is published, or will not be, and why

Each file is written whole, and once. A trainer that dies after the anchor and before the request has
left both the record and the anchor: whoever looks makes the request (`find`).
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, TypeVar

import msgspec

from ett_trainer_hooks.pipeline import takes
from ett_trainer_hooks.pipeline.bundle.files import write_whole
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError, FileMark, mark
from ett_trainer_hooks.pipeline.durable import MODE, created
from ett_trainer_hooks.pipeline.publishing.anchor import anchor_id

FOLDER = "publish"
RECORD, PREDICTIONS, REQUEST, OUTCOME = "record.json", "predictions.pt", "request.json", "outcome.json"
_NAME = re.compile(r"step_(\d+)-[0-9a-f]{8}")

OPEN_FOR_S = 7 * 86_400.0
"""Seconds after which a request that nobody has taken no longer keeps its checkpoint from the retention."""

State = Literal["prepared", "pending", "taken", "done", "failed"]
T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a trainer says of the model that it is about to save.

    `publishable` is `module:name` of what builds it, called with `settings`; `labels` are the trainer's.
    """

    step: int
    job_id: str
    publishable: str
    settings: dict[str, Any]
    predictions: FileMark
    made_at: float
    labels: dict[str, str] = {}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The anchor exists: `anchor` tells it from any other checkpoint of its step."""

    step: int
    anchor: str
    made_at: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it: `place` where it is published, else `reason`.

    `largest_difference` to the predictions of the trainer and `size` in bytes, where they are known.
    """

    state: Literal["done", "failed"]
    by: str
    at: float
    place: str = ""
    reason: str = ""
    largest_difference: float | None = None
    size: int | None = None


@dataclass(frozen=True)
class HandOver:
    """One model that is handed over, by its folder."""

    folder: Path

    @property
    def step(self) -> int:
        """Steps that were trained."""
        return int(self.folder.name.removeprefix("step_").partition("-")[0])

    @property
    def anchor(self) -> Path:
        """The checkpoint that is published."""
        return self.folder.parent.parent / f"step_{self.step}"

    def record(self) -> Record | None:
        """What the trainer says of it; None where it died before it could."""
        return _read(self.folder / RECORD, Record)

    def request(self) -> Request | None:
        """Which checkpoint it is; None where there is none yet."""
        return _read(self.folder / REQUEST, Request)

    def outcome(self) -> Outcome | None:
        """What came of it so far."""
        return _read(self.folder / OUTCOME, Outcome)

    def state(self) -> State:
        """Where it stands.

        Raises:
            OSError: the disk cannot be asked.
        """
        if (outcome := self.outcome()) is not None:
            return outcome.state
        if self.request() is None:
            return "prepared"
        number, holder = takes.latest(self.folder)
        alive = holder is not None and takes.is_alive(self.folder, number, holder)
        return "taken" if alive else "pending"

    def asked_for(self) -> Request:
        """Say that the anchor is durable; said twice, the first time counts.

        Raises:
            DamagedError: there is no such checkpoint.
            OSError: the disk does not take it.
        """
        request = Request(step=self.step, anchor=anchor_id(self.anchor), made_at=time.time())
        created(self.folder / REQUEST, msgspec.json.encode(request))
        return self.request() or request

    def end(self, outcome: Outcome) -> Outcome:
        """Say what came of it; said twice, the first time counts, and is returned."""
        created(self.folder / OUTCOME, msgspec.json.encode(outcome))
        return self.outcome() or outcome

    def reopen(self) -> None:
        """Forget that it failed, and how many publishers have died of it."""
        outcome = self.outcome()
        if outcome is not None and outcome.state == "failed":
            takes.forget_deaths(self.folder)
            (self.folder / OUTCOME).unlink(missing_ok=True)


def prepare(  # noqa: PLR0913 - settings
    checkpoints: Path,
    step: int,
    *,
    job_id: str,
    publishable: str,
    settings: Mapping[str, Any],
    predictions: bytes,
    labels: Mapping[str, str] | None = None,
) -> HandOver:
    """Before the anchor is saved: leave beside the checkpoints what a publisher needs to know of it.

    One process of the trainer does this. What earlier tries at this step have left is taken away.
    """
    (checkpoints / FOLDER).mkdir(parents=True, exist_ok=True)
    for earlier in _folders(checkpoints):
        if earlier.step == step and earlier.request() is None:
            shutil.rmtree(earlier.folder, ignore_errors=True)
    folder = checkpoints / FOLDER / f"step_{step}-{token_hex(4)}"
    folder.mkdir()
    write_whole(folder / PREDICTIONS, predictions, MODE)
    record = Record(
        step=step,
        job_id=job_id,
        publishable=publishable,
        settings=dict(settings),
        predictions=mark(folder / PREDICTIONS),
        made_at=time.time(),
        labels=dict(labels or {}),
    )
    write_whole(folder / RECORD, msgspec.json.encode(record), MODE)
    return HandOver(folder)


def find(checkpoints: Path) -> list[HandOver]:
    """All that is handed over from a directory of checkpoints, the newest first.

    Where a trainer died between its anchor and its request, the request is made here.

    Raises:
        OSError: the disk cannot be asked.
    """
    found = sorted(_folders(checkpoints), key=lambda each: each.step, reverse=True)
    for each in found:
        if each.request() is None and _is_anchored(each):
            try:
                each.asked_for()
            except DamagedError:  # it has just been removed
                continue
    return [each for each in found if each.record() is not None]


def anchors_in_use(checkpoints: Path, now: float) -> dict[str, int]:
    """Ids, with their steps, of checkpoints that no retention may take: they are still to be published.

    One is free again once its hand-over has an outcome, or was asked for `OPEN_FOR_S` ago and nobody is at
    work on it. `now` in Unix seconds.

    Raises:
        OSError: the disk cannot be asked.
    """
    found = [(_anchor_in_use(each, now), each.step) for each in _folders(checkpoints)]
    return {anchor: step for anchor, step in found if anchor is not None}


def _anchor_in_use(handover: HandOver, now: float) -> str | None:
    try:
        asked = handover.request() or handover.record()
        if asked is None or handover.outcome() is not None:
            return None
        if now - asked.made_at > OPEN_FOR_S and handover.state() != "taken":
            return None
        if isinstance(asked, Request):
            return asked.anchor
        return anchor_id(handover.anchor) if _is_anchored(handover) else None
    except (DamagedError, ValueError):  # nobody can publish it
        return None


def _is_anchored(handover: HandOver) -> bool:
    """The record is there, and the checkpoint was completed after it."""
    record, metadata = handover.folder / RECORD, handover.anchor / ".metadata"
    try:
        return metadata.stat().st_mtime_ns >= record.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def _folders(checkpoints: Path) -> list[HandOver]:
    folder = checkpoints / FOLDER
    entries = folder.iterdir() if folder.is_dir() else ()
    return [HandOver(entry) for entry in entries if _NAME.fullmatch(entry.name)]


def _read(path: Path, kind: type[T]) -> T | None:
    """What a file holds; None where there is none.

    Raises:
        ValueError: it holds something else; the message names the file.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
