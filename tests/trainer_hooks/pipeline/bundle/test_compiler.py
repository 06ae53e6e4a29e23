"""What is given to torch beside its own artifacts."""

import sys
from types import ModuleType

import pytest

from ett_trainer_hooks.pipeline.bundle.compiler import (
    number,
    profile_name,
    spare_header,
    take_over_profiles,
)


@pytest.fixture
def cache(tmp_path):
    """A cache directory with the sizes that rank 0 has seen."""
    (tmp_path / "dynamo").mkdir()
    (tmp_path / "dynamo" / profile_name("job:0:")).write_bytes(b"sizes of rank 0")
    return tmp_path


def test_a_rank_takes_over_the_sizes_that_another_has_seen(cache):
    take_over_profiles(["job:0:"], 0, cache, 3)
    assert (cache / "dynamo" / "code_state_job_3_.pkl").read_bytes() == b"sizes of rank 0"


def test_a_rank_keeps_what_it_knows_itself(cache):
    own = cache / "dynamo" / "code_state_job_3_.pkl"
    own.write_bytes(b"own")
    take_over_profiles(["job:0:"], 0, cache, 3)
    assert own.read_bytes() == b"own"


@pytest.mark.parametrize("key", ["job:None:", "job:1:", "other:0:"])
def test_sizes_that_are_not_there_or_of_no_rank_are_left(cache, key):
    take_over_profiles([key], 0, cache, 3)
    assert len(list((cache / "dynamo").iterdir())) == 1


@pytest.mark.parametrize(("text", "value"), [("3", 3), ("", 7), ("x", 7), ("-1", 7)])
def test_a_number_of_the_environment(text, value):
    assert number({"LOCAL_RANK": text}, "LOCAL_RANK", 7) == value


@pytest.fixture
def compiler(monkeypatch):
    """Torch's compiler as far as it is asked: its counters, and what makes the header of all kernels."""
    utils, codecache = ModuleType("torch._dynamo.utils"), ModuleType("torch._inductor.codecache")
    utils.counters = {"inductor": {}}
    codecache._precompile_header = lambda header, command, **options: (
        f"made of {header} by {command}, {options}"
    )
    for module in (utils, codecache):
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def header():
        return codecache._precompile_header("prefix.h", "g++", device_type="cpu")

    return header, utils.counters["inductor"]


@pytest.mark.parametrize("counter", ["fxgraph_cache_miss", "fxgraph_cache_bypass"])
def test_the_header_is_made_once_a_graph_has_to_be_compiled(compiler, counter):
    """Until then torch only looks for code, and the header as it is would do."""
    header, counters = compiler
    spare_header()
    spare_header()
    counters["fxgraph_cache_hit"] = 3
    assert header() == "prefix.h"
    counters[counter] = 1
    assert header() == "made of prefix.h by g++, {'device_type': 'cpu'}"


def test_a_torch_without_such_a_header_stays_as_it_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch._inductor.codecache", ModuleType("torch._inductor.codecache"))
    spare_header()
    assert not hasattr(sys.modules["torch._inductor.codecache"], "_precompile_header")
