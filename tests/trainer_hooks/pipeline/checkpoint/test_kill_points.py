"""A save may be killed before any operation on files: what was published before, or the new one, is there."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import kill_at
import pytest

PROGRAM = Path(__file__).with_name("programs") / "kill_points.py"
IN_MEMORY = "/dev/shm"  # noqa: S108 - where there is one, fsync takes no time


@pytest.fixture(scope="module")
def killed():
    """For each kind of save, what was found after each kill; the last save of a kind was let through."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None) as place:
        command = [sys.executable, PROGRAM, Path(place) / "checkpoints"]
        paths = [str(Path(kill_at.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def parts(content):
    return [f"{content} 0", f"{content} 1"]


@pytest.mark.parametrize("kind", ["next", "again"])
def test_saves_are_killed_at_many_points_and_one_gets_through(killed, kind):
    assert [each["killed"] for each in killed[kind]] == [True] * (len(killed[kind]) - 1) + [False]
    assert len(killed[kind]) > 15


def test_the_next_step_is_there_whole_or_the_one_before_it_is(killed):
    held = [each["held"] for each in killed["next"]]
    published = held.index(parts(300))
    assert held == [parts(200)] * published + [parts(300)] * (len(held) - published)
    assert 0 < published < len(held) - 1


def test_a_step_saved_again_holds_what_it_did_or_what_it_does_now(killed):
    held = [each["held"] for each in killed["again"]]
    published = held.index(parts(201))
    assert held == [parts(200)] * published + [parts(201)] * (len(held) - published)
    assert 0 < published < len(held) - 1


@pytest.mark.parametrize("kind", ["next", "again"])
def test_a_kill_leaves_nothing_that_looks_damaged_and_no_litter(killed, kind):
    for each in killed[kind]:
        assert each["passed_over"] == []
        assert [name for name in each["left"] if name not in ("latest", f"step_{each['step']}")] == [
            "step_900"
        ]
