"""The one setting that switches parts on and off."""

import pytest

from ett_trainer_hooks.pipeline.parts import PARTS, parse


def test_all_are_on_but_those_left_out():
    for part in PARTS:
        assert parse(f"all, -{part}") == frozenset(PARTS) - {part}


def test_a_later_word_wins():
    assert parse("-stages,stages") == {"stages"}


def test_an_unknown_part_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="'stage' is no part of the pipeline; there are stages"):
        parse("stage")
