"""Which directories and keys are trusted."""

import os

import pytest

from ett_trainer_hooks.pipeline.bundle.trust import read_key, why_untrusted


@pytest.fixture
def place(tmp_path):
    directory = tmp_path / "above" / "store"
    directory.mkdir(mode=0o700, parents=True)
    directory.parent.chmod(0o755)
    return directory


def test_a_directory_of_the_user_alone_is_trusted(place):
    assert why_untrusted(place) == ""


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_one_that_others_may_write_to_is_not(place, mode):
    place.chmod(mode)
    assert "others may write" in why_untrusted(place)


def test_one_of_somebody_else_is_not(place):
    assert f"belongs to user {os.getuid()}, not to {os.getuid() + 1}" in why_untrusted(place, os.getuid() + 1)


def test_one_that_others_may_replace_is_not_unless_the_sticky_bit_forbids_it(place):
    place.parent.chmod(0o777)
    assert "above it" in why_untrusted(place)
    place.parent.chmod(0o1777)
    assert why_untrusted(place) == ""


def test_a_link_is_judged_by_where_it_leads(place, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(place)
    assert why_untrusted(link) == ""
    place.chmod(0o777)
    assert "others may write" in why_untrusted(link)


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "file").touch()
    assert "is no directory" in why_untrusted(tmp_path / "file")


def test_a_key_is_read_without_the_newline(tmp_path):
    path = tmp_path / "key"
    path.write_text("a" * 64 + "\n")
    path.chmod(0o600)
    assert read_key(path) == b"a" * 64


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [("short", 0o600, "needs 32"), ("a" * 64, 0o622, "written by others"), ("a" * 64, 0o660, "by others")],
)
def test_a_weak_key_or_one_that_others_may_write_is_refused(tmp_path, text, mode, why):
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(ValueError, match=why):
        read_key(path)


def test_a_key_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        read_key(tmp_path / "none")
