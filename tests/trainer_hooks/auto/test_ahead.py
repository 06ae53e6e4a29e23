"""A program that knows of no standby gets one all the same: what it has imported is imported ahead."""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from ett_trainer_hooks.auto import ahead

PATIENCE_S = 900.0
"""Until a standby, made on processors that are idle, is there."""
AGENT = """
import os, subprocess, sys
environ = dict(os.environ, LOCAL_RANK="0", RANK="0", WORLD_SIZE="1", TORCHELASTIC_RUN_ID="x")
for start in range(2):
    environ["TORCHELASTIC_RESTART_COUNT"] = str(start)
    rank = subprocess.Popen([sys.executable, *sys.argv[1:]], env=environ, start_new_session=True)
    status = rank.wait()
sys.exit(status)
"""
TRAIN = """
import os, pathlib, signal, sys, time
is_there = "torch" in sys.modules
os.environ["OF_THE_PROGRAM"] = "1"
import torch
print(os.environ["TORCHELASTIC_RESTART_COUNT"], os.getpid(), is_there, flush=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    while not pathlib.Path(os.environ["ETT_STANDBY"], "0.socket").exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)
"""


STANDBY = """
import os, runpy, sys
sys.path.pop(0)
program = sys.argv[1]
from ett_trainer_hooks.auto.ahead import import_ahead
import_ahead('{"OF_THE_PROGRAM": "0"}', "torch", "torch.no_such_module")
del os.environ["ETT_DISABLED"]
sys.argv = [program]
runpy.run_path(program, run_name="__main__")
"""


@pytest.mark.service("torch")
def test_a_program_whose_imports_are_done_is_observed_as_ever(bare, script):
    """What it imports is there, its steps are seen, and it ends as a success."""
    again = {"ETT_DISABLED": "1", "RANK": "0", "LOCAL_RANK": "0", "TORCHELASTIC_RESTART_COUNT": "1"}
    ran = bare(sys.executable, script(STANDBY), script(TRAIN), **again)
    assert ran.status == 0, ran.err
    assert ran.out.split()[::2] == ["1", "True"]
    assert ran.of("progress")[-1].step == 20
    assert [event.status for event in ran.of("attempt_end")] == ["succeeded"]


@pytest.mark.sweep
@pytest.mark.service("torch")
def test_a_restart_of_an_unmodified_program_finds_its_imports_done(ett_run, script, tmp_path):
    """It runs in the standby from its first line, and is observed there as it was before."""
    ran = ett_run(sys.executable, script(AGENT), script(TRAIN), options=("--standby",), limit_s=PATIENCE_S)
    assert ran.status == 0, ran.err
    (_, first, before), (_, second, then) = (line.split() for line in ran.out.splitlines())
    assert (before, then) == ("False", "True")
    (took_over,) = [event.why for event in ran.of("decision") if event.what == "the standby took over"]
    assert took_over.startswith(f"local rank 0: process {second} runs the program of process ")
    assert first != second
    steps = [(event.attempt, event.step) for event in ran.of("progress", 0)]
    assert {attempt for attempt, _ in steps} == {0, 1}
    assert steps[-1] == (1, 20)
    assert len([*tmp_path.glob(f"journal/*-{second}.jsonl")]) == 1
    account = ran.account()
    assert (account.state, len(account.attempts)) == ("succeeded", 2)


@pytest.fixture
def asked(bench, tmp_path):
    """Whether a rank with these variables asks for a standby, and what it tells."""

    def ask(at_import, now):
        told = bench()
        place = {"ETT_STANDBY": str(tmp_path), "LOCAL_RANK": "0"}
        ahead.ask(at_import | place, told.recorder, now | place)
        wanted = tmp_path / "0.wanted"
        return json.loads(wanted.read_bytes()) if wanted.exists() else None, told.of("decision")

    return ask


def test_variables_that_the_program_sets_before_its_imports_are_set_ahead(asked):
    wanted, told = asked({"TORCH_LOGS": "dynamo"}, {"TORCH_LOGS": "dynamo", "SET_LATER": "1"})
    assert wanted["function"] == "ett_trainer_hooks.auto.ahead:import_ahead"
    assert json.loads(wanted["arguments"][0])["TORCH_LOGS"] == "dynamo"
    assert "SET_LATER" not in json.loads(wanted["arguments"][0])
    assert "pytest" in wanted["arguments"]
    assert told == []


def test_variables_that_torch_read_and_that_came_later_are_a_reason_for_none(asked):
    """A standby would have imported torch without them, or with them, and nobody knows which is right."""
    wanted, told = asked({}, {"TORCHINDUCTOR_MAX_AUTOTUNE": "1", "TORCHINDUCTOR_CACHE_DIR": "/x"})
    assert wanted is None
    assert [(event.what, event.why.partition(":")[0]) for event in told] == [
        ("no standby", "TORCHINDUCTOR_MAX_AUTOTUNE")
    ]


def test_modules_of_the_program_and_of_ours_are_not_imported_ahead(tmp_path):
    """Theirs may do anything when they are imported."""

    def module(name, origin):
        made = ModuleType(name)
        made.__spec__ = ModuleSpec(name, None, origin=str(origin))
        return made

    place = Path(pytest.__file__).parents[1]
    modules = {
        "torch": module("torch", place / "torch/__init__.py"),
        "mine": module("mine", tmp_path / "mine.py"),
        "ett_core": module("ett_core", place / "ett_core/__init__.py"),
        "alias": module("torch.nn", place / "torch/nn/__init__.py"),
        "nothing": object(),
    }
    assert ahead.installed(modules) == ["torch"]
