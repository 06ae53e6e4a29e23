"""What the package offers and how it is laid out; the two lines in a plain loop."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import ett_trainer_hooks

ROOT = Path(__file__).parents[2]
PARTS = [each.name for each in pkgutil.iter_modules(ett_trainer_hooks.__path__)]


@pytest.mark.parametrize("name", PARTS)
def test_each_part_of_the_hooks_stands_in_the_map_for_contributors(name):
    """A folder or file that is new gets its line there."""
    assert f"`{name}" in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_package_offers_the_recorder_and_nothing_else():
    """What is public is said so."""
    assert ett_trainer_hooks.__all__ == ["Recorder"]


@pytest.mark.service("torch")
def test_two_lines_adopt_a_plain_loop_and_change_nothing_it_learns(trainer_env, events_in, tmp_path):
    """Observed, switched off and alone the program ends with the same loss; observed, it tells its steps."""
    words = [sys.executable, str(ROOT / "examples/two_lines/train.py"), "--steps", "50"]
    observed = {**trainer_env, "OMP_NUM_THREADS": "1"}
    alone = {name: text for name, text in observed.items() if not name.startswith("ETT_")}

    def printed(environ):
        return subprocess.run(words, env=environ, capture_output=True, text=True, check=True).stdout

    loss = printed(alone)
    assert loss.startswith("50 steps, loss ")
    assert printed({**observed, "ETT_DISABLED": "1"}) == loss
    assert not (tmp_path / "journal").exists()
    assert printed(observed) == loss
    events = events_in(tmp_path / "journal")
    assert [event.step for event in events if event.kind == "progress"][-1] == 50
    assert events[-1].kind == "attempt_end"
