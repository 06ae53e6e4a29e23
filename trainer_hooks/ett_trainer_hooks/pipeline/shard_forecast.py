"""What the ranks would tell each other of a sharded tensor, foretold by each of them from the plan.

TorchRec asks for one gather a tensor to learn which rank holds which part of it. The plan says it
already. Each rank foretells the answer, checks that its own part is as foretold, tensor and all, and
at the end the ranks compare digests of what they foretold: one all-reduce for many tensors. If all
foretold the same and each its own part rightly, then the gather would have told just that. If not,
on any rank, all of them gather as TorchRec does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import msgspec
import torch
import torch.distributed as dist
from torchrec.distributed.embeddingbag import TensorProperties
from torchrec.distributed.types import Shard, ShardedTensor, ShardedTensorMetadata, ShardMetadata

from ett_trainer_hooks.guard import type_and_text
from ett_trainer_hooks.pipeline.agreement import all_agree


class Foretold(msgspec.Struct, frozen=True):
    """All parts of a tensor on all ranks, in the order of a plan."""

    shards: Sequence[ShardMetadata]
    dtype: torch.dtype


class _Asked(msgspec.Struct):
    """One gather that was put off: its arguments, and what stands in for its result."""

    local_shards: list[Shard]
    size: tuple[Any, ...]
    more: dict[str, Any]
    result: Any = None


class Forecast:
    """The tensors of one module, from the first that is asked for to `settle`, on all ranks alike.

    Args:
        group: the ranks that hold parts of them.
        gather: TorchRec's way to the tensor, a collective: takes local shards, size and options.
    """

    def __init__(self, group: dist.ProcessGroup, gather: Callable[..., Any]) -> None:
        self._group = group
        self._gather = gather
        self._places = {rank: place for place, rank in enumerate(dist.get_process_group_ranks(group))}
        self._asked: list[_Asked] = []
        self._digest = sha256()
        self.reason = ""
        """What was not as foretold here, empty where all was."""

    @property
    def tensors(self) -> int:
        """Tensors asked for so far."""
        return len(self._asked)

    def take(
        self,
        foretell: Callable[[], Foretold],
        local_shards: list[Shard],
        *size: Any,  # noqa: ANN401 - as torch's
        **more: Any,  # noqa: ANN401 - as torch's
    ) -> Any:  # noqa: ANN401 - a ShardedTensor, or what stands in for one
        """The tensor as foretold; something that stands in for it where it is not as foretold here.

        `size` and `more` are arguments of the gather.
        """
        asked = _Asked(local_shards, size, more)
        try:
            asked.result = self._build(foretell(), asked)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other ranks must hear of it
            self.reason = self.reason or type_and_text(error)
            asked.result = object()
        self._asked.append(asked)
        return asked.result

    def settle(self) -> dict[int, Any]:
        """Compare with the other ranks; returns tensors by the `id` of what they must take the place of.

        Empty where all ranks foretold the same, rightly.
        """
        if all_agree(None if self.reason else self._digest.digest(), self._group):
            return {}
        self.reason = self.reason or "another rank foretold something else, or is not as foretold"
        return {
            id(asked.result): self._gather(asked.local_shards, *asked.size, **asked.more)
            for asked in self._asked
        }

    def _build(self, foretold: Foretold, asked: _Asked) -> ShardedTensor:
        size = torch.Size(asked.size[0] if len(asked.size) == 1 else asked.size)
        shards = sorted(foretold.shards, key=lambda shard: self._places[shard.placement.rank()])
        self._digest.update(f"{size} {foretold.dtype} {shards}".encode())
        own = [shard for shard in shards if shard.placement.rank() == dist.get_rank()]
        if (here := [shard.metadata for shard in asked.local_shards]) != own:
            raise ValueError(f"this rank holds {here}, the plan says {own}")
        return ShardedTensor._init_from_local_shards_and_global_metadata(  # noqa: SLF001 - torch has no other way
            asked.local_shards,
            ShardedTensorMetadata(list(map(_copied, shards)), size, TensorProperties(dtype=foretold.dtype)),
            process_group=self._group,
        )


def _copied(shard: ShardMetadata) -> ShardMetadata:
    return ShardMetadata(list(shard.shard_offsets), list(shard.shard_sizes), shard.placement)
