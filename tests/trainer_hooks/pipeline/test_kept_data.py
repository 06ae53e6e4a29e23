"""What was made of the data is used again exactly as long as it is what would be made now."""

from __future__ import annotations

import errno
import os
import threading
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_trainer_hooks.pipeline import kept_data
from ett_trainer_hooks.pipeline.differences import difference
from ett_trainer_hooks.pipeline.kept_data import NOTE, kept

CONTEXT = {"files": {"a.csv": 120}, "rows": 3}


class Told:
    def __init__(self):
        self.words = []

    def decision(self, _what, why, _values):
        self.words.append(why)


@pytest.fixture
def index(tmp_path):
    """Asks for an index of the data; what lies there, what was told, and how often it was made."""

    class Index:
        def __init__(self):
            self.place = tmp_path / "kept"
            self.told = Told()
            self.made = 0

        def make(self, directory):
            assert list(directory.iterdir()) == []
            self.made += 1
            (directory / "sub").mkdir()
            (directory / "sub" / "index").write_bytes(b"x" * 1000)

        def get(self, **changes):
            directory = kept(
                "index", self.make, place=self.place, context={**CONTEXT, **changes}, recorder=self.told
            )
            assert (directory / "sub" / "index").read_bytes() == b"x" * 1000
            return directory

    return Index()


def test_it_is_made_once(index):
    """The second start gets the very same directory."""
    assert index.get() == index.get()
    assert (index.made, index.told.words) == (
        1,
        ["index: made: there was nothing yet", "index: used again"],
    )


def test_another_context_is_told_by_what_has_changed(index):
    index.get()
    index.get(files={"a.csv": 121})
    assert index.made == 2
    assert index.told.words[-1] == "index: made: since the last time, files.a.csv was 120, is 121"


@pytest.mark.parametrize("harm", ["cut", "changed", "gone", "note"])
def test_what_is_damaged_is_made_anew(index, harm):
    directory = index.get()
    file = directory / "sub" / "index"
    match harm:
        case "cut":
            file.write_bytes(b"x")
        case "changed":
            file.write_bytes(b"y" * 1000)
        case "gone":
            file.unlink()
        case "note":
            (directory / NOTE).write_bytes(b"{")
    assert index.get() == directory
    assert index.made == 2
    index.get()
    assert index.made == 2


@pytest.fixture
def in_another_process(monkeypatch):
    """Calls a function as in a process that then ends: locks are those of open files."""

    def call(function, **arguments):
        with monkeypatch.context() as patch:
            patch.setattr(kept_data, "_used", deque())
            function(**arguments)
            for descriptor in kept_data._used:
                os.close(descriptor)

    return call


def directories_of(index):
    return [path for path in (index.place / "index").iterdir() if path.is_dir()]


def test_the_contexts_used_last_are_kept(index, in_another_process):
    """One more goes with each new one, and what a killed start has left half made."""
    in_another_process(index.get)
    (first,) = directories_of(index)
    half = first.with_name(f"{first.name}.x.partial")
    half.mkdir()
    for rows in (4, 5):
        in_another_process(index.get, rows=rows)
    assert len([path for path in directories_of(index) if path != half]) == 2
    assert not first.exists()
    index.get()
    assert not half.exists()


def test_what_a_process_that_lives_has_got_is_not_removed(index, in_another_process):
    """It reads there: two jobs of a host do not know of each other."""
    got = [index.get(rows=rows) for rows in (4, 5, 6)]
    in_another_process(index.get, rows=7)
    assert all(path.exists() for path in got)


def test_what_could_not_be_kept_is_not_taken_from_who_made_it(index, in_another_process, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(kept_data, "keep", full)
        mine = index.get()
    assert index.told.words == ["index: made for this start only: [Errno 28] No space left on device"]
    in_another_process(index.get)
    assert (mine / "sub" / "index").exists()


@pytest.mark.parametrize(("call", "of"), [("flock", "fcntl"), ("mkdtemp", "tempfile")])
def test_a_place_without_locks_or_room_costs_the_keeping_only(index, monkeypatch, call, of):
    whole = getattr(getattr(kept_data, of), call)

    def refuses(*arguments, **named):
        if of == "tempfile" and "dir" not in named:
            return whole(*arguments, **named)
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(getattr(kept_data, of), call, refuses)
    index.get()
    assert index.told.words[0].endswith(": [Errno 38] not here")
    assert index.told.words[0].startswith("index: made for this start only, as nothing can be kept in ")


def test_of_ranks_that_come_at_once_one_makes_it(index):
    """The others wait for it, and use it."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(index.get())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert index.made == 1
    assert len(set(found)) == 1
    assert len(found) == 4


def test_an_error_of_the_making_is_raised_and_leaves_nothing(index):
    def fails(directory):
        (directory / "half").touch()
        raise KeyError("no source")

    with pytest.raises(KeyError, match="no source"):
        kept("index", fails, place=index.place, context=CONTEXT, recorder=index.told)
    assert directories_of(index) == []
    index.get()


def test_a_place_that_fails_costs_the_keeping_only(index, tmp_path):
    """The data are made for this start."""
    (tmp_path / "kept").write_text("a file")
    index.get()
    index.get()
    assert index.made == 2
    assert index.told.words[0].startswith("index: made for this start only, as nothing can be kept in ")


@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.text())))
def test_equal_contexts_do_not_differ(context):
    assert difference(context, dict(context)) == ""
