"""What a store knows of a bundle without opening it: one small JSON file, signed where teams share.

The entry is written last and makes the bundle exist. It names the object that holds the content
by its hash, so whoever trusts the entry can check the object.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

import msgspec

from ett_core.events import Count, Seconds, UnixSeconds

VERSION = 1
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ENTRY = re.compile(r"entries/([^/]+)/([0-9a-f]{16})/(\d+)\.json")
_HASH = re.compile(r"[0-9a-f]{64}")
_OBJECT = re.compile(r"objects/[0-9a-f]{64}\.zip")


class RefusedError(ValueError):
    """A bundle that must not be used; the message says why, as part of a sentence."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One bundle of a store."""

    version: int = VERSION
    name: str
    """What was trained: starts that give the same name look for each other's bundles."""
    local_rank: Count
    rank: Count
    """The global rank that saved it."""
    job_id: str
    made_at: UnixSeconds
    """Unix seconds."""
    facts: dict[str, str]
    """The environment it was made in, see `fingerprint`."""
    settings: dict[str, str]
    """Variables of the environment that the compiler reads."""
    compile_s: Seconds
    """Seconds of compilation that its content cost, in the process that saved it."""
    artifacts: dict[str, list[str]]
    """The compiler's entries by kind (`inductor`, `aot_autograd`, `pgo`, ...): their keys."""
    native: list[str]
    """Files of native code, as paths in the compiler's cache directory."""
    content: str
    """A hash of what is in the bundle, see `content_name`."""
    sha256: str
    """Of the object's bytes; it names the object."""
    size: Count
    """Of the object, in bytes."""
    mac: str = ""
    """HMAC-SHA256 of all the rest under the key of a team; empty without one."""

    @property
    def graphs(self) -> int:
        """Compiled graphs in the bundle, forward and backward each one."""
        return len(self.artifacts.get("inductor", ()))


_decoder = msgspec.json.Decoder(Entry)


def entry_path(name: str, facts_digest: str, local_rank: int) -> str:
    """Where a store keeps an entry.

    >>> entry_path("dlrm", "0123456789abcdef", 1)
    'entries/dlrm/0123456789abcdef/1.json'
    """
    return f"entries/{safe_name(name)}/{facts_digest}/{local_rank}.json"


def place_of(path: str) -> tuple[str, str, int] | None:
    """Name, digest of the facts and local rank of an entry's path; None where it is none.

    >>> place_of("entries/dlrm/0123456789abcdef/1.json"), place_of("objects/ab")
    (('dlrm', '0123456789abcdef', 1), None)
    """
    match = _ENTRY.fullmatch(path)
    return (match[1], match[2], int(match[3])) if match else None


def object_path(sha256: str) -> str:
    """Where a store keeps an object."""
    return f"objects/{sha256}.zip"


def is_object(path: str) -> bool:
    """Whether a path of a store is that of an object.

    >>> is_object(object_path("0" * 64)), is_object("objects/photos.zip")
    (True, False)
    """
    return _OBJECT.fullmatch(path) is not None


def used_path(sha256: str) -> str:
    """Where a store notes when an object was last used, as Unix seconds in words."""
    return f"used/{sha256}"


def safe_name(name: str) -> str:
    """The name as a folder: itself, or a hash of it where it has signs that a path must not have.

    >>> safe_name("dlrm-64"), safe_name("../dlrm")
    ('dlrm-64', 'h-03832f818ecd')
    """
    if _SAFE.fullmatch(name):
        return name
    return "h-" + hashlib.sha256(name.encode()).hexdigest()[:12]


def signed(entry: Entry, key: bytes | None) -> Entry:
    """The entry with its code, where there is a key."""
    return msgspec.structs.replace(entry, mac=_mac(entry, key) if key else "")


def encoded(entry: Entry) -> bytes:
    """The entry as bytes."""
    return msgspec.json.encode(entry)


def decoded(data: bytes, key: bytes | None) -> Entry:
    """The entry in these bytes.

    Raises:
        RefusedError: it is damaged, of another version, or not signed with the key.
    """
    try:
        entry = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise RefusedError(f"its entry is damaged ({error})") from None
    if entry.version != VERSION:
        raise RefusedError(f"its entry is of version {entry.version}, this program reads {VERSION}")
    if not _HASH.fullmatch(entry.content) or not _HASH.fullmatch(entry.sha256):
        raise RefusedError("its entry names no object")
    if key is not None and not hmac.compare_digest(entry.mac, _mac(entry, key)):
        raise RefusedError("it is not signed with the key of this team" if entry.mac else "it is not signed")
    return entry


def content_name(artifacts: Mapping[str, Sequence[str]], files: Mapping[str, str]) -> str:
    """A hash of what is in a bundle: the compiler's keys and the hashes of the native files.

    Two processes that compiled the same graphs have other bytes (their artifacts hold times), but
    the same name of their content.
    """
    kinds = sorted((kind, sorted(set(keys))) for kind, keys in artifacts.items() if keys)
    return hashlib.sha256(msgspec.json.encode((kinds, sorted(files.items())))).hexdigest()


def _mac(entry: Entry, key: bytes) -> str:
    plain = msgspec.json.encode(msgspec.structs.replace(entry, mac=""), order="deterministic")
    return hmac.new(key, plain, hashlib.sha256).hexdigest()
