"""What is told of the use of a bundle."""

import pytest

from ett_trainer_hooks.pipeline.bundle.usage import Gain, Use, gain_of, tell_gain, tell_use


@pytest.fixture
def hit(bundle):
    entry, _ = bundle(size=411_824, compile_s=20.0)
    return Use(outcome="hit", why="", entry=entry, load_s=0.5)


def test_a_hit_is_told_with_its_bytes_and_then_with_the_seconds_it_saved(bench, hit):
    told = bench()
    tell_use(told.recorder, hit)
    tell_gain(told.recorder, hit, gain_of(hit, compile_s=1.5, native_s=0.0))
    first, last = told.of("cache")
    assert (first.cache, first.hits, first.misses, first.bypasses) == ("mega_cache", 1, 0, 0)
    assert (first.bytes, first.saved_s, last.bytes, last.saved_s) == (411_824, None, 411_824, 18.0)
    loaded, used = told.of("decision")
    assert loaded.why == "hit: 2 graphs and 1 native files (0.4 MB) of 'dlrm', saved by local rank 0"
    assert loaded.values == {"load_s": 0.5, "bytes": 411_824.0, "graphs": 2.0}
    assert used.why == "compiled for 1.5 s, 18.0 s less than without the bundle"
    assert used.values == {"compile_s": 1.5, "native_s": 0.0, "saved_s": 18.0}


@pytest.mark.parametrize("outcome", ["miss", "bypass"])
def test_a_miss_and_a_bypass_are_told_with_their_reason(bench, outcome):
    told = bench()
    use = Use(outcome=outcome, why="there is none yet")
    tell_use(told.recorder, use)
    tell_gain(told.recorder, use, gain_of(use, compile_s=16.0, native_s=20.0))
    last = told.of("cache")[-1]
    assert (last.hits, last.misses, last.bypasses) == (0, int(outcome == "miss"), int(outcome == "bypass"))
    assert (last.bytes, last.saved_s) == (0, 0.0)
    assert [event.why for event in told.of("decision")] == [
        f"{outcome}: there is none yet",
        "compiled for 16.0 s",
    ]


def test_a_bundle_that_cost_more_than_it_spared_has_saved_nothing(hit):
    assert gain_of(hit, compile_s=30.0, native_s=40.0) == Gain(30.0, 40.0, 0.0)
    assert gain_of(hit, compile_s=30.0, native_s=40.0).sentence() == "compiled for 30.0 s"


def test_the_compiler_leaves_this_cache_to_the_bundle(bench, hit):
    told = bench()
    assert told.recorder.caches_told_apart == set()
    tell_use(told.recorder, hit)
    assert told.recorder.caches_told_apart == {"mega_cache"}
