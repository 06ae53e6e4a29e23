"""Compilations tied to the relay: what a rank says where it cannot share."""

import sys
from types import ModuleType

import pytest

from ett_trainer_hooks.pipeline.bundle.relay import Leader, is_led
from ett_trainer_hooks.pipeline.bundle.sharing import WHAT, SharedCompiles


@pytest.fixture
def follower(bench, tmp_path):
    """A rank of two, and what it has told."""
    told = bench(rank=1)
    environ = {"LOCAL_RANK": "1", "RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    shared = SharedCompiles(
        told.recorder, cache_dir=tmp_path / "caches", wait_s=60.0, environ=environ, place=tmp_path / "meet"
    )
    yield shared, told
    shared.close()


def compilations(shared, count):
    for _ in range(count):
        shared._compilation_begins()
        shared._compilation_ended()


def why(told):
    return [event.why for event in told.of("decision") if event.what == WHAT]


def test_a_rank_that_is_left_alone_says_so_once_and_waits_no_more(follower, tmp_path):
    shared, told = follower
    Leader(tmp_path / "meet", 0).leave()
    shared.begin()
    compilations(shared, 3)
    assert why(told) == [
        "this rank compiles for itself: local rank 0 is through with compiling and has other graphs"
    ]
    assert told.warnings == []


def test_what_cannot_be_loaded_costs_a_sentence(follower, tmp_path):
    shared, told = follower
    leader = Leader(tmp_path / "meet", 0)
    leader.begin()
    leader.publish(b"no archive", {})
    leader.end()
    shared.begin()
    compilations(shared, 1)
    assert why(told)[0].startswith(
        "what local rank 0 has compiled cannot be loaded: its content is no readable"
    )


def test_nested_compilations_are_part_of_the_outer_one(follower, tmp_path):
    shared, told = follower
    leader = Leader(tmp_path / "meet", 0)
    leader.begin()
    leader.end()
    shared.begin()
    shared._compilation_begins()
    compilations(shared, 2)
    shared._compilation_ended()
    assert why(told) == []
    assert [event.phase for event in told.of("phase_begin")] == ["compile"]


@pytest.mark.parametrize(
    "environ", [{}, {"LOCAL_WORLD_SIZE": "1"}, {"LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "1"}]
)
def test_a_rank_that_is_alone_or_has_its_bundle_meets_nobody(bench, tmp_path, environ):
    told = bench()
    shared = SharedCompiles(
        told.recorder, cache_dir=tmp_path / "caches", environ=environ, place=tmp_path / "meet"
    )
    shared.begin(has_bundle=True)
    compilations(shared, 1)
    shared.over()
    shared.close()
    assert not (tmp_path / "meet").exists()
    assert why(told) == []


def test_a_rank_with_other_graphs_waits_for_one_only(follower, tmp_path, monkeypatch):
    """The leader has not begun its second graph: a rank that still followed would wait for it."""
    shared, told = follower
    utils = ModuleType("torch._dynamo.utils")
    utils.counters = {"inductor": {"fxgraph_cache_miss": 0}}
    monkeypatch.setitem(sys.modules, utils.__name__, utils)
    leader = Leader(tmp_path / "meet", 0)
    leader.begin()
    leader.end()
    shared.begin()
    shared._compilation_begins()
    utils.counters["inductor"]["fxgraph_cache_miss"] += 1
    shared._compilation_ended()
    compilations(shared, 2)
    assert why(told) == ["this rank compiles for itself: its graphs are others than those of local rank 0"]


def test_a_leader_that_cannot_write_any_more_steps_down(bench, tmp_path):
    """Nobody waits for it then, and its job goes on."""
    told, place = bench(), tmp_path / "meet"
    shared = SharedCompiles(
        told.recorder, cache_dir=tmp_path / "caches", environ={"LOCAL_WORLD_SIZE": "2"}, place=place
    )
    shared.begin()
    assert is_led(place)
    (place / "state.json").unlink()
    (place / "state.json").mkdir()
    compilations(shared, 2)
    assert not is_led(place)
    shared.close()
    [reason] = why(told)
    assert reason.startswith("off: ")
    assert told.warnings == []


def test_a_place_of_others_switches_it_off_with_a_reason(bench, tmp_path):
    told = bench()
    (tmp_path / "meet").mkdir()
    (tmp_path / "meet").chmod(0o777)
    shared = SharedCompiles(
        told.recorder,
        cache_dir=tmp_path / "caches",
        environ={"LOCAL_WORLD_SIZE": "2"},
        place=tmp_path / "meet",
    )
    shared.begin()
    compilations(shared, 1)
    shared.close()
    [reason] = why(told)
    assert reason.startswith(f"off: others may write to {tmp_path / 'meet'}")
    assert told.warnings == []
