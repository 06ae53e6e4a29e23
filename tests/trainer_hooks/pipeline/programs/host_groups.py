"""Two ranks as two hosts, and their groups: of TorchRec, of members, of a mesh, and with uneven counts."""

from __future__ import annotations

import torch
import torch.distributed as dist
from gloo_ranks import answer, join
from torch.distributed.device_mesh import init_device_mesh
from torchrec.distributed import comm

from ett_trainer_hooks.pipeline.collectives import GROUPS, CollectiveCount
from ett_trainer_hooks.pipeline.host_groups import host_groups


class Told:
    """What was decided, in place of a recorder."""

    def __init__(self) -> None:
        self.decisions = []

    def decision(self, what, why, values=None):
        self.decisions.append([what, why, values])


def made(make):
    """Groups as TorchRec gets them afterwards, the sum over each, and what they took."""
    told = Told()
    comm._INTRA_PG = comm._CROSS_PG = None
    with CollectiveCount() as count:
        make(told)
    calls = {**count.calls}
    with CollectiveCount() as later:
        groups = comm.intra_and_cross_node_pg()
    sums = []
    for group in groups:
        ranks = torch.tensor([float(10 + dist.get_rank())])
        dist.all_reduce(ranks, group=group)
        sums.append(float(ranks))
    return {
        "groups": sum(calls.pop(name, 0) for name in GROUPS),
        "calls": calls,
        "later": later.calls,
        "ranks": [dist.get_process_group_ranks(group) for group in groups],
        "sums": sums,
        "told": told.decisions,
    }


join()
mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("host", "place"))
found = {
    "torchrec": made(lambda _: comm.intra_and_cross_node_pg()),
    "members": made(host_groups),
    "twice": made(lambda told: (host_groups(told), host_groups(told))),
    "mesh": made(lambda told: host_groups(told, mesh)),
}
dist.new_group([0])
found["uneven"] = made(host_groups)
answer(found)
