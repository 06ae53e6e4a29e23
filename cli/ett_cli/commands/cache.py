"""`ett cache`: bundles of compiled code in a store: list, verify, evict, and say why one was not used."""

from __future__ import annotations

import argparse
import json
import os
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ett_cli.saying import complain
from ett_core.plain_text import one_line

if TYPE_CHECKING:
    from ett_trainer_hooks.pipeline.bundle.compare import Side
    from ett_trainer_hooks.pipeline.bundle.entry import Entry, RefusedError
    from ett_trainer_hooks.pipeline.bundle.store import BundleStore

HERE = "here"
MB = 1e6
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
DEFAULT_LIMIT = "20G"


class AbsentError(Exception):
    """What the command line names is not there; the message says what."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    listing = _command(commands, "ls", "list the bundles of a store")
    listing.add_argument("--name", help="only those of this name")
    _command(commands, "verify", "check signature, hash and content of every bundle; 1 where one is refused")
    collect = _command(commands, "gc", "bring a store below a size, least recently used first")
    collect.add_argument(
        "--limit", default=DEFAULT_LIMIT, metavar="SIZE", help="bytes, or 500M, 20G (default: %(default)s)"
    )
    collect.add_argument("--dry-run", action="store_true", help="say what would go, and leave it")
    why = commands.add_parser(
        "why-miss",
        help="say why a start could not use a bundle",
        description="Say why the start that made B, or would run here, cannot use A.",
        epilog="A and B: a store (its newest bundle), STORE#NAME, the file of an entry, a name in the store "
        "of --store, or 'here' for this environment.",
    )
    why.add_argument("one", metavar="A")
    why.add_argument("two", metavar="B")
    why.add_argument("--store", help="where bundles lie that are given by name")
    why.add_argument("--json", action="store_true", help="print one JSON object")


def _command(commands: Any, name: str, what: str) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=what, description=f"{what[0].upper()}{what[1:]}."
    )
    parser.add_argument("store", metavar="STORE", help="directory, or URL for fsspec")
    parser.add_argument(
        "--key-file", type=Path, metavar="FILE", help="key of the team (default: ETT_BUNDLE_KEY_FILE)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Do it; 1 where a bundle is refused or the store is not there, 2 for a wrong command line."""
    from ett_trainer_hooks.pipeline.bundle.entry import RefusedError
    from ett_trainer_hooks.pipeline.bundle.store import StoreFailedError

    commands = {"ls": _ls, "verify": _verify, "gc": _gc, "why-miss": _why_miss}
    try:
        return commands[arguments.command](arguments)
    except (AbsentError, RefusedError, StoreFailedError) as error:
        return complain("cache", error, 1)
    except ValueError as error:
        return complain("cache", error, 2)


def _ls(arguments: argparse.Namespace) -> int:
    from ett_trainer_hooks.pipeline.bundle.entry import Entry

    store = _looked_at(arguments.store)
    entries = store.entries(arguments.name, anyones=True)
    rows = [
        _row(path, entry, store.used_at(entry.sha256)) if isinstance(entry, Entry) else _refused(path, entry)
        for path, entry in entries.items()
    ]
    objects = store.objects()
    if arguments.json:
        print(
            json.dumps({"bundles": rows, "objects": len(objects), "bytes": sum(objects.values())}, indent=1)
        )
        return 0
    if not rows:
        return _nothing_in(store)
    print(_table(rows))
    size = sum(objects.values()) / MB
    print(f"{_count(len(rows), 'bundle')} of {_count(len(objects), 'object')}, {size:,.1f} MB")
    return 0


def _nothing_in(store: BundleStore) -> int:
    """Say so; that is no failure."""
    print(f"There are no bundles in {store.address}.{_elsewhere(store.address)}")
    return 0


def _elsewhere(address: str) -> str:
    """Where bundles may be meant, as `ett train` keeps them in its cache."""
    place = Path(address)
    if "://" in address or (place / "entries").is_dir() or not (place / "bundles").is_dir():
        return ""
    return f" {place / 'bundles'} is a store, too."


def _verify(arguments: argparse.Namespace) -> int:
    store = _trusted(arguments)
    reasons = {path: _why_refused(store, entry) for path, entry in store.entries().items()}
    refused = {path: why for path, why in reasons.items() if why}
    if arguments.json:
        print(json.dumps({"checked": len(reasons), "refused": refused}, indent=1))
    elif not reasons:
        return _nothing_in(store)
    else:
        for path, why in refused.items():
            print(one_line(f"{path}: refused, {why}"))
        print(f"{_count(len(reasons), 'bundle')} checked, {len(refused)} refused")
    return 1 if refused else 0


def _why_refused(store: BundleStore, entry: Entry | RefusedError) -> str:
    """Why a bundle must not be used; empty where it may."""
    from ett_trainer_hooks.pipeline.bundle.entry import RefusedError

    if isinstance(entry, RefusedError):
        return str(entry)
    try:
        store.contents(entry)
    except RefusedError as reason:
        return str(reason)
    return ""


def _gc(arguments: argparse.Namespace) -> int:
    from ett_trainer_hooks.pipeline.bundle.eviction import evict

    store = _looked_at(arguments.store)
    gone = evict(store, bytes_of(arguments.limit), dry=arguments.dry_run)
    if arguments.json:
        fields = ("objects", "bytes", "objects_left", "bytes_left")
        print(json.dumps({name: getattr(gone, name) for name in fields}, indent=1))
        return 0
    if not gone.objects + gone.objects_left:
        return _nothing_in(store)
    would = "would go" if arguments.dry_run else "gone"
    print(
        f"{_count(gone.objects, 'object')} {would} ({gone.bytes / MB:,.1f} MB), "
        f"{gone.objects_left} left ({gone.bytes_left / MB:,.1f} MB)"
    )
    return 0


def _why_miss(arguments: argparse.Namespace) -> int:
    from ett_trainer_hooks.pipeline.bundle.compare import compare

    one, two = (_side(word, arguments.store) for word in (arguments.one, arguments.two))
    found = compare(one, two)
    if arguments.json:
        fields = ("facts", "settings", "common", "only_one", "only_two", "reasons")
        print(json.dumps({name: getattr(found, name) for name in fields}, indent=1))
        return 0
    for reason in found.reasons:
        print(one_line(reason))
    if one.artifacts is not None and two.artifacts is not None:
        counts = (found.common, found.only_one, found.only_two)
        both, first, second = (sum(each.values()) for each in counts)
        told = f"{both} in both, {first} in {one.what}, {second} in {two.what} alone."
        print(one_line(f"Entries of the compiler: {told}"))
    return 0


def _side(word: str, store: str | None) -> Side:
    """What a word of the command line names."""
    from ett_trainer_hooks.pipeline.bundle.compare import Side, side_of
    from ett_trainer_hooks.pipeline.bundle.entry import decoded
    from ett_trainer_hooks.pipeline.bundle.fingerprint import environment

    if word == HERE:
        return Side(what="this environment", facts=environment())
    if word.endswith(".json") and Path(word).is_file():
        return side_of(decoded(Path(word).read_bytes(), None), word)
    address, mark, name = word.partition("#")
    if not mark and store and "/" not in word:
        address, name = store, word
    elif not mark and "/" not in word and not Path(word).exists():
        raise AbsentError(
            f"there is no directory {word!r} here; if it is a name, give the --store that it lies in"
        )
    return side_of(_newest(address, name or None), repr(name or address))


def _newest(address: str, name: str | None) -> Entry:
    """The newest bundle of a store, or of a name in it; of several ranks that of the first."""
    from ett_trainer_hooks.pipeline.bundle.entry import Entry

    found = _looked_at(address).entries(name, anyones=True).values()
    entries = [entry for entry in found if isinstance(entry, Entry)]
    if not entries:
        raise AbsentError(f"{address} holds no bundle{f' of the name {name!r}' if name else ''}")
    newest = max(entries, key=lambda entry: entry.made_at)
    beside = (entry for entry in entries if (entry.name, entry.facts) == (newest.name, newest.facts))
    return min(beside, key=lambda entry: entry.local_rank)


def _looked_at(address: str) -> BundleStore:
    from ett_trainer_hooks.pipeline.bundle.store import BundleStore

    _refuse_nowhere(address)
    return BundleStore(address, only_look=True)


def _refuse_nowhere(address: str) -> None:
    """A misspelt directory is no store without bundles.

    Raises:
        AbsentError: there is no such directory.
    """
    place = address.removeprefix("file://")
    if "://" not in place and not Path(place).expanduser().is_dir():
        raise AbsentError(f"{address}: there is no such directory")


def _trusted(arguments: argparse.Namespace) -> BundleStore:
    from ett_trainer_hooks.pipeline.bundle.settings import BundleSettings
    from ett_trainer_hooks.pipeline.bundle.store import BundleStore

    _refuse_nowhere(arguments.store)
    settings = BundleSettings(address=arguments.store, name="-", key_file=arguments.key_file)
    return BundleStore(arguments.store, key=settings.key(os.environ))


def bytes_of(text: str) -> int:
    """A size in bytes; powers of 1000.

    >>> bytes_of("20G"), bytes_of("1.5MB"), bytes_of("7")
    (20000000000, 1500000, 7)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is no size such as 500M or 20G")
    return int(float(match[1]) * UNITS[match[2]])


def _row(path: str, entry: Entry, used_at: float) -> dict[str, Any]:
    return {
        "path": path,
        "name": entry.name,
        "local_rank": entry.local_rank,
        "facts": path.split("/")[2],
        "made_at": entry.made_at,
        "used_at": used_at,
        "bytes": entry.size,
        "graphs": entry.graphs,
        "native_files": len(entry.native),
        "compile_s": entry.compile_s,
        "signed": bool(entry.mac),
        "job_id": entry.job_id,
        "refused": "",
    }


def _refused(path: str, reason: object) -> dict[str, Any]:
    return {"path": path, "refused": str(reason)}


def _table(rows: list[dict[str, Any]]) -> str:
    heads = (
        "name",
        "rank",
        "environment",
        "made (UTC)",
        "used (UTC)",
        "MB",
        "graphs",
        "native",
        "compile s",
        "",
    )
    lines = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    right = {"rank", "MB", "graphs", "native", "compile s"}
    aligned = [
        [
            cell.rjust(width) if head in right else cell.ljust(width)
            for cell, width, head in zip(line, widths, heads, strict=True)
        ]
        for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in aligned)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    if row["refused"]:
        return (one_line(row["path"]), *[""] * 8, one_line(f"refused: {row['refused']}"))
    return (
        one_line(row["name"]),
        str(row["local_rank"]),
        row["facts"],
        _moment(row["made_at"]),
        _moment(row["used_at"]),
        f"{row['bytes'] / MB:,.1f}",
        str(row["graphs"]),
        str(row["native_files"]),
        f"{row['compile_s']:,.1f}",
        "signed" if row["signed"] else "",
    )


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, timezone.utc).strftime("%Y-%m-%d %H:%M") if unix_s else "never"


def _count(number: int, word: str) -> str:
    """A number of things.

    >>> _count(1, "bundle"), _count(2, "bundle")
    ('1 bundle', '2 bundles')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
