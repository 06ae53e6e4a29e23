"""The folds of a job as one blob, which only the same code reads again.

    blob  =  length of the first part (4 bytes) | fold | details

`FORMAT` is a hash of the code that folds: what other code has folded is folded anew, so that a
correction of the accounting corrects every job.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import ett_core
from ett_core import details as job_details
from ett_core.accounting import JobFold, snapshot
from ett_core.accounting.job_lanes import History
from ett_core.archive import IN_MEMORY, Archive
from ett_core.details import JobDetails

LENGTH_BYTES = 4


@cache
def code_format() -> str:
    """What stands for the code of `ett_core`, as it lies on the disk."""
    digest = hashlib.sha256()
    root = Path(ett_core.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def pack(fold: JobFold, details: JobDetails) -> bytes:
    """Both folds of a job as bytes."""
    first = snapshot.dump(fold)
    return len(first).to_bytes(LENGTH_BYTES, "big") + first + job_details.dump(details)


def unpack(
    blob: bytes, history: History, archive: Archive = IN_MEMORY, *, is_cut: bool = False
) -> tuple[JobFold, JobDetails]:
    """What `pack` was given; `history` gives every event of the job, but for those before where `is_cut`.

    Raises:
        ValueError: the blob is damaged.
    """
    end = LENGTH_BYTES + int.from_bytes(blob[:LENGTH_BYTES], "big")
    fold = snapshot.load(blob[LENGTH_BYTES:end], history, archive=archive, is_cut=is_cut)
    return fold, job_details.load(blob[end:], archive)
