"""Synthetic click data in the shape of Criteo's: 13 numbers, 26 ids, clicked or not.

Pure: a batch follows from (seed, rank, step) alone, so a resumed run sees exactly the data that
an uninterrupted one would have seen, whatever was prefetched when it died. Ids follow a power
law, as in real logs. Whether a sample is clicked follows from hidden weights of its numbers and
ids (the planted signal), which a model can learn: its loss falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DENSE_FEATURES = 13
SPARSE_FEATURES = tuple(f"cat_{index}" for index in range(26))

_SKEW = 4.0
_DENSE_WEIGHT = 0.5
_ID_WEIGHT = 0.5


@dataclass(frozen=True)
class Samples:
    """One batch: `dense` [n, 13], `ids` [26, n], `clicked` [n] of 0.0 and 1.0."""

    dense: NDArray[np.float32]
    ids: NDArray[np.int64]
    clicked: NDArray[np.float32]


@dataclass(frozen=True)
class Signal:
    """The hidden weights that decide who clicks: of numbers [13] and of ids [26, rows]."""

    dense: NDArray[np.float32]
    ids: NDArray[np.float32]


def planted_signal(seed: int, rows: int) -> Signal:
    """Hidden weights of a data set; the same on every rank."""
    draw = np.random.default_rng([seed, rows])
    dense = draw.normal(0.0, _DENSE_WEIGHT, DENSE_FEATURES)
    ids = draw.normal(0.0, _ID_WEIGHT, (len(SPARSE_FEATURES), rows))
    return Signal(dense.astype(np.float32), ids.astype(np.float32))


def samples(signal: Signal, seed: int, rank: int, step: int, count: int) -> Samples:
    """The batch of `count` samples that `rank` consumes in its step number `step`.

    >>> signal = planted_signal(seed=7, rows=100)
    >>> first, again = (samples(signal, 7, rank=0, step=3, count=4) for _ in range(2))
    >>> first.dense.shape, first.ids.shape, bool((first.ids == again.ids).all())
    ((4, 13), (26, 4), True)
    """
    draw = np.random.default_rng([seed, rank, step])
    features, rows = signal.ids.shape
    dense = draw.normal(0.0, 1.0, (count, DENSE_FEATURES)).astype(np.float32)
    ids = (rows * draw.random((features, count)) ** _SKEW).astype(np.int64)
    logit = dense @ signal.dense + np.take_along_axis(signal.ids, ids, axis=1).sum(axis=0)
    clicked = draw.random(count) < 1.0 / (1.0 + np.exp(-logit))
    return Samples(dense, ids, clicked.astype(np.float32))
