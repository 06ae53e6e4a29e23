"""Nothing of what ranks were started with stays behind, however their launcher ended."""

from __future__ import annotations

import fcntl
import os

import pytest

from ett_trainer_hooks.launcher.standby_place import PREFIX, YOUNG_S, StandbyPlace, remove_left


def test_what_killed_launchers_have_left_is_removed(tmp_path):
    """By the next one; not what one holds that lives, what may just be made, or what is no such directory."""
    places = {name: tmp_path / f"{PREFIX}{name}" for name in ("left", "young", "held")}
    for place in (*places.values(), tmp_path / "other"):
        place.mkdir()
        (place / "0.wanted").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    (tmp_path / f"{PREFIX}file").touch()
    held = os.open(places["held"], os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    at = places["left"].stat().st_mtime + YOUNG_S
    os.utime(places["young"], (at, at))
    remove_left(tmp_path, at + 1.0)
    os.close(held)
    left = {path.name.removeprefix(PREFIX) for path in tmp_path.iterdir()}
    assert left == {"young", "held", "other", "link", "file"}
    assert (tmp_path / "other" / "0.wanted").exists()


def test_a_launcher_holds_its_directory_until_it_removes_it():
    place = StandbyPlace()
    descriptor = os.open(place.path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    place.remove()
    assert not place.path.exists()
