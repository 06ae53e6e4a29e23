"""Kernels that torch's autotuner tunes, told to a recorder: the tuner is torch's, its measures are given."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ett_core.tuning import advise, tunings_of
from ett_trainer_hooks.recording.tunings import CANDIDATES_KEPT, tuned_kernel

PROGRAM = """
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
from types import SimpleNamespace
import torch, torch._dynamo
from torch._inductor.runtime import triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties, HeuristicType


class Config:
    def __init__(self, block, warps):
        self.kwargs, self.num_warps, self.num_stages, self.pre_hook = {"BLOCK": block}, warps, 2, None


class Launcher:
    cache_hash, n_regs, n_spills, shared = "x", 1, 0, 0

    def __init__(self, config, takes_ms):
        self.config, self.takes_ms = config, takes_ms


class Tuner(triton_heuristics.CachingAutotuner):
    "Torch's own, where there is neither a GPU nor Triton."

    def __init__(self, name, heuristic, takes_ms, own):
        configs = [Config(64 << n, 4) for n in range(len(takes_ms))]
        device = DeviceProperties("cuda", 0, 8, 90, warp_size=32, max_threads_per_block=1024)
        kernel = SimpleNamespace(__name__=name, fn=None, src="")
        super().__init__(
            kernel, {"device": device}, configs, None, [], True, heuristic, custom_kernel=own,
            size_hints={"x": 4096}, inductor_meta={"kernel_name": f"{name}_0"},
        )
        self.launchers = [Launcher(*each) for each in zip(configs, takes_ms)]
        self.precompile_time_taken_ns = 2_000_000_000

    def bench(self, launcher, *_, **__):
        return launcher.takes_ms

    def _ensure_kernel_loaded(self):
        pass

    def _precompile_config(self, config):
        return SimpleNamespace(make_launcher=lambda: Launcher(config, 0.1))


def search(measure, config, _):
    better = Config(96, 8)
    measure(better)
    return better


for takes_ms in ([3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [1.0, 2.0, 3.0]):
    own = Tuner("gather", HeuristicType.USER_AUTOTUNE, takes_ms, own=True)
    own.autotune_to_one_config()
    assert own.coordinate_descent_tuning(own.launchers[0]) is own.launchers[0]
made = Tuner("made", HeuristicType.POINTWISE, [2.0, 1.0], own=False)
made.autotune_to_one_config()
made.coordesc_tuner.autotune = search
assert made.coordinate_descent_tuning(made.launchers[0]).config.kwargs == {"BLOCK": 96}
try:
    Tuner("broken", HeuristicType.USER_AUTOTUNE, [1.0, None], own=True).autotune_to_one_config()
except TypeError:
    pass
recorder.close()
"""


@pytest.mark.service("torch")
def test_journals_tell_which_kernels_were_tuned_for_how_long_and_what_won(start, events_in, tmp_path):
    """A search that does not come to pass, and a tuning that fails, are not told."""
    child = start(PROGRAM, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "caches"), OMP_NUM_THREADS="1")
    _, err = child.communicate(timeout=600)
    assert (child.returncode, b"ettwatch" in err) == (0, False), err.decode()
    (journal,) = (tmp_path / "journal").glob(f"*-{child.pid}.jsonl")
    tunings = tunings_of(event for event in events_in(journal) if event.kind == "cache")
    assert [(each.kernel, each.searched) for each in tunings] == [("gather", False)] * 3 + [("made", True)]
    assert all(each.tuned_s > 2.0 for each in tunings)  # with the seconds that compiling took
    own, made = sorted(advise(tunings), key=lambda kernel: kernel.kernel)
    assert (own.candidates, own.tunings) == (3, 3)
    assert [dict(config)["BLOCK"] for config in own.reduced] == [128, 64]
    assert made.winners == (((("BLOCK", 96), ("num_stages", 2), ("num_warps", 8)), 1),)
    assert made.candidates is None


def config(**fields):
    return SimpleNamespace(kwargs={"BLOCK": 64}, num_warps=4, num_stages=2, **fields)


def tuner(**fields):
    return SimpleNamespace(fn=SimpleNamespace(__name__="k"), custom_kernel=True, **fields)


def test_what_says_nothing_is_left_out_and_what_json_has_not_is_a_text():
    winner = SimpleNamespace(config=config(num_ctas=1, maxnreg=None))
    winner.config.kwargs["TYPE"] = complex(1, 2)
    told = tuned_kernel("tuned", tuner(autotune_time_taken_ns=500_000_000), 9.0, [winner], winner)
    values = {"BLOCK": 64, "TYPE": "(1+2j)", "num_warps": 4, "num_stages": 2}
    assert (told.config, told.candidates, told.tuned_s) == (values, (values,), 0.5)
    winner.config.num_ctas, winner.config.maxnreg = 2, 128
    told = tuned_kernel("tuned", tuner(), 9.0, [], winner)
    assert (told.config, told.tuned_s) == ({**values, "num_ctas": 2, "maxnreg": 128}, 9.0)


def test_a_list_that_is_too_long_is_not_told():
    many = [SimpleNamespace(config=config())] * (CANDIDATES_KEPT + 1)
    assert tuned_kernel("tuned", tuner(), 1.0, many, many[0]).candidates is None
    assert len(tuned_kernel("tuned", tuner(), 1.0, many[1:], many[0]).candidates) == CANDIDATES_KEPT


def test_another_torch_costs_the_fields_that_it_lacks():
    told = tuned_kernel("tuned", object(), 1.5, (), None)
    assert (told.kernel, told.config, told.tuned_s) == ("", {}, 1.5)
    assert tuned_kernel("searched", object(), 1.5, (), None) is None
