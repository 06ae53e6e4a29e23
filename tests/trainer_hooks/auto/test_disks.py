"""A save that broke is explained by a full file system, and by no other."""

import os

from ett_trainer_hooks.auto.disks import full_disk


def told(**fields):
    """What is told of a file system with these figures, in blocks of 4 KiB."""
    known = {"f_frsize": 4096, "f_blocks": 256, "f_bavail": 200, "f_files": 100, "f_favail": 50}
    space = type("Space", (), {**known, **fields})
    return full_disk("/ckpt/step_3.pt", statvfs=lambda _: space)


def test_a_file_system_without_room_is_told():
    words = "no space left on device: 4096 of 1048576 bytes are free where /ckpt/step_3.pt was to be written"
    assert told(f_bavail=1) == words


def test_a_file_system_without_inodes_is_told():
    assert "no inode is free" in told(f_favail=0)


def test_nothing_is_told_where_there_is_room_or_where_nobody_knows(tmp_path):
    assert told() == told(f_blocks=0, f_files=0, f_bavail=0, f_favail=0) == ""
    assert full_disk(tmp_path / "new.pt") == full_disk(os.devnull + "/x/y") == full_disk(7) == ""
