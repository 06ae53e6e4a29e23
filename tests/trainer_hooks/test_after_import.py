"""Doing something right after a module was imported."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder

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
    ours = [finder for finder in sys.meta_path if finder not in before]
    sys.meta_path[:] = before
    assert [finder.find_spec("stranger", None) for finder in ours] == [None] * len(ours)


def test_every_one_who_waits_for_a_module_gets_it_once_and_waits_no_more(module):
    """Two finders for one module do not ask each other for ever, and both find nothing when they are done."""
    got = []
    for name in ("first", "second"):
        AfterImport({module: lambda found, name=name: got.append((name, found.VALUE))})
    assert got == []
    importlib.import_module(module)
    importlib.import_module(module)
    assert sorted(got) == [("first", 1), ("second", 1)]


class Busy:
    """A finder that is still asked for one module while another one is imported, as by another thread."""

    def __init__(self, meanwhile):
        self._meanwhile = meanwhile

    def find_spec(self, name, _path, _target=None):
        if name == "late_one":
            importlib.import_module(self._meanwhile)


def test_what_another_thread_imports_at_that_moment_is_found(module, tmp_path, monkeypatch):
    """A finder that left its place would hide the one behind it: the import would fail."""
    (tmp_path / "late_one.py").write_text("VALUE = 3\n")
    got = []
    with monkeypatch.context() as patch:
        patch.setattr(sys, "meta_path", list(sys.meta_path))
        paths = sys.meta_path.index(PathFinder)
        sys.meta_path.insert(paths, Busy(module))
        AfterImport({module: got.append})
        assert importlib.import_module("late_one").VALUE == 3
    assert got == [sys.modules[module]]
    sys.modules.pop("late_one")


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


class Legacy:
    """A finder as Python has known them until 3.11."""

    def find_module(self, _name, _path=None):
        """Find nothing."""


@pytest.mark.filterwarnings("ignore::ImportWarning")
def test_a_finder_of_old_keeps_no_module_from_being_imported(module, monkeypatch):
    """It is asked nothing that it does not know, as by Python itself."""
    got = []
    with monkeypatch.context() as patch:
        patch.setattr(sys, "meta_path", [Legacy(), *sys.meta_path])
        AfterImport({module: got.append})
        assert importlib.import_module(module).VALUE == 1
    assert got == [sys.modules[module]]


class Closed:
    """A loader that takes no other functions than its own, and the finder of its module."""

    __slots__ = ()

    def find_spec(self, name, _path, _target=None):
        return ModuleSpec(name, self) if name == "stranger" else None

    def create_module(self, _spec):
        """Leave that to Python."""

    def exec_module(self, module):
        module.VALUE = 2


def test_a_loader_that_cannot_be_followed_loads_as_ever(module, monkeypatch):
    """Its module is imported; nobody is told."""
    got = []
    with monkeypatch.context() as patch:
        patch.setattr(sys, "meta_path", [Closed(), *sys.meta_path])
        AfterImport({module: got.append})
        assert importlib.import_module(module).VALUE == 2
    assert got == []
