"""Metadata of sharded tables built from the plan: equal to what TorchRec gathers, or gathered by all."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchrec")

from gloo_ranks import run_ranks  # noqa: E402
from torchrec.distributed.embedding import ShardedEmbeddingCollection  # noqa: E402
from torchrec.distributed.mc_modules import ShardedManagedCollisionCollection  # noqa: E402
from torchrec.distributed.types import ShardedTensor  # noqa: E402

from ett_trainer_hooks.pipeline import shard_metadata  # noqa: E402
from ett_trainer_hooks.pipeline.shard_metadata import BUILT, GATHERED, local_metadata  # noqa: E402

pytestmark = pytest.mark.service("torch")

PROGRAM = Path(__file__).with_name("programs") / "metadata.py"
WORLDS = (2, 4) if os.environ.get("ETT_FULL") == "1" else (2,)
TENSORS = {"table-wise": 3, "row-wise": 3, "column-wise": 2, "data-parallel": 0, "mixed": 3, "half": 2}
BUFFERS = 4 * 2
"""Those of managed collisions: four a table, two tables."""


@pytest.fixture(scope="module", params=WORLDS)
def ranks(tmp_path_factory, request):
    """What each rank found, comparing both ways."""
    return run_ranks(PROGRAM, tmp_path_factory.mktemp("metadata"), ranks=request.param)


@pytest.mark.parametrize("way", TENSORS)
def test_collections_of_every_kind_are_equal_without_a_gather(ranks, way):
    """Shards, their order, sizes, types, spec and group; and one all-reduce for all tables of a module."""
    count = TENSORS[way]
    for rank in ranks:
        found = rank[way]
        assert found["names"]
        assert len(found["differences"]) == count
        assert not any(found["differences"].values())
        assert found["plain"] == {"all_gather_object": count, "all_reduce": 0}
        assert found["ours"] == {"all_gather_object": 0, "all_reduce": min(count, 1)}
        assert found["told"] == [[BUILT, "for ShardedEmbeddingCollection", count]] * min(count, 1)


def test_buffers_of_managed_collisions_are_equal_without_a_gather(ranks):
    """The tables and the buffers are two modules."""
    for rank in ranks:
        found = rank["managed"]
        assert len(found["differences"]) == 2 + BUFFERS
        assert not any(found["differences"].values())
        assert found["plain"]["all_gather_object"] == 2 + BUFFERS
        assert found["ours"] == {"all_gather_object": 0, "all_reduce": 2}
        assert sorted(tensors for *_, tensors in found["told"]) == [2, BUFFERS]


def test_a_tensor_in_row_blocks_on_one_host_is_equal(ranks):
    """Ranks of another host hold nothing of it."""
    for rank in ranks:
        assert rank["table-row-wise"] == {"differences": [], "settled": 0, "reason": ""}


@pytest.mark.parametrize("case", ["wrong, and holds it", "wrong, and holds nothing"])
def test_where_one_rank_foretells_wrongly_all_gather_and_are_equal(ranks, case):
    """Nobody waits for a rank that has gone another way; each tells why."""
    for number, rank in enumerate(ranks):
        found = rank[case]
        assert found["differences"] == [[]]
        assert found["ours"] == {"all_gather_object": 1, "all_reduce": 1}
        ((what, why, _),) = found["told"]
        assert what == GATHERED
        mine = case.endswith("holds it") and number == len(ranks) - 1
        assert ("torch.float16" if mine else "another rank") in why


@pytest.mark.parametrize(
    ("env", "virtual", "reason"),
    [
        ({"process_group": None}, False, "one rank is alone"),
        ({"sharding_pg": "some"}, False, "2D parallel"),
        ({"output_dtensor": True}, False, "DTensor"),
        ({}, True, "virtual"),
        ({}, False, ""),
    ],
)
def test_what_is_left_to_torchrec_is_the_same_on_all_ranks(monkeypatch, env, virtual, reason):
    """By what the plan and the configuration say, never by what a rank holds."""
    monkeypatch.setattr(shard_metadata.dist, "get_world_size", lambda _: 2)
    module = SimpleNamespace(
        _env=SimpleNamespace(**{"process_group": "all", "output_dtensor": False, **env}),
        _table_name_to_config={"t": SimpleNamespace(use_virtual_table=virtual), "u": SimpleNamespace()},
    )
    assert reason in shard_metadata.why_not(module)
    assert bool(shard_metadata.why_not(module)) is bool(reason)


def attributes():
    """What the context replaces."""
    kinds = (ShardedEmbeddingCollection, ShardedManagedCollisionCollection)
    return [vars(kind)["_initialize_torch_state"] for kind in kinds] + [
        vars(ShardedTensor)["_init_from_local_shards"]
    ]


def test_afterwards_torchrec_is_as_it_was(bench):
    """Also where the sharding raised."""
    before = attributes()

    def sharding():
        with local_metadata(bench().recorder):
            assert not any(now is then for now, then in zip(attributes(), before, strict=True))
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        sharding()
    assert attributes() == before


def test_another_version_of_torchrec_is_left_alone(bench, monkeypatch):
    monkeypatch.setattr(shard_metadata, "CHECKED_WITH", ("0.9.0",))
    here, before = bench(), attributes()
    with local_metadata(here.recorder):
        assert attributes() == before
    (decision,) = here.of("decision")
    assert decision.what == GATHERED
    assert "was not checked, only 0.9.0" in decision.why
