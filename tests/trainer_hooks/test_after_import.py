"""Doing something right after a module was imported."""

from __future__ import annotations

import importlib
import sys

import pytest

from ett_trainer_hooks.after_import import AfterImport


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that can be imported and is not yet."""
    (tmp_path / "stranger.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    yield "stranger"
    sys.modules.pop("stranger", None)
    assert sys.meta_path == before


def test_every_one_who_waits_for_a_module_gets_it_once_and_waits_no_more(module):
    """Two finders for one module do not ask each other for ever, and both leave when they are done."""
    got = []
    for name in ("first", "second"):
        AfterImport({module: lambda found, name=name: got.append((name, found.VALUE))})
    assert got == []
    importlib.import_module(module)
    importlib.import_module(module)
    assert sorted(got) == [("first", 1), ("second", 1)]


def test_a_module_that_is_there_is_given_at_once(module):
    """Nothing is waited for."""
    importlib.import_module(module)
    got = []
    AfterImport({module: got.append})
    assert got == [sys.modules[module]]


def test_a_module_that_nobody_finds_stays_missing():
    """The error is Python's own, and the finder goes on waiting."""
    before = list(sys.meta_path)
    AfterImport({"no_such_module_anywhere": print})
    try:
        with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
            importlib.import_module("no_such_module_anywhere")
    finally:
        sys.meta_path[:] = before
