"""The adapter to torch's private parts: what it reads, with each part there and taken away."""

from __future__ import annotations

import ast
import doctest
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import ett_trainer_hooks
from ett_trainer_hooks import torch_private
from ett_trainer_hooks.recording import compiling
from ett_trainer_hooks.torch_private import FIELDS, SEAMS, Seam, Totals

PACKAGE = Path(ett_trainer_hooks.__file__).parent
ADAPTER = PACKAGE / "torch_private.py"

THE_JOBS_OWN = {
    "reference/model.py": ["torch.distributed.optim._apply_optimizer_in_backward"],
    "reference/notes.py": ["torch.fx._symbolic_trace"],
}
"""What the reference trainer uses to train, in the way of TorchRec's own examples; and a logger's name."""

READ_ALL = """
import json, sys
import torch
import torch._inductor.codecache, torch._inductor.config, torch._inductor.remote_cache
from torch._inductor.runtime import triton_heuristics
from torch.utils.data import dataloader
from ett_trainer_hooks import torch_private
from ett_trainer_hooks.torch_private import SEAMS


class Without:
    "Something of torch's, or a module, without what lies at a path."

    def __init__(self, thing, path):
        self.__dict__.update(thing=thing, path=path)

    def __getattr__(self, name):
        if self.path == [name]:
            raise AttributeError(name)
        found = getattr(self.thing, name)
        return Without(found, self.path[1:]) if self.path[:1] == [name] else found


class Heard:
    def __init__(self):
        self.begun, self.ended, self.frames = [], 0, []

    def begin(self, graph):
        self.begun.append(graph)

    def frame(self, told):
        self.frames.append(told[0].co_name)

    def end(self, error):
        self.ended += 1
        self.reason = torch_private.recompile_reason(self.modules)


def read(modules):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._inductor.remote_cache.cache_stats._stats.clear()
    torch._inductor.remote_cache.cache_stats.hit("LocalAutotuneCache", 3)
    install = torch._dynamo.callback.callback_handler.install_callbacks
    make = torch._dynamo.guards.CheckFunctionManager.__init__
    heard = Heard()
    heard.modules = modules
    followed = torch_private.follow_compilations(heard.begin, heard.end, modules)
    torch_private.follow_frames(heard.frame, modules)
    double = torch.compile(lambda tensor: tensor * 2, backend="aot_eager")
    before = torch_private.entry_seconds(modules)
    for kind in (torch.float32, torch.float64):
        double(torch.ones(3, dtype=kind))
    torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"] += 2
    torch._dynamo.callback.callback_handler.install_callbacks = install
    torch._dynamo.guards.CheckFunctionManager.__init__ = make
    return {
        "followed": followed,
        "begun": heard.begun,
        "ended": heard.ended,
        "frames": heard.frames,
        "reason": getattr(heard, "reason", None),
        "stages": sorted(torch_private.stage_seconds(before, torch_private.entry_seconds(modules))),
        "caches": {name: answers.hits for name, answers in torch_private.cache_totals(modules).items()},
        "iterators": torch_private.iterator_class(modules) is dataloader._BaseDataLoaderIter,
        "tunings": followed_tunings(modules),
        "settings": [name for name in SETTINGS if torch_private.put(name, True, modules)],
        "artifacts": loaded(torch_private.merged_artifacts(saved_twice(), modules)),
    }


SETTINGS = ("header_maker", "instructions_ok")


def followed_tunings(modules):
    "The seams of tunings that are followed; what torch has there is as before afterwards."
    tuner = triton_heuristics.CachingAutotuner
    before = dict(vars(tuner))
    followed = torch_private.follow_tunings(print, modules)
    for name in [name for name in before if vars(tuner)[name] is not before[name]]:
        setattr(tuner, name, before[name])
    return followed


def saved_twice():
    "Artifacts of a process that saved after each of two compilations."
    from torch.compiler._cache import CacheArtifactManager
    with CacheArtifactManager.with_fresh_cache():
        for key in ("first", "second"):
            CacheArtifactManager.record_artifact("inductor", key, b"code")
            data, _ = CacheArtifactManager.serialize()
    return data


def loaded(data):
    from torch.compiler._cache import CacheArtifactManager
    return [artifact.key for artifact in CacheArtifactManager.deserialize(data)["inductor"]]


def is_there(seam):
    found, path = sys.modules[seam.module], seam.path.split(".")
    for name in path[:-1]:
        found = getattr(found, name)
    return hasattr(found, path[-1])


torch.compile(lambda tensor: tensor + 1, backend="aot_eager")(torch.ones(2))
missing = [name for name, seam in SEAMS.items() if not is_there(seam)]
assert not missing, f"of torch's parts these are not there: {missing}"
told = {"": read(sys.modules)}
for name, seam in SEAMS.items():
    bare = Without(sys.modules[seam.module], seam.path.split("."))
    told[name] = read({**sys.modules, seam.module: bare})
print(json.dumps(told))
"""

WHOLE = {
    "followed": True,
    "begun": ["1/0", "1/1"],
    "ended": 2,
    "frames": ["<lambda>", "<lambda>"],
    "stages": ["aot_autograd", "dynamo"],
    "caches": {"fx_graph": 2, "autotune": 3, "pgo": 1},
    "iterators": True,
    "tunings": ["tuned", "searched", "searched_together"],
    "settings": ["header_maker", "instructions_ok"],
    "artifacts": ["first", "second"],
}
LOST = {
    "around": {},
    "on_start": {},
    "on_end": {},
    "counters": {"caches": {"autotune": 3, "pgo": 1}},
    "times": {"stages": []},
    "context": {"reason": None},
    "guards": {"frames": []},
    "remote": {"caches": {"fx_graph": 2, "pgo": 1}},
    "tuned": {"tunings": ["searched", "searched_together"]},
    "searched": {"tunings": ["tuned", "searched_together"]},
    "searched_together": {"tunings": ["tuned", "searched"]},
    "profile": {"caches": {"fx_graph": 2, "autotune": 3}},
    "profile_found": {"caches": {"fx_graph": 2, "autotune": 3, "pgo": 0}},
    "profile_key": {},
    "precompile_headers": {},
    "header_maker": {"settings": ["instructions_ok"]},
    "instructions_ok": {"settings": ["header_maker"]},
    "artifact_list": {"artifacts": ["second"]},
    "artifact_reader": {"artifacts": ["second"]},
    "artifact_writer": {"artifacts": ["second"]},
    "kernel_builder": {},
    "any_size": {},
    "iterators": {"iterators": False},
}


@pytest.mark.service("torch")
def test_each_part_of_the_installed_torch_taken_away_costs_what_is_declared(start, tmp_path):
    """With everything there all is read; without one part its figure is missing and nothing else changes.

    A torch that renames a part would cost figures silently; here it fails.
    """
    made = start(
        READ_ALL,
        TORCH_COMPILE_JOB_ID="job",
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "caches"),
        OMP_NUM_THREADS="1",
    )
    out, err = made.communicate(timeout=120)
    assert made.returncode == 0, err.decode()
    told = json.loads(out)
    whole = told.pop("")
    assert "dtype mismatch" in whole["reason"]
    assert whole.keys() == {*WHOLE, "reason"}
    assert told.keys() == LOST.keys() == SEAMS.keys()
    for name, read in told.items():
        assert shape(read) == shape({**whole, **LOST[name]}), name


def shape(read):
    """What was read, without the number that torch gives a function."""
    return {**read, "begun": len(read["begun"])}


def test_without_torch_there_is_nothing_to_read():
    """No module, no error."""
    assert all(torch_private.part(name, {}) is None for name in SEAMS)
    assert torch_private.cache_totals({}) == {}
    assert torch_private.entry_seconds({}) == {}
    assert not torch_private.put("instructions_ok", None, {})
    assert torch_private.merged_artifacts(b"as it was", {}) == b"as it was"
    assert torch_private.recompile_reason({}) is None
    assert torch_private.iterator_class({}) is None
    assert not torch_private.follow_compilations(print, print, {})
    assert not torch_private.follow_frames(print, {})
    assert torch_private.follow_tunings(print, {}) == []
    assert torch_private.tensor_version(object()) == 0
    assert torch_private.compilation_name((object(),)) == ""


def test_a_torch_that_only_has_the_old_callbacks_is_followed_by_them():
    """Up to 2.6 they come without an argument; one of the two alone is followed by neither."""
    callback = ModuleType("torch._dynamo.callback")
    starts, ends = [], []
    callback.on_compile_start, callback.on_compile_end = starts.append, ends.append
    heard = []
    modules = {"torch._dynamo.callback": callback}
    assert torch_private.follow_compilations(heard.append, heard.append, modules)
    starts[0]()
    starts[0](SimpleNamespace(compile_id="2/1"))
    ends[0]()
    assert heard == ["", "2/1", None]
    del callback.on_compile_end
    assert not torch_private.follow_compilations(heard.append, heard.append, modules)
    assert len(starts) == 1


class Uncounted:
    """A tensor made in inference mode, which refuses to tell its version."""

    @property
    def _version(self):
        raise RuntimeError("inference tensors do not track version counter")


def test_a_tensor_that_refuses_to_tell_its_version_has_none():
    """No fault comes of it."""
    assert torch_private.tensor_version(Uncounted()) == 0
    assert torch_private.tensor_version(SimpleNamespace(_version=3)) == 3


def test_answers_are_added_up_by_cache_and_requests_told_apart():
    """Counters of the bundles and the profile of sizes; remote requests beside the local answers."""
    utils = ModuleType("torch._dynamo.utils")
    utils.counters = {
        "inductor": {
            "fxgraph_cache_hit": 2,
            "triton_bundler_read_and_emit_kernel": 4,
            "triton_bundler_save_static_autotuner": 1,
            "fxgraph_lookup_write_file": 2,
        },
        "aot_autograd": {"autograd_cache_bypass": 1},
    }
    stat = SimpleNamespace
    stats = {
        "RemoteFxGraphCache": stat(hit=1, miss=2, put=2),
        "LocalAutotuneCache": stat(hit=3, miss=1, put=1),
        "RemoteAutotuneCache": stat(hit=1, miss=0, put=0),
    }
    remote = ModuleType("torch._inductor.remote_cache")
    remote.cache_stats = SimpleNamespace(_stats=stats)
    profile = ModuleType("torch._dynamo.pgo")
    profile._CODE_STATE, profile._INIT_CODE_STATE, profile.get_cache_key = {}, None, lambda: "job"
    modules = {module.__name__: module for module in (utils, remote, profile)}
    assert torch_private.cache_totals(modules) == {
        "fx_graph": Totals(2, 0, 0, 5),
        "aot_autograd": Totals(0, 0, 1),
        "triton_bundle": Totals(4, 1, 0),
        "mega_cache": Totals(2, 0, 0),
        "pgo": Totals(0, 1, 0),
        "autotune": Totals(4, 1, 0, 1),
    }
    profile.get_cache_key = lambda: None
    assert "pgo" not in torch_private.cache_totals(modules)


def private_names(path):
    """Names of torch's private modules and attributes in a file, as attributes, imports or texts."""
    for node in ast.walk(ast.parse(path.read_text())):
        texts = []
        if isinstance(node, ast.Attribute):
            texts = [ast.unparse(node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            texts = [node.value]
        elif isinstance(node, ast.Import):
            texts = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            texts = [f"{node.module}.{name.name}" for name in node.names]
        for text in texts:
            if text.split(".")[0] == "torch" and any(part.startswith("_") for part in text.split(".")[1:]):
                yield text


def test_nobody_else_reads_what_torch_keeps_private():
    """A private name of torch outside the adapter fails here: declare it as a seam."""
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if path != ADAPTER and (names := list(private_names(path)))
    }
    assert found == THE_JOBS_OWN


def test_the_scan_finds_private_reads(tmp_path):
    """Attributes, imports and names in texts."""
    lines = [
        "import torch._dynamo",
        "from torch import _inductor",
        "torch._C.x",
        "x['torch._guards']",
        "torch.optim",
    ]
    (tmp_path / "program.py").write_text("\n".join(lines))
    assert {*private_names(tmp_path / "program.py")} == {
        "torch._dynamo",
        "torch._inductor",
        "torch._C",
        "torch._C.x",
        "torch._guards",
    }


def test_the_adapter_reads_declared_names_only():
    """In it a module of torch stands in its table, and a field in its list."""
    declared = {seam.module for seam in SEAMS.values() if "._" in seam.module} | {torch_private.COMPILER}
    assert {*private_names(ADAPTER)} == declared
    names = [
        node.args[1].value
        for node in ast.walk(ast.parse(ADAPTER.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr")
        if isinstance(node.args[1], ast.Constant)
    ]
    assert sorted(names) == ["__next__", "disable"]
    with pytest.raises(KeyError):
        torch_private.field(object(), "_undeclared")
    assert all(isinstance(seam, Seam) and seam.lost for seam in SEAMS.values())
    assert len({*FIELDS}) == len(FIELDS)


def test_the_page_names_each_part_and_what_is_lost_without_it():
    """docs/automatic.md holds the table as it is."""
    page = (Path(__file__).parents[2] / "docs/automatic.md").read_text()
    rows = [f"| `{seam.module}.{seam.path}` | {seam.lost} |" for seam in SEAMS.values()]
    assert [row for row in rows if row not in page] == []


@pytest.mark.parametrize("module", [torch_private, compiling])
def test_what_a_docstring_shows_is_what_happens(module):
    """Every example in the text of a module gives the answer that stands there."""
    assert doctest.testmod(module).failed == 0
