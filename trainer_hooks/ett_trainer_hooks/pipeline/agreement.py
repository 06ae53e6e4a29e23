"""Whether all ranks of a group hold the same thing: one all-reduce of two numbers.

Every rank of the group calls, in the same place of its program. Nothing is sent but a digest.
"""

from __future__ import annotations

from hashlib import sha256

import torch
import torch.distributed as dist


def all_agree(data: bytes | None, group: dist.ProcessGroup | None = None) -> bool:
    """Whether every rank holds the same `data`; False on all ranks where one of them has none.

    Args:
        data: what this rank holds, None where it holds nothing to agree on.
        group: the ranks that are asked; all without it.
    """
    number = number_of(data)
    pair = torch.tensor([number, -number], dtype=torch.int64, device=device_of(group))
    dist.all_reduce(pair, op=dist.ReduceOp.MAX, group=group)
    largest, smallest = int(pair[0]), -int(pair[1])
    return largest == smallest != 0


def number_of(data: bytes | None) -> int:
    """A number from 1 to 2**62 that stands for the data; 0 for none."""
    return 0 if data is None else 1 + (int.from_bytes(sha256(data).digest()[:8], "big") >> 2)


def device_of(group: dist.ProcessGroup | None) -> torch.device:
    """A device whose tensors the group can reduce."""
    backends = dist.get_backend_config(group)
    if "cpu" in (pair.partition(":")[0] for pair in backends.split(",")):
        return torch.device("cpu")
    return torch.accelerator.current_accelerator()
