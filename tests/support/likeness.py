"""How alike two pictures of pages are, loosely: where there is how much on them, not what it says.

A picture is cut into squares; of each it counts which share of it stands out from the ground of the page.
Other fonts, moments and figures change little of that; an empty page, another page or another layout much.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SQUARE_PX = 40
STANDS_OUT = 24
"""Levels of 255 by which what is on a page differs from its ground in some colour."""
SPARSE = 8
"""Every so many rows and columns the ground is looked for."""


class Face(NamedTuple):
    """What is compared: width and height in pixels, the colour of the ground, the share of each square."""

    size: tuple[int, int]
    ground: NDArray[np.int16]
    covered: NDArray[np.float64]


def face_of(picture: bytes | Path) -> Face:
    """What a picture looks like from afar; `picture` is a file or what stands in one."""
    source = io.BytesIO(picture) if isinstance(picture, bytes) else picture
    return face(np.asarray(Image.open(source).convert("RGB"), dtype=np.int16))


def face(pixels: NDArray[np.int16]) -> Face:
    """The same of rows of columns of red, green, blue."""
    ground = np.median(pixels[::SPARSE, ::SPARSE].reshape(-1, 3), axis=0).astype(np.int16)
    out = np.abs(pixels - ground).max(axis=2) > STANDS_OUT
    rows, columns = (length // SQUARE_PX for length in out.shape)
    whole = out[: rows * SQUARE_PX, : columns * SQUARE_PX]
    covered = whole.reshape(rows, SQUARE_PX, columns, SQUARE_PX).mean(axis=(1, 3))
    return Face((out.shape[1], out.shape[0]), ground, covered)


def likeness(one: Face, other: Face) -> float:
    """From 0 (nothing is where the other has something) to 1 (as much everywhere), over what both show."""
    rows = min(len(one.covered), len(other.covered))
    first, second = one.covered[:rows], other.covered[:rows]
    together = float((first + second).sum())
    return 1.0 - float(np.abs(first - second).sum()) / together if together else 0.0
