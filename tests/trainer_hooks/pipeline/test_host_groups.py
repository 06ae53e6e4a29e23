"""Process groups of hosts: the same as TorchRec's, fewer of them made, none twice."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchrec")

from gloo_ranks import run_ranks

from ett_trainer_hooks.pipeline.host_groups import LEFT, MADE, members

pytestmark = pytest.mark.service("torch")

PROGRAM = Path(__file__).with_name("programs") / "host_groups.py"


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What two ranks found that take themselves for hosts."""
    return run_ranks(PROGRAM, tmp_path_factory.mktemp("groups"), LOCAL_WORLD_SIZE="1")


@pytest.mark.parametrize(
    ("way", "groups", "calls"),
    [
        ("torchrec", 3, {"barrier": 2}),
        ("members", 2, {"all_reduce": 1}),
        ("twice", 2, {"all_reduce": 1}),
        ("mesh", 0, {"all_reduce": 1}),
        ("uneven", 3, {"all_reduce": 1, "barrier": 2}),
    ],
)
def test_torchrec_gets_the_same_ranks_however_they_are_made(ranks, way, groups, calls):
    """And makes none of its own afterwards; a collective on each adds up its members."""
    for number, rank in enumerate(ranks):
        found = rank[way]
        assert found["ranks"] == [[number], [0, 1]]
        assert found["sums"] == [10 + number, 21]
        assert (found["groups"], found["calls"], found["later"]) == (groups, calls, {})


def test_what_was_made_is_told(ranks):
    """With what TorchRec would have made, and why it was left to it."""
    for rank in ranks:
        assert rank["members"]["told"] == [
            [
                MADE,
                "2 made, 0 of the mesh; TorchRec would make 3 on each rank",
                {"made": 2, "reused": 0, "of_torchrec": 3},
            ]
        ]
        assert rank["mesh"]["told"][0][2] == {"made": 0, "reused": 2, "of_torchrec": 3}
        ((what, why, _),) = rank["uneven"]["told"]
        assert what == LEFT
        assert "different numbers of groups" in why


def test_every_rank_is_in_the_groups_of_its_members():
    """Whoever is in a group agrees on who else is: no rank waits for one that makes another."""
    assert members(3, 6, 2) == ((2, 3), (1, 3, 5))
    world, size = 12, 4
    for rank in range(world):
        for which, ranks in enumerate(members(rank, world, size)):
            assert rank in ranks
            assert {members(other, world, size)[which] for other in ranks} == {ranks}
