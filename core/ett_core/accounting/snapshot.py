"""Folds as bytes, so that a restart need not read every event again.

Whatever is damaged or of another version is a `ValueError`, and the fold is then made from the
history. One thread at a time holds the fold that is dumped.
"""

from __future__ import annotations

import msgspec

from ett_core.accounting.job import DEFAULTS, JobFold
from ett_core.accounting.job_lanes import FoldState, History
from ett_core.accounting.settings import Settings
from ett_core.archive import IN_MEMORY, Archive
from ett_core.packing import unwrapped, wrapped

MAGIC = b"ettfold\x04"

_decoder = msgspec.msgpack.Decoder(FoldState)


def dump(fold: JobFold) -> bytes:
    """The fold as bytes. `load` needs the history beside them: they do not hold the events."""
    return wrapped(MAGIC, fold.state())


def load(
    data: bytes,
    history: History,
    settings: Settings = DEFAULTS,
    archive: Archive = IN_MEMORY,
    *,
    is_cut: bool = False,
) -> JobFold:
    """The fold that `dump` was given: it answers the same, and takes in events as that one would.

    Args:
        data: what `dump` returned.
        history: gives every event that the dumped fold was ever given, and those added since.
        settings: limits of the accounting, the same as those of the dumped fold.
        archive: keeps what the fold rarely needs again.
        is_cut: whether the events of the dumped fold are deleted: what they told stays as it is, and what
            would belong among them is refused.

    Raises:
        ValueError: the bytes are damaged, of another version, or of a fold with other settings.
    """
    state = unwrapped(MAGIC, data, _decoder.decode)
    return JobFold.of_state(state, settings=settings, history=history, archive=archive, is_cut=is_cut)
