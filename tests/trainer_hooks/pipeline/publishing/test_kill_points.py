"""Either side may be killed before any operation on files: the model is published once, whole, or not yet."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("fsspec")

import toy_model

pytestmark = pytest.mark.service("torch")
PROGRAM = Path(__file__).with_name("programs") / "kill_points.py"
IN_MEMORY = "/dev/shm"  # noqa: S108 - where there is one, fsync takes no time
FULL = os.environ.get("ETT_FULL") == "1"
STRIDE = 1 if FULL else 40
"""`ETT_FULL=1` kills before every operation, else before every so many."""


@pytest.fixture(scope="module")
def killed():
    """For each side, what was found after each kill; the last of each got through."""
    paths = [str(Path(toy_model.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None) as place:
        command = [sys.executable, PROGRAM, Path(place) / "root", str(STRIDE)]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("side", ["publisher", "trainer"])
def test_each_side_is_killed_at_many_points_and_gets_through_in_the_end(killed, side):
    assert [each["killed"] for each in killed[side]] == [True] * (len(killed[side]) - 1) + [False]
    assert len(killed[side]) * STRIDE > 40


def test_after_a_killed_publisher_another_one_publishes_and_only_one_model_is_there(killed):
    for each in killed["publisher"]:
        assert (each["published"], each["right"], each["folders"]) == (0, True, 1)


def test_a_killed_publisher_lets_nobody_see_half_a_model(killed):
    for each in killed["publisher"]:
        assert each["seen"] in (None, True)
        assert each["state"] == "done" if not each["killed"] else each["state"] in ("pending", "done")


def test_what_a_killed_trainer_has_anchored_is_handed_over_and_nothing_else(killed):
    for each in killed["trainer"]:
        assert ("pending" in each["states"]) == each["anchored"]
        assert len(each["states"]) <= 1
