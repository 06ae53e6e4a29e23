"""The collectives of a start: counted while it lasts, and torch as it was afterwards."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch.distributed import device_mesh, distributed_c10d  # noqa: E402

from ett_trainer_hooks.pipeline.collectives import COLLECTIVES, GROUPS, CollectiveCount  # noqa: E402

pytestmark = pytest.mark.service("torch")


@pytest.fixture
def alone():
    """A group of one rank, made while the test counts."""
    yield lambda: dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    dist.destroy_process_group()


def owned():
    """Every function that is named as those that are counted, by the module that has it."""
    return {
        (name, each): vars(module)[each]
        for name, module in list(sys.modules.items())
        for each in (*GROUPS, *COLLECTIVES)
        if each in getattr(module, "__dict__", {})
    }


def test_a_start_is_counted_by_kind_and_told(alone, bench):
    """Groups that a mesh makes, DDP's own collectives, and an object gathered as one call."""
    here = bench()
    count = CollectiveCount()
    count.start()
    alone()
    dist.new_group([0])
    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    dist.all_gather_object([None], "x")
    for _ in range(2):
        distributed_c10d.all_reduce(torch.ones(1))
    count.tell(here.recorder)
    dist.all_reduce(torch.ones(1))
    values = here.of("counters")[0].values
    assert {name: value for name, value in values.items() if not name.endswith("_s")} == {
        "start.counted": 1,
        "start.groups": 2,
        "start.collectives": 5,
        "start.collectives.all_gather_object": 1,
        "start.collectives.all_reduce": 2,
        "start.collectives.broadcast_coalesced": 1,
        "start.collectives.verify_params_across_processes": 1,
    }
    assert all(value > 0 for value in values.values())


def test_groups_are_counted_where_a_module_took_the_function_at_its_import(alone):
    """The module of meshes has its own name for it."""
    assert device_mesh.new_group is dist.new_group
    with CollectiveCount() as count:
        alone()
        device_mesh.new_group([0])
    assert count.calls == {"init_process_group": 1, "new_group": 1}


def test_afterwards_everything_is_as_it_was():
    """Also in a module that was imported meanwhile and has taken the counting function."""
    before = owned()
    counted = {id(vars(dist)[name]) for name in (*GROUPS, *COLLECTIVES)}
    late = ModuleType("late")
    count = CollectiveCount(modules={**sys.modules, "late": late})
    count.start()
    count.start()
    changed = {key for key, each in owned().items() if each is not before[key]}
    assert changed == {key for key, each in before.items() if id(each) in counted}
    late.all_reduce = dist.all_reduce
    count.stop()
    assert owned() == before
    assert late.all_reduce is before["torch.distributed", "all_reduce"]


def test_seconds_are_those_of_the_outer_call_also_where_it_raises():
    """By a clock that moves with the calls."""
    owner = ModuleType("torch.distributed.distributed_c10d")
    now_s = [0.0]

    def inner():
        now_s[0] += 1.0

    def outer():
        owner.all_gather()
        now_s[0] += 2.0
        raise RuntimeError("a peer is gone")

    owner.all_gather, owner.all_gather_object = inner, outer
    with CollectiveCount(clock=lambda: now_s[0], modules={owner.__name__: owner}) as count:
        owner.all_gather()
        with pytest.raises(RuntimeError, match="a peer is gone"):
            owner.all_gather_object()
    assert count.values() == {
        "start.counted": 1,
        "start.groups": 0,
        "start.groups_s": 0,
        "start.collectives": 2,
        "start.collectives_s": 4,
        "start.collectives.all_gather": 1,
        "start.collectives.all_gather_s": 1,
        "start.collectives.all_gather_object": 1,
        "start.collectives.all_gather_object_s": 3,
    }


def test_without_torch_nothing_is_counted():
    with CollectiveCount(modules={}) as count:
        pass
    assert count.calls == {}
