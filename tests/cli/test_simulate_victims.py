"""Whom to preempt: the one with least unsaved loses least, and the table says how much."""

from __future__ import annotations

import pytest

from ett_cli.main import main
from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.settings import scenario
from ett_cli.simulate.victims import compared, table, victims

END_MS = 1_764_000_000_000


@pytest.fixture(scope="module")
def found():
    """A fleet of some size at some moments."""
    return victims(Fleet(scenario("small", jobs=10, ranks=8, report_s=60.0), END_MS), 25)


def test_at_each_moment_the_one_with_least_unsaved_loses_no_more_than_any(found):
    assert found.moments > 5
    assert all(least <= any_ for any_, least in zip(found.any_s, found.least_s, strict=True))
    assert sum(found.least_s) < sum(found.any_s)
    assert found.jobs >= 2


def test_the_same_seed_gives_the_same_answer(found):
    again = victims(Fleet(scenario("small", jobs=10, ranks=8, report_s=60.0), END_MS), 25)
    assert again == found


def test_without_a_choice_there_is_nothing_to_compare():
    alone = victims(Fleet(scenario("launch", days=0.05, report_s=600.0), END_MS), 5)
    assert alone.moments == 0
    assert table(alone) == ["Preempting: there were never two jobs to choose from."]


def test_where_nothing_is_unsaved_nothing_is_saved():
    assert "(0.0 %)" in table(compared([[0.0, 0.0]]))[-1]


def test_the_command_shows_the_table_and_needs_no_place_for_events(capsys):
    status = main(["simulate", "--victims", "40", "--ranks", "4", "--report-s", "120", "--end", "1764000000"])
    out, _ = capsys.readouterr()
    assert status == 0
    assert "ett simulate: scenario small" in out
    assert "least unsaved" in out


@pytest.mark.parametrize("words", [["--victims", "0"], ["--victims", "3", "--live"]])
def test_what_makes_no_sense_is_refused(words, capsys):
    assert main(["simulate", *words]) == 2
    assert "--victims" in capsys.readouterr().err
