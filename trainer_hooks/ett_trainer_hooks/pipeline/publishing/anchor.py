"""The checkpoint that is published, of the commit-safe store or written by torch alone. Needs no torch.

Of the first every file is checked by its hash; of the second, whose files have none, lengths are what can be
checked, and torch finds out for itself what is missing.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import xxhash

from ett_trainer_hooks.pipeline.checkpoint import manifest as manifests
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError

METADATA = ".metadata"
ID_DIGITS = 16


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a checkpoint. `hashed`: its files were compared with the hashes of its commit."""

    id: str
    size: int
    world_size: int
    hashed: bool


def anchor_id(directory: Path) -> str:
    """What tells this checkpoint from any other of its step.

    Raises:
        DamagedError: there is no checkpoint.
    """
    if (directory / manifests.NAME).exists():
        return manifests.read(directory).commit
    try:
        return xxhash.xxh3_128_hexdigest((directory / METADATA).read_bytes())[:ID_DIGITS]
    except FileNotFoundError:
        raise DamagedError(f"there is no checkpoint in {directory}") from None


def checked(directory: Path) -> Anchor:
    """A checkpoint, all its files read and compared, as far as it has hashes.

    Raises:
        DamagedError: it is not what was saved, or is not there.
        OSError: the disk cannot be read now.
    """
    if (directory / manifests.NAME).exists():
        manifest = manifests.read(directory)
        manifests.check(directory, manifest.files)
        return Anchor(id=manifest.commit, size=manifest.size, world_size=manifest.world_size, hashed=True)
    names = manifests.names_in(directory)
    writers = {name.split("_")[2] for name in names if name.startswith("__") and name.count("_") > 2}  # noqa: PLR2004
    size = sum((directory / name).stat().st_size for name in names)
    return Anchor(id=anchor_id(directory), size=size, world_size=len(writers), hashed=False)
