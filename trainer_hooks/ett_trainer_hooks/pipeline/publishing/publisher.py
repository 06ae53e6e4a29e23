"""Publishing one model, from its checkpoint to its place: load, unshard, export, validate, upload.

Execution: one process and one thread, on the CPU, without a process group; at most 256 MB of tables, or
the largest one, are in memory at once, until the validation maps the files. What was written is what is
validated: the files are read back and asked for the predictions of the trainer before anybody sees them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError
from ett_trainer_hooks.pipeline.publishing import anchor as anchors
from ett_trainer_hooks.pipeline.publishing import card as cards
from ett_trainer_hooks.pipeline.publishing.anchor import Anchor
from ett_trainer_hooks.pipeline.publishing.card import Card, Form, Origin, TableCard, Validation
from ett_trainer_hooks.pipeline.publishing.exporting import dense_with_weights, export
from ett_trainer_hooks.pipeline.publishing.handover import PREDICTIONS, HandOver, Record, Request
from ett_trainer_hooks.pipeline.publishing.places import Place
from ett_trainer_hooks.pipeline.publishing.predictions import Bags, unpacked
from ett_trainer_hooks.pipeline.publishing.publishable import Publishable, UnfitError, built
from ett_trainer_hooks.pipeline.publishing.serving import LATEST, ServedModel
from ett_trainer_hooks.pipeline.publishing.tables import write_tables
from ett_trainer_hooks.pipeline.publishing.weights import Weights
from ett_trainer_hooks.pipeline.takes import Lease
from ett_trainer_hooks.recording.versions import PACKAGES, installed_versions


class DisagreementError(Exception):
    """What would be published predicts otherwise than the trainer did; the message says by how much."""


@dataclass(frozen=True)
class Told:
    """What the trainer has recorded."""

    numbers: torch.Tensor
    bags: Mapping[str, Bags]
    predictions: torch.Tensor


class Publisher:
    """Publishes one model that was handed over.

    Args:
        handover: the model.
        place: where it goes.
        lease: held by this process.
        recorder: of this process, a job of its own.
        form: of the tables.
        tolerance: of predictions; by default that of the form.
    """

    def __init__(  # noqa: PLR0913 - settings
        self,
        handover: HandOver,
        place: Place,
        lease: Lease,
        recorder: Recorder,
        *,
        form: Form = "plain",
        tolerance: float | None = None,
    ) -> None:
        self._handover = handover
        self._place = place
        self._lease = lease
        self._recorder = recorder
        self._form: Form = form
        self._tolerance = cards.TOLERANCE[form] if tolerance is None else tolerance

    def publish(self) -> tuple[str, Card | None]:
        """Publish it; returns the name of the model and its card, no card where another has been faster.

        Raises:
            DamagedError: the checkpoint, or what the trainer recorded, is not what was saved.
            UnfitError: checkpoint and model do not fit.
            ExportError: torch cannot export the dense part.
            DisagreementError: it predicts otherwise than the trainer did.
            LostError: another publisher has taken over.
            OSError, RemoteError: a disk or store cannot be used now.
        """
        request = self._handover.asked_for()
        publication = f"step_{request.step}-{request.anchor}"
        if (before := self._published(publication)) is not None:
            self._complete(before, publication)
            self._recorder.decision("nothing is published", f"{before} is published already")
            return before, None
        name = f"{publication}.{self._lease.number}"
        try:
            card = self._written(self._place.begin(name), name, request)
            with self._recorder.phase("upload"):
                winner = self._uploaded(name, publication)
        except BaseException:
            self._place.abandon(name)
            raise
        self._place.clear(f"{publication}.", but=winner)
        facts = {"bytes": float(card.size), "difference": card.validation.largest_difference}
        self._recorder.decision(f"{winner} is published", f"in {self._place.address}", facts)
        return winner, card if winner == name else None

    def _uploaded(self, name: str, publication: str) -> str:
        """The model that is published from now on: this one, or that of a faster publisher."""
        self._place.bring(name)
        self._lease.check()
        self._place.create(f"{publication}.json", cards.pointer(name))
        winner = self._published(publication) or name
        self._place.replace(LATEST, f"{winner}\n".encode())
        return winner

    def _complete(self, name: str, publication: str) -> None:
        """What a publisher may not have come to that died once its model was there."""
        latest = self._place.read(LATEST)
        if latest is None or step_of(latest.decode()) < self._handover.step:
            self._place.replace(LATEST, f"{name}\n".encode())
        self._place.clear(f"{publication}.", but=name)

    def _written(self, folder: Path, name: str, request: Request) -> Card:
        """Everything that is published, in a folder of this machine, validated."""
        with self._recorder.phase("load"):
            record, told = self._recorded()
            anchor = self._anchor(request)
            weights = Weights(self._handover.anchor)
            model = built(record.publishable, record.settings)
        with self._recorder.phase("unshard"):
            tables = write_tables(weights, model.tables(), folder, self._form)
            self._lease.check()
        with self._recorder.phase("export"):
            parameters = self._export(model, weights, told, tables, folder)
            self._lease.check()
        with self._recorder.phase("validate"):
            validation = validated(ServedModel(folder, self._form, tables), told, self._tolerance)
        card = Card(
            format=cards.FORMAT,
            name=name,
            origin=Origin(
                job_id=record.job_id,
                step=record.step,
                anchor=anchor.id,
                world_size=anchor.world_size,
                hashed=anchor.hashed,
            ),
            publishable=record.publishable,
            settings=record.settings,
            form=self._form,
            numbers=told.numbers.shape[1],
            parameters=parameters,
            tables=tables,
            validation=validation,
            files=manifests.marks(folder, manifests.names_in(folder)),
            versions=installed_versions((*PACKAGES, "safetensors")),
            made_at=time.time(),
            made_by=self._recorder.identity.job_id,
        )
        (folder / cards.NAME).write_bytes(cards.encoded(card))
        (folder / cards.TEXT).write_text(cards.text(card))
        return card

    def _recorded(self) -> tuple[Record, Told]:
        record = self._handover.record()
        path = self._handover.folder / PREDICTIONS
        if record is None or not path.exists() or manifests.mark(path) != record.predictions:
            raise DamagedError(f"what the trainer recorded in {self._handover.folder} is damaged")
        return record, Told(*unpacked(path.read_bytes()))

    def _anchor(self, request: Request) -> Anchor:
        directory = self._handover.anchor
        try:
            anchor = anchors.checked(directory)
        except DamagedError as error:
            raise DamagedError(f"damaged checkpoint {directory}: {error}") from error
        if anchor.id != request.anchor:
            raise DamagedError(
                f"the checkpoint {directory} is another one ({anchor.id}) than was handed over"
            )
        return anchor

    def _export(
        self,
        model: Publishable,
        weights: Weights,
        told: Told,
        tables: tuple[TableCard, ...],
        folder: Path,
    ) -> int:
        dense = dense_with_weights(model, weights)
        samples = len(told.numbers)
        pooled = {name: torch.zeros(samples, table.width) for table in tables for name in table.features}
        if missing := sorted(pooled.keys() ^ told.bags.keys()):
            raise UnfitError(
                f"features of the tables and of the recorded samples differ: {', '.join(missing)}"
            )
        export(dense, told.numbers, pooled, folder / cards.DENSE)
        return sum(each.numel() for each in dense.parameters())

    def _published(self, publication: str) -> str | None:
        """The model that is published of a checkpoint; None where none is."""
        data = self._place.read(f"{publication}.json")
        return None if data is None else cards.pointed_at(data)


def step_of(name: str) -> int:
    """The step of a model, by its name.

    >>> step_of("step_9000-df4748b9d9575098.1")
    9000
    """
    return int(name.removeprefix("step_").partition("-")[0])


def validated(model: ServedModel, told: Told, tolerance: float) -> Validation:
    """How far a model is from what the trainer predicted.

    Raises:
        DisagreementError: further than the tolerance.
    """
    predictions = model.predict(told.numbers, told.bags).float()
    if predictions.shape != told.predictions.shape:
        raise DisagreementError(
            f"the model's predictions have the size {tuple(predictions.shape)}, "
            f"the trainer's {tuple(told.predictions.shape)}"
        )
    differences = (predictions - told.predictions).abs() / told.predictions.abs().clamp(min=1.0)
    found = Validation(
        samples=len(predictions),
        largest_difference=float(differences.max()),
        mean_difference=float(differences.mean()),
        tolerance=tolerance,
    )
    if not found.largest_difference <= tolerance:  # also where it is no number
        raise DisagreementError(
            f"the published model disagrees with the trainer: predictions differ by up to "
            f"{found.largest_difference:.3g}, {tolerance:g} is allowed"
        )
    return found
