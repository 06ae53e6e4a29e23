"""What was made of the data is used again exactly as long as it is what would be made now."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_the_contexts_used_last_are_kept(index):
    """One more goes with each new one, and what a killed start has left half made."""
    first = index.get()
    half = first.with_name(f"{first.name}.x.partial")
    half.mkdir()
    for rows in (4, 5):
        index.get(rows=rows)
    assert len([path for path in first.parent.iterdir() if path.is_dir() and path != half]) == 2
    assert not first.exists()
    index.get()
    assert not half.exists()


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
    assert [path for path in (index.place / "index").iterdir() if path.is_dir()] == []
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
