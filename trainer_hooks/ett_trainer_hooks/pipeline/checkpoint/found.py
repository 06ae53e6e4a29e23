"""What a start finds among the checkpoints of earlier ones."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ett_trainer_hooks.pipeline.checkpoint.manifest import Manifest


class PassedOver(msgspec.Struct, frozen=True):
    """A checkpoint that was not taken, and why; `lasting` where it will never be intact again."""

    step: int
    why: str
    lasting: bool


class Found(msgspec.Struct, frozen=True):
    """The newest intact checkpoint, None where there is none, and those that would have come before it.

    `fault`: why a second place, where there is one, could not be asked; `only_here`: it has this one not,
    as far as is known.
    """

    manifest: Manifest | None
    directory: Path | None
    passed_over: tuple[PassedOver, ...]
    fault: str = ""
    only_here: bool = False


class UnavailableError(OSError):
    """There are checkpoints, and none of them can be had now: no reason to begin anew."""
