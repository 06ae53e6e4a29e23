"""Imports without collections: none within, none of what they made, all as before afterwards."""

from __future__ import annotations

import gc

import pytest

from ett_trainer_hooks.pipeline.imports import uncollected


@pytest.fixture(autouse=True)
def thawed():
    yield
    gc.enable()
    gc.unfreeze()


def test_nothing_is_collected_within_and_what_was_made_is_not_looked_through_again():
    frozen, made = gc.get_freeze_count(), []
    with uncollected():
        assert not gc.isenabled()
        made += [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= frozen + 1000
    assert not any(each is made for each in gc.get_objects())


def test_garbage_that_comes_later_is_collected():
    with uncollected():
        pass
    later = []
    later.append(later)
    del later
    assert gc.collect() >= 1


def test_an_import_that_fails_leaves_collections_on():
    with pytest.raises(ModuleNotFoundError), uncollected():
        import no_such_module  # noqa: F401, PLC0415
    assert gc.isenabled()


def test_a_program_that_has_switched_collections_off_is_left_alone():
    gc.disable()
    frozen = gc.get_freeze_count()
    with uncollected():
        pass
    assert not gc.isenabled()
    assert gc.get_freeze_count() == frozen
