"""The card of a published model: what it is, where it comes from, how well it agrees with the trainer."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Literal

import msgspec

from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError, FileMark

FORMAT = 1
NAME, TEXT = "card.json", "README.md"
DENSE = "dense.pt2"

Form = Literal["plain", "int8"]
TOLERANCE: dict[Form, float] = {"plain": 1e-5, "int8": 1e-2}
"""Largest difference to a recorded prediction (relative where that is above 1) that is let pass."""


class _Pointer(msgspec.Struct, frozen=True):
    model: str


class TableCard(msgspec.Struct, frozen=True, kw_only=True):
    """A table as it is published. Errors are those of quantisation, of single weights; 0 for plain tables."""

    name: str
    file: str
    features: tuple[str, ...]
    mean: bool
    rows: int
    width: int
    size: int
    largest_error: float
    rms_error: float


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """The published files against the predictions of the trainer."""

    samples: int
    largest_difference: float
    mean_difference: float
    tolerance: float


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The training behind it. `hashed`: the files of the checkpoint were compared with their hashes."""

    job_id: str
    step: int
    anchor: str
    world_size: int
    hashed: bool


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A published model; `files` with sizes and hashes (XXH3, 128 bits), by their path beside the card."""

    format: int
    name: str
    origin: Origin
    publishable: str
    settings: dict[str, Any]
    form: Form
    numbers: int
    parameters: int
    tables: tuple[TableCard, ...]
    validation: Validation
    files: dict[str, FileMark]
    versions: dict[str, str]
    made_at: float
    made_by: str

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(mark.size for mark in self.files.values())


def pointer(name: str) -> bytes:
    """The file that says that a model is published."""
    return msgspec.json.encode(_Pointer(name)) + b"\n"


def pointed_at(data: bytes) -> str:
    """The name of the model that such a file says is published."""
    return msgspec.json.decode(data, type=_Pointer).model


def encoded(card: Card) -> bytes:
    """The card as a file."""
    return msgspec.json.format(msgspec.json.encode(card), indent=1) + b"\n"


def decoded(data: bytes) -> Card:
    """The card that a file holds.

    Raises:
        DamagedError: it holds none, or one of another version.
    """
    try:
        card = msgspec.json.decode(data, type=Card)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"its card cannot be read: {error}") from error
    if card.format != FORMAT:
        raise DamagedError(f"its card has format {card.format}; this version reads {FORMAT}")
    return card


def text(card: Card) -> str:
    """The card for people, in Markdown."""
    made = datetime.fromtimestamp(card.made_at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    compared = "compared with the hashes of its commit" if card.origin.hashed else "without hashes"
    agrees = card.validation
    agreement = (
        f"largest difference {agrees.largest_difference:.2g}, mean {agrees.mean_difference:.2g} "
        f"({agrees.tolerance:g} allowed) over {_counted(agrees.samples, 'prediction')} of the trainer"
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(card.versions.items()))
    rows = [
        ("job", card.origin.job_id),
        ("step", f"{card.origin.step:,}"),
        ("checkpoint", f"{card.origin.anchor}, of {_counted(card.origin.world_size, 'rank')}, {compared}"),
        ("published", f"{made} by {card.made_by}"),
        ("dense part", f"`{DENSE}`, {card.parameters:,} parameters"),
        (
            "tables",
            f"{len(card.tables):,}, {'quantised to 8 bits a row' if card.form == 'int8' else 'plain'}",
        ),
        ("size", f"{card.size / 1e6:,.1f} MB in {_counted(len(card.files), 'file')}"),
        ("agreement", agreement),
        ("versions", versions),
    ]
    facts = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return f"# {card.name}\n\n| | |\n|---|---|\n{facts}\n\n{_tables(card)}\n"


def _tables(card: Card) -> str:
    lines = [
        f"| {table.name} | {', '.join(table.features)} | {'mean' if table.mean else 'sum'} | {table.rows:,} "
        f"| {table.width} | {table.size / 1e6:,.2f} | {table.largest_error:.2g} | {table.rms_error:.2g} |"
        for table in card.tables
    ]
    heads = "| table | features | pooling | rows | width | MB | largest error | RMS error |\n"
    return f"{heads}|---|---|---|---:|---:|---:|---:|---:|\n" + "\n".join(lines)


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
