"""A writer that stands still at any point of a save, and is overtaken, publishes nothing once it goes on."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import kill_at
import pytest

PROGRAM = Path(__file__).with_name("programs") / "stop_points.py"
IN_MEMORY = "/dev/shm"  # noqa: S108 - where there is one, fsync takes no time
KINDS = [f"{step} {moment}" for step in (300, 200) for moment in ("found", "saving", "saved")]
"""The next step, or one that is saved again; where the later writer is when the earlier one goes on."""
LOST = 7
STRIDE = 1 if os.environ.get("ETT_FULL") == "1" else 3
"""`ETT_FULL=1` stops at every point for every kind, else at a third of them, at another for each moment."""


@pytest.fixture(scope="module")
def stopped():
    """For each kind, what came of it at the points at which the earlier writer has stood still."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None) as place:
        command = [sys.executable, PROGRAM, Path(place) / "checkpoints", str(STRIDE), *KINDS]
        paths = [str(Path(kill_at.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_that_the_earlier_writer_goes_on_changes_nothing(stopped, kind):
    assert len(stopped[kind]) * STRIDE > 30
    for number, each in enumerate(stopped[kind], start=1):
        assert each["after"] == each["before"], number
        assert each["before"] == each["last" if kind.endswith("saved") else "found"], number
        assert each["found"]["content"] in {"earlier 200", "earlier at last"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_earlier_writer_learns_it_or_had_published_before_it_was_overtaken(stopped, kind):
    published = [each["found"]["content"] == "earlier at last" for each in stopped[kind]]
    assert published == sorted(published)
    assert (published[0], published[-1]) == (False, True)
    for number, (was, each) in enumerate(zip(published, stopped[kind], strict=True), start=1):
        assert each["ended"] in ({0, LOST} if was else {LOST}), number


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_later_start_saves_is_whole_and_the_newest(stopped, kind):
    step = kind.partition(" ")[0]
    for number, each in enumerate(stopped[kind], start=1):
        assert (each["last"]["content"], each["latest"]) == ("later", f"step_{step}"), number
        assert each["left"] == ["latest", f"step_{step}", "step_900"], number
