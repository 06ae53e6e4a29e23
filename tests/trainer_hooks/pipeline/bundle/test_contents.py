"""Archives: the same again, and hostile ones."""

import hashlib
import io
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ett_trainer_hooks.pipeline.bundle.contents import Contents, opened, packed, unpacked
from ett_trainer_hooks.pipeline.bundle.entry import Entry, RefusedError

BLANK = Entry(
    name="n",
    local_rank=0,
    rank=0,
    job_id="",
    made_at=1.0,
    facts={},
    settings={},
    compile_s=0.0,
    artifacts={},
    native=[],
    content="",
    sha256="",
    size=0,
)
PATHS = st.from_regex(r"\A[a-z0-9]{2}/c[a-z0-9]{1,20}(\.main)?\.so\Z")


def entry_of(data):
    return replace(BLANK, sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def archive(*members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in members:
            file.writestr(name, data)
    return buffer.getvalue()


def compressed(kind):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as file:
        file.writestr("artifacts", b"torch " * 20)
        file.writestr("native/ab/c.so", bytes(range(50)))
    return buffer.getvalue()


@given(st.binary(), st.dictionaries(PATHS, st.binary()))
def test_what_is_packed_is_unpacked_and_packs_the_same_again(artifacts, native):
    contents = Contents(artifacts, native)
    data = packed(contents)
    assert unpacked(data, entry_of(data)) == contents
    assert packed(Contents(artifacts, dict(reversed(native.items())))) == data


def test_one_flipped_byte_anywhere_is_refused():
    data = packed(Contents(b"artifacts", {"ab/cab.main.so": b"code"}))
    entry = entry_of(data)
    for place in range(len(data)):
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(RefusedError, match="the hash is another"):
            unpacked(flipped, entry)


def test_one_cut_short_is_refused():
    data = packed(Contents(b"artifacts", {}))
    with pytest.raises(RefusedError, match="cut short"):
        unpacked(data[:-1], entry_of(data))


@pytest.mark.parametrize(
    "name",
    [
        "native/../../etc/cron.d/x",
        "native//etc/passwd",
        "/etc/passwd",
        "native/ab/../../x.so",
        "native/ab/.bashrc",
        "native/.ssh/authorized_keys",
        "native/ab\\..\\x.so",
        "native/x.so",
        "native/ab/x.so/",
        "native/ab/" + "x" * 300,
        "native/ab/x\n.so",
        "other/ab/x.so",
        "manifest.json",
    ],
)
def test_a_member_that_leads_elsewhere_is_refused_though_its_hash_is_right(name):
    data = archive(("artifacts", b""), (name, b"evil"))
    with pytest.raises(RefusedError, match="at a place of its own"):
        unpacked(data, entry_of(data))


def test_a_bomb_is_refused_before_it_is_unpacked():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("artifacts", bytes(10_000_000))
    data = buffer.getvalue()
    with pytest.raises(RefusedError, match="more than 1,000,000 bytes"):
        unpacked(data, entry_of(data), largest=1_000_000)


def test_an_archive_that_lies_about_its_size_gives_no_more_than_it_said():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("artifacts", bytes(10_000_000))
    true, told = (10_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little")
    data = buffer.getvalue().replace(true, told)
    with pytest.raises(RefusedError, match="no readable archive"):
        unpacked(data, entry_of(data), largest=1_000_000)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused():
    data = archive(("artifacts", b"one"), ("artifacts", b"two"))
    with pytest.raises(RefusedError, match="twice"):
        unpacked(data, entry_of(data))


@pytest.mark.parametrize("data", [b"", b"no archive", archive(("native/ab/x.so", b""))])
def test_what_is_no_bundle_is_refused(data):
    with pytest.raises(RefusedError, match=r"no readable archive|holds no artifacts"):
        unpacked(data, entry_of(data))


ARCHIVES = [
    compressed(kind)
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
]


@given(
    st.sampled_from(ARCHIVES),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4),
)
@settings(max_examples=200)
def test_an_archive_that_was_spoiled_before_it_was_signed_is_refused_or_read(data, changes):
    """Whatever its form of compression: nothing else comes of it."""
    spoiled = bytearray(data)
    for place, value in changes:
        spoiled[int(place * len(spoiled))] = value
    with suppress(RefusedError):
        opened(bytes(spoiled), largest=10**6)
