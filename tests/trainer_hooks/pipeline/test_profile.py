"""Sizes that an earlier start of the job has seen: real torch, a fresh process a start."""

import json

import pytest

from ett_trainer_hooks.pipeline.profile import NAMES, added, keep
from ett_trainer_hooks.recording.compiling import BARE_WORDS

TIMEOUT_S = 600

START = """
import json
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline import profile

recorder = Recorder.from_env()
kept = profile.keep(recorder)
import torch
import torch._dynamo.testing

class Own(torch.nn.Module):
    def forward(self, x):
        return x * 2

class Under(Own):
    def forward(self, x):
        return super().forward(x) + 1

graphs = {}
bare = torch.nn.Sequential(torch.nn.ReLU())
for name, module in {"own": Own(), "bare": bare, "under": Under()}.items():
    count = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(module, backend=count)
    for size in (8, 9, 10):
        compiled(torch.zeros(size, 4))
    graphs[name] = count.frame_count
profile.tell(recorder)
recorder.close()
print(json.dumps({"kept": kept, "graphs": graphs}))
"""


class Told:
    """Takes decisions."""

    def __init__(self):
        self.why = []

    def decision(self, what, why, values):
        assert (what, values) == ("profile", {})
        self.why.append(why)


@pytest.mark.service("torch")
def test_the_second_start_compiles_once_what_the_first_compiled_twice(start, tmp_path, events_in):
    """Except a bare nn.Sequential, told in each start, and what has a closure, from the second on."""
    graphs = []
    for number in (1, 2):
        made = start(START, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"), ETT_ATTEMPT=str(number))
        out, err = made.communicate(timeout=TIMEOUT_S)
        assert made.returncode == 0, err.decode()
        found = json.loads(out)
        assert found["kept"]
        graphs.append(found["graphs"])
    assert graphs == [{"own": 2, "bare": 2, "under": 2}, {"own": 1, "bare": 2, "under": 2}]
    told = [event for event in events_in(tmp_path / "journal") if event.kind == "decision"]
    assert {event.what for event in told} == {"profile"}
    warnings = [event.attempt for event in told if event.why == BARE_WORDS]
    assert sorted(warnings) == [1, 2]
    (lost,) = [event for event in told if event.why != BARE_WORDS]
    assert lost.attempt == 2
    assert ":forward" in lost.why
    assert "without super()" in lost.why
    assert lost.values == {"not_found": 1.0}


@pytest.mark.parametrize("job_id", ["1", "0", "mast:a:1", "slurm-77"])
def test_the_name_of_the_job_is_one_that_torch_takes_for_a_name(job_id):
    told, environ = Told(), {"ETT_JOB_ID": job_id}
    assert keep(told, environ, {})
    assert environ[NAMES[0]] == f"ett:{job_id}"
    assert told.why == []


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_the_user_gave_stays(name):
    environ = {"ETT_JOB_ID": "j", name: "mine"}
    assert keep(Told(), environ, {})
    assert environ == {"ETT_JOB_ID": "j", name: "mine"}


def test_without_a_job_nothing_is_kept_and_it_says_so():
    told, environ = Told(), {}
    assert not keep(told, environ, {})
    assert environ == {}
    assert told.why[0].startswith("not kept: ETT_JOB_ID is not set")


def test_after_the_import_of_torch_it_is_too_late_and_it_says_so():
    told, environ = Told(), {"ETT_JOB_ID": "j"}
    assert not keep(told, environ, {"torch.compiler.config": object()})
    assert NAMES[0] not in environ
    assert "torch was imported before" in told.why[0]


class Code:
    """A frame that torch tells apart by more than its name."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


def test_a_frame_is_lost_where_it_is_there_once_more_than_before():
    old, new, other = Code("a.py:1:f"), Code("a.py:1:f"), Code("b.py:2:g")
    assert added({old: 0, other: 0}, {old: 0, new: 0, other: 0}) == ("a.py:1:f",)
    assert added({old: 0}, {old: 0, other: 0}) == ()
