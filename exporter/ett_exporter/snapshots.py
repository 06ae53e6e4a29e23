"""The folds of a job, and what it has counted, as one blob, which only the same code reads again.

    blob  =  length (4 bytes) | fold | length (4 bytes) | details | counts

The first length has its highest bit set; without it, as earlier versions wrote it, all that follows the fold
is details. `code_format` is a hash of the code that folds: what other code has folded is folded anew, so that
a correction of the accounting corrects every job.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import msgspec

import ett_core
from ett_core import details as job_details
from ett_core.accounting import JobFold, snapshot
from ett_core.accounting.job_lanes import History
from ett_core.archive import IN_MEMORY, Archive
from ett_core.details import JobDetails
from ett_core.packing import unwrapped, wrapped
from ett_exporter.views import Counts

LENGTH_BYTES = 4
COUNTED = 1 << 31
"""The bit of the first length: the second one follows the fold."""
MAGIC = b"ettcounts\x01"

_decoder = msgspec.msgpack.Decoder(Counts)


@cache
def code_format() -> str:
    """What stands for the code of `ett_core`, as it lies on the disk."""
    digest = hashlib.sha256()
    root = Path(ett_core.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def pack(fold: JobFold, details: JobDetails, counts: Counts) -> bytes:
    """Both folds of a job as bytes, and what it has counted."""
    first, second = snapshot.dump(fold), job_details.dump(details)
    lengths = [length.to_bytes(LENGTH_BYTES, "big") for length in (len(first) | COUNTED, len(second))]
    return lengths[0] + first + lengths[1] + second + wrapped(MAGIC, counts)


def unpack(
    blob: bytes, history: History, archive: Archive = IN_MEMORY, *, is_cut: bool = False
) -> tuple[JobFold, JobDetails, Counts]:
    """What `pack` was given; `history` gives every event of the job, but for those before where `is_cut`.

    Raises:
        ValueError: the blob is damaged.
    """
    length, rest = _length(blob), blob[LENGTH_BYTES:]
    size = length & ~COUNTED
    fold = snapshot.load(rest[:size], history, archive=archive, is_cut=is_cut)
    if not length & COUNTED:
        return fold, job_details.load(rest[size:], archive), Counts()
    length, rest = _length(rest[size:]), rest[size + LENGTH_BYTES :]
    counts = unwrapped(MAGIC, rest[length:], _decoder.decode)
    return fold, job_details.load(rest[:length], archive), counts


def _length(data: bytes) -> int:
    return int.from_bytes(data[:LENGTH_BYTES], "big")
