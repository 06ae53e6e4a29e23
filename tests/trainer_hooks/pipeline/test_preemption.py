"""All ranks leave at the same step and in the same way, whichever of them was told to go."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from gloo_ranks import run_ranks

pytestmark = pytest.mark.service("torch")

PROGRAM = Path(__file__).with_name("programs") / "preemption.py"
NOTICED_AT, STEPS = 7, 20


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two ranks did in five lives."""
    return run_ranks(PROGRAM, tmp_path_factory.mktemp("preemption"))


@pytest.mark.parametrize(
    ("life", "step", "way", "grace_s"),
    [
        ("both", NOTICED_AT, "save", 300),
        ("one", NOTICED_AT, "save", 600),
        ("sooner", NOTICED_AT, "save", 300),
        ("slow", NOTICED_AT, "go", 300),
    ],
)
def test_all_ranks_leave_alike(ranks, life, step, way, grace_s):
    """By the least time that is left on any of them."""
    lives = [rank[life] for rank in ranks]
    assert [(each["step"], each["way"]) for each in lives] == [(step, way)] * 2
    assert lives[0]["left_s"] == lives[1]["left_s"] <= grace_s
    assert lives[0]["left_s"] > grace_s - 200  # of the right signal, however slow the machine is


def test_without_a_notice_nobody_leaves(ranks):
    assert [rank["none"]["step"] for rank in ranks] == [STEPS] * 2


def test_the_first_rank_decides_and_tells_why(ranks):
    first, second = ranks
    ((what, why, values),) = first["one"]["told"]
    assert what == "told to go: saves and leaves"
    assert why.endswith("keeps 900 s of training (notice: another rank)")
    assert values["save_s"] == 5
    assert "too long" in first["slow"]["told"][0][1]
    assert first["slow"]["told"][0][1].endswith("(notice: SIGTERM)")
    assert (first["one"]["asked"], second["one"]["asked"]) == ([0], [])
    assert not second["one"]["told"]
