"""Which rank of a job that stands still the others wait for, from what each was doing: pure.

A rank whose process is stopped or hangs inside the kernel is the one; else the only one whose
main thread is in no collective operation while those of all others are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_RANK = re.compile(r"rank (\d{1,6}) ")
_STOPPED = re.compile(r"^process: [TtDZX] \(", re.MULTILINE)
_WAITS = re.compile(
    r"distributed_c10d|functional_collectives|_engine_run_backward|c10d|nccl|gloo|barrier|all_?reduce|all_?gather"
    r"|reduce_?scatter|all_?to_?all|broadcast",
    re.IGNORECASE,
)
_NEXT_THREAD = "\nThread "


def waited_for(stacks: Iterable[str]) -> int | None:
    r"""The rank that the others wait for; None where nobody stands out.

    Args:
        stacks: what launchers tell of the ranks of a stalled job, one text a rank, main thread first.

    >>> waiting = "rank 0 in the loop\nprocess: S (sleeping)\nThread 7: all_reduce (distributed_c10d.py)"
    >>> asleep = "rank 1 in the loop\nprocess: S (sleeping)\nThread 8: sleep (train.py)"
    >>> waited_for([waiting, asleep]), waited_for([waiting]), waited_for([asleep])
    (1, None, None)
    >>> stopped = waiting.replace("rank 0", "rank 2").replace("S (sleeping)", "T (stopped)")
    >>> waited_for([waiting, stopped])
    2
    """
    told = {int(found[1]): text for text in stacks if (found := _RANK.match(text))}
    stopped = [rank for rank, text in told.items() if _STOPPED.search(text)]
    if len(stopped) == 1:
        return stopped[0]
    free = [rank for rank, text in told.items() if not _WAITS.search(_of_main_thread(text))]
    return free[0] if len(free) == 1 < len(told) else None


def _of_main_thread(text: str) -> str:
    begin = text.find(_NEXT_THREAD)
    end = text.find(_NEXT_THREAD, begin + 1) if begin >= 0 else -1
    return text if end < 0 else text[:end]
