"""The adapter to torch's private parts, with each of them there and taken away; docstrings; steps."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import ett_trainer_hooks.auto
from ett_trainer_hooks.auto import torch_private
from ett_trainer_hooks.auto.recorder import AutomaticRecorder
from ett_trainer_hooks.auto.torch_private import Totals
from ett_trainer_hooks.auto.watch import Watch, steps_before

NAMES = [
    each.name for each in pkgutil.iter_modules(ett_trainer_hooks.auto.__path__) if each.name != "__main__"
]


class Context:
    _metrics = {"recompile_reason": "size 3 is not 4"}  # noqa: RUF012 - as torch's


@pytest.fixture
def utils():
    """What the adapter reads in torch._dynamo.utils."""
    module = ModuleType("torch._dynamo.utils")
    module.counters = {"inductor": {"fxgraph_cache_hit": 2, "fxgraph_cache_miss": 1}}
    module.compilation_time_metrics = {"bytecode_tracing": [0.5, 0.25], "compile_file": [2.0]}
    module.get_metrics_context = Context
    return module


def read(utils):
    modules = {"torch._dynamo.utils": utils}
    return (
        torch_private.cache_totals(modules),
        torch_private.stage_seconds(modules),
        torch_private.recompile_reason(modules),
    )


def test_everything_is_read_where_it_is(utils):
    """Caches, stages and the reason."""
    caches = {"fx_graph": Totals(2, 1, 0), "aot_autograd": Totals()}
    assert read(utils) == (caches, {"dynamo": 0.75, "native": 2.0}, "size 3 is not 4")


@pytest.mark.parametrize("name", ["counters", "compilation_time_metrics", "get_metrics_context"])
def test_an_attribute_taken_away_costs_its_figure_only(utils, name):
    """The others are read as before."""
    whole = read(utils)
    delattr(utils, name)
    lost = ["counters", "compilation_time_metrics", "get_metrics_context"].index(name)
    for index, figure in enumerate(read(utils)):
        assert figure == whole[index] if index != lost else not figure


def test_without_torch_there_is_nothing_to_read():
    """No module, no error."""
    assert read(None) == ({}, {}, None)
    assert torch_private.iterator_class(ModuleType("dataloader")) is None
    assert torch_private.gradient_version(object()) == 0
    assert torch_private.compile_id(object()) == ""


@pytest.mark.parametrize("name", ["on_compile_start", "on_compile_end"])
def test_callbacks_come_in_pairs_or_not_at_all(name):
    """A torch with one of the two is followed by neither."""
    module = ModuleType("torch._dynamo.callback")
    called = []
    module.on_compile_start = module.on_compile_end = called.append
    assert torch_private.follow_compilations(module, print, print)
    delattr(module, name)
    called.clear()
    assert not torch_private.follow_compilations(module, print, print)
    assert called == []


@pytest.mark.service("torch")
def test_the_installed_torch_has_all_that_is_read():
    """A torch without one of these would cost figures silently; here it is said."""
    utils = importlib.import_module("torch._dynamo.utils")
    callback = importlib.import_module("torch._dynamo.callback")
    assert all(hasattr(utils, name) for name in ("counters", "compilation_time_metrics"))
    assert isinstance(utils.get_metrics_context()._metrics, dict)
    assert callable(callback.on_compile_start)
    assert torch_private.iterator_class(importlib.import_module("torch.utils.data.dataloader")) is not None


@pytest.mark.parametrize("name", NAMES)
def test_what_a_docstring_shows_is_what_happens(name):
    """Every example in the text of a module gives the answer that stands there."""
    assert doctest.testmod(importlib.import_module(f"ett_trainer_hooks.auto.{name}")).failed == 0


class Optimizer:
    """What the watch reads of an optimizer."""

    def __init__(self, count=None):
        self.param_groups = [{"params": ["weight"]}]
        self.state = {} if count is None else {"weight": {"step": count}}


@pytest.mark.parametrize(("order", "steps"), [("aaa", 3), ("abab", 2), ("aab", 2), ("abcabca", 3)])
def test_several_optimizers_of_a_batch_are_one_step(order, steps):
    """The one that repeats begins the next step."""
    watch = Watch(AutomaticRecorder(), {})
    optimizers = {letter: Optimizer() for letter in order}
    for letter in order:
        watch.stepped(optimizers[letter])
    assert watch.recorder.step == steps


@pytest.mark.parametrize(("count", "before"), [(None, None), (1, None), (101.0, 100)])
def test_the_optimizers_own_count_tells_where_training_resumed(count, before):
    """No count, or a fresh one, tells nothing."""
    assert steps_before(Optimizer(count)) == before
