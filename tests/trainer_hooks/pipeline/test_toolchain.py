"""The native compiler made ready beside the start: real g++, empty caches."""

import json
import shutil

import pytest

from ett_trainer_hooks.pipeline.toolchain import TRUST, trust_processor

TIMEOUT_S = 600

READY = """
import json, sys, threading
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import toolchain

toolchain.trust_processor()
import torch

before = torch.random.get_rng_state()
ready = []
thread = threading.Thread(target=lambda: ready.append(toolchain.prepare(Recorder.from_env())))
thread.start()
thread.join()
unchanged = torch.equal(before, torch.random.get_rng_state())
builder = torch._inductor.cpp_builder.CppBuilder
built, build = [], builder.build

def counted(self):
    built.append(self._target_file)
    return build(self)

builder.build = counted
torch.compile(lambda x: torch.relu(x) + 1)(torch.zeros(64, 64))
print(json.dumps({"ready": ready, "unchanged": unchanged, "built": built}))
"""

FAILS = """
import json, os
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import toolchain

toolchain.trust_processor()
import torch

recorder = Recorder.from_env()
ready = toolchain.prepare(recorder)
trusted = torch._inductor.config.cpp.vec_isa_ok
toolchain.distrust_processor()
recorder.close()
print(json.dumps([ready, trusted, torch._inductor.config.cpp.vec_isa_ok, toolchain.TRUST in os.environ]))
"""

pytestmark = [
    pytest.mark.service("torch"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no native compiler here"),
]


def told(start, program, tmp_path, **environ):
    """What a program prints that starts without any cache."""
    places = {"TMPDIR": tmp_path / "tmp", "TORCHINDUCTOR_CACHE_DIR": tmp_path / "cache"}
    places["TMPDIR"].mkdir()
    made = start(program, **{name: str(place) for name, place in places.items()}, **environ)
    out, err = made.communicate(timeout=TIMEOUT_S)
    assert made.returncode == 0, err.decode()
    return json.loads(out)


def test_the_first_compilation_only_builds_its_own_kernel(start, tmp_path):
    """No trial of an instruction set and no header is left to do; random numbers go on as they would have."""
    found = told(start, READY, tmp_path)
    assert (found["ready"], found["unchanged"]) == ([True], True)
    (kernel,) = [path for path in found["built"] if path.endswith(".so")]
    assert "main" in kernel
    assert not [path for path in found["built"] if path.endswith(".gch")]
    assert len(list((tmp_path / "tmp").rglob("*.gch"))) == 1


def test_a_compiler_that_fails_is_told_and_torch_tries_again(start, tmp_path, events_in):
    """The trainer goes on; the processor is no longer taken at its word."""
    assert told(start, FAILS, tmp_path, CXX=shutil.which("false")) == [False, True, None, False]
    (decision,) = [event for event in events_in(tmp_path / "journal") if event.kind == "decision"]
    assert decision.what == "native compiler"
    assert decision.why.startswith("not ready: ")


def test_what_the_environment_says_of_the_processor_stays():
    """Somebody who set torch's switch knows why."""
    environ = {TRUST: "0"}
    trust_processor(environ)
    assert environ == {TRUST: "0"}
