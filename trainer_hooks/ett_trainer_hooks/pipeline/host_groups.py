"""TorchRec's process groups of a host and across hosts: made by their members alone, or taken from a mesh.

Table-row-wise and grid sharding need two groups a rank: the ranks of its host, and the ranks with its
place on the other hosts. TorchRec makes all groups of the job on every rank, one after another, with
two barriers; their number grows with the job. Here each rank makes the two that it is in, or none
where a device mesh has them already. They are kept where TorchRec looks for them, so each is made once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import DeviceMesh
from torchrec.distributed import comm

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.agreement import all_agree

MADE = "groups of hosts are made by their members"
LEFT = "groups of hosts are left to TorchRec"

Groups = tuple[dist.ProcessGroup, dist.ProcessGroup]
"""That of a rank's host, and that across hosts."""


def host_groups(recorder: Recorder, mesh: DeviceMesh | None = None) -> Groups:
    """The two groups that TorchRec uses for this rank; every rank calls, before tables are sharded.

    Args:
        recorder: is told how many groups were made and how many came from the mesh.
        mesh: one whose groups may be used; collectives of its owner then share them with TorchRec.
    """
    if comm._INTRA_PG is not None and comm._CROSS_PG is not None:  # noqa: SLF001 - TorchRec has no setter
        return comm._INTRA_PG, comm._CROSS_PG  # noqa: SLF001
    if not all_agree(str(len(distributed_c10d._world.pg_names)).encode()):  # noqa: SLF001 - a name is made of it
        recorder.decision(
            LEFT, "ranks are in different numbers of groups: torch would name new ones differently"
        )
        groups: Groups = comm.intra_and_cross_node_pg()
        return groups
    world, rank = dist.get_world_size(), dist.get_rank()
    size = comm.get_topology_group_world_size(world)
    wanted = members(rank, world, size)
    known = {tuple(dist.get_process_group_ranks(group)): group for group in groups_of(mesh)}
    reused = [ranks for ranks in wanted if ranks in known]
    intra, cross = (
        known.get(ranks) or dist.new_group(list(ranks), use_local_synchronization=True) for ranks in wanted
    )
    comm._INTRA_PG, comm._CROSS_PG = intra, cross  # noqa: SLF001
    usual = world // size + size
    recorder.decision(
        MADE,
        f"{2 - len(reused)} made, {len(reused)} of the mesh; TorchRec would make {usual} on each rank",
        {"made": 2 - len(reused), "reused": len(reused), "of_torchrec": usual},
    )
    return intra, cross


def members(rank: int, world: int, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ranks on the host of a rank, and those with its place on each host of `size` ranks.

    Rank 3 of 6, two on each host: (2, 3) and (1, 3, 5).
    """
    first = rank - rank % size
    return tuple(range(first, first + size)), tuple(range(rank % size, world, size))


def groups_of(mesh: DeviceMesh | None) -> Sequence[dist.ProcessGroup]:
    """The groups of a mesh that this rank is in, one a dimension."""
    return [] if mesh is None else [mesh.get_group(dimension) for dimension in range(mesh.ndim)]
