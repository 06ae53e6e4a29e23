"""Entries: signed, checked, named."""

import msgspec
import pytest

from ett_trainer_hooks.pipeline.bundle.entry import (
    Entry,
    RefusedError,
    content_name,
    decoded,
    encoded,
    place_of,
    safe_name,
    signed,
)

KEY, OTHER = b"k" * 32, b"o" * 32


@pytest.mark.parametrize("key", [None, KEY])
def test_an_entry_comes_back_as_it_was(bundle, key):
    entry, _ = bundle()
    back = decoded(encoded(signed(entry, key)), key)
    assert msgspec.structs.replace(back, mac="") == entry
    assert bool(back.mac) == bool(key)


def test_one_that_is_not_signed_or_with_another_key_is_refused(bundle):
    entry, _ = bundle()
    with pytest.raises(RefusedError, match=r"it is not signed$"):
        decoded(encoded(entry), KEY)
    with pytest.raises(RefusedError, match="not signed with the key of this team"):
        decoded(encoded(signed(entry, OTHER)), KEY)


@pytest.mark.parametrize("field", sorted(set(Entry.__struct_fields__) - {"mac", "version"}))
def test_the_signature_covers_every_field(bundle, field):
    fields = msgspec.json.decode(encoded(signed(bundle()[0], KEY)))
    changed = {
        str: lambda value: value[:-1] + ("1" if value[-1:] != "1" else "2"),
        int: lambda value: value + 1,
        float: lambda value: value + 1,
        dict: lambda _: {},
        list: lambda _: [],
    }
    value = fields[field]
    fields[field] = {"new": "x"} if value == {} else changed[type(value)](value)
    with pytest.raises(RefusedError, match="not signed with the key"):
        decoded(msgspec.json.encode(fields), KEY)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "damaged"),
        (b"[]", "damaged"),
        (b'{"version": 1}', "damaged"),
    ],
)
def test_what_is_no_entry_is_refused(data, why):
    with pytest.raises(RefusedError, match=why):
        decoded(data, None)


@pytest.mark.parametrize(
    "wrong", [{"made_at": 1e300}, {"made_at": -1.0}, {"size": -1}, {"local_rank": -1}, {"compile_s": -1.0}]
)
def test_a_moment_or_an_amount_that_cannot_be_is_damage(bundle, wrong):
    """Nobody who lists a store has to reckon with it."""
    with pytest.raises(RefusedError, match="damaged"):
        decoded(encoded(bundle(**wrong)[0]), None)


def test_one_of_a_later_version_is_refused(bundle):
    with pytest.raises(RefusedError, match="version 2, this program reads 1"):
        decoded(encoded(bundle(version=2)[0]), None)


def test_one_whose_object_would_be_elsewhere_is_refused(bundle):
    with pytest.raises(RefusedError, match="names no object"):
        decoded(encoded(bundle(sha256="../../secret")[0]), None)


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "a b", "ü", "-x", "x" * 101, ".hidden"])
def test_a_name_that_is_no_folder_becomes_one(name):
    assert place_of(f"entries/{safe_name(name)}/{'0' * 16}/0.json") == (safe_name(name), "0" * 16, 0)
    assert safe_name(name).startswith("h-")


def test_the_name_of_a_content_does_not_depend_on_order():
    one = content_name({"a": ["1", "2"], "b": []}, {"x": "h1", "y": "h2"})
    assert content_name({"a": ["2", "1"]}, {"y": "h2", "x": "h1"}) == one
    assert content_name({"a": ["2"]}, {"y": "h2", "x": "h1"}) != one
    assert content_name({"a": ["1", "2"]}, {"y": "h2", "x": "h3"}) != one
