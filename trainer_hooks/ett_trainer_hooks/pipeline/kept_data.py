"""What a trainer makes of its data before it can train, kept on the disk of the host for its next start.

A vocabulary, an index, decoded shards: made once for a *context*, all that decides on the result, and used
again as long as that is the same. `PLACE/NAME/KEY/` holds what was made, `kept.json` in it, written last,
the context with sizes and hashes. Of the ranks of a host one makes it while the others wait, and what a
process has got is not removed as long as it lives (locks of the kernel, gone with their holders). A place
that fails costs the keeping, never the start.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.bundle.files import write_whole
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError, FileMark, check, marks, names_in
from ett_trainer_hooks.pipeline.differences import difference

NOTE = "kept.json"
KEPT = 2
"""What is kept of one name: the contexts used last."""
WHAT = "kept data"
USED_AT_ONCE = 100
"""Directories that a process keeps others from removing, those that it got last: each costs a descriptor."""
_used: deque[int] = deque()


class Note(msgspec.Struct, frozen=True):
    """What lies in a directory, and for which context it was made."""

    context: dict[str, Any]
    files: dict[str, FileMark]


def kept(
    name: str,
    make: Callable[[Path], object],
    *,
    place: Path,
    context: Mapping[str, Any],
    recorder: Recorder,
) -> Path:
    """The directory of what `make(directory)` writes: that of an earlier start where the context is the same.

    What lies there is read, not changed. A `decision` tells which it was, why, and the seconds.

    Args:
        name: of the data; one directory below `place`.
        make: writes files into a directory that is there and empty; its errors are raised.
        place: a directory of the host, which need not exist yet.
        context: plain data (as JSON) that decides on the result: sources with their sizes and dates,
            settings, versions of the code.
        recorder: whom to tell.
    """
    began_s = time.monotonic()
    facts = msgspec.json.decode(msgspec.json.encode(context, order="deterministic"))
    key = sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:32]
    home = place / name

    def tell(why: str, directory: Path) -> Path:
        size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
        recorder.decision(WHAT, f"{name}: {why}", {"seconds": time.monotonic() - began_s, "bytes": size})
        return directory

    with ExitStack() as holding:
        try:
            fresh, reason = begun(home, key, facts, holding)
        except OSError as error:
            return tell(
                f"made for this start only, as nothing can be kept in {home}: {error}", made_apart(make)
            )
        if fresh is None:
            return tell("used again", home / key)
        try:
            make(fresh)
            try:
                keep(fresh, home / key, facts)
            except OSError as error:
                return tell(f"made for this start only: {error}", fresh)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        retire(home, but=key)
        return tell(f"made: {reason}", home / key)


def begun(home: Path, key: str, facts: Mapping[str, Any], holding: ExitStack) -> tuple[Path | None, str]:
    """An empty directory to make it in, and why; None where what lies there can be used.

    `holding`: keeps others from making it, too.

    Raises:
        OSError: nothing can be kept there.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = holding.enter_context((home / f"{key}.lock").open("a"))
    holding.enter_context(held(lock.fileno()))
    directory = home / key
    with suppress(FileNotFoundError):
        use(directory)
    reason = why_not(directory, facts)
    if not reason:
        with suppress(PermissionError):  # of another user: when it was used last is not known then
            os.utime(directory / NOTE)
        return None, ""
    fresh = Path(tempfile.mkdtemp(prefix=f"{key}.", suffix=".partial", dir=home))
    use(fresh)
    return fresh, reason


def why_not(directory: Path, facts: Mapping[str, Any]) -> str:
    """Why what lies in a directory cannot be used; nothing where it can."""
    try:
        note = note_in(directory)
        if note is None:
            return absence(directory.parent, facts)
        check(directory, note.files)
    except (OSError, DamagedError) as error:
        return f"what was kept is damaged: {error}"
    return difference(note.context, facts)


def note_in(directory: Path) -> Note | None:
    """The note of a directory; None where there is none that can be read."""
    try:
        return msgspec.json.decode((directory / NOTE).read_bytes(), type=Note)
    except (OSError, ValueError):
        return None


def absence(home: Path, facts: Mapping[str, Any]) -> str:
    """Why there is nothing for a context: how the latest of the others differs."""
    for directory in latest_first(home):
        if (note := note_in(directory)) is not None:
            return f"since the last time, {difference(note.context, facts)}"
    return "there was nothing yet"


def keep(fresh: Path, directory: Path, facts: dict[str, Any]) -> None:
    """Give what was made its name, once all of it is on the disk; what had the name goes."""
    note = Note(facts, marks(fresh, names_in(fresh), sync=True))
    write_whole(fresh / NOTE, msgspec.json.encode(note))
    if directory.exists():
        damaged = directory.with_name(f"{fresh.name}.gone")
        directory.rename(damaged)
        shutil.rmtree(damaged, ignore_errors=True)
    fresh.rename(directory)


def latest_first(home: Path) -> list[Path]:
    """Directories with a note, the one used last first."""
    noted: dict[Path, float] = {}
    for path in home.glob(f"*/{NOTE}"):
        with suppress(FileNotFoundError):  # another context's start removes it
            noted[path.parent] = path.stat().st_mtime
    return sorted(noted, key=lambda directory: -noted[directory])


def retire(home: Path, *, but: str) -> None:
    """Remove what was used longest ago, and what a start that was killed has left half made.

    What a process that lives has got stays.
    """
    old = [directory for directory in latest_first(home) if directory.name != but][KEPT - 1 :]
    for directory in [*old, *home.glob(f"{but}.*.partial")]:
        with suppress(OSError):  # in use, or gone
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
            finally:
                os.close(descriptor)


def use(directory: Path) -> None:
    """Keep others from removing a directory as long as this process lives, and gets not too many others.

    Raises:
        FileNotFoundError: there is none.
        OSError: it is just being removed, or has no locks.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    if len(_used) == USED_AT_ONCE:
        os.close(_used.popleft())
    _used.append(descriptor)


def made_apart(make: Callable[[Path], object]) -> Path:
    """What `make` writes, in a directory for temporary files."""
    directory = Path(tempfile.mkdtemp(prefix="ett-data-"))
    make(directory)
    return directory


@contextmanager
def held(descriptor: int) -> Iterator[None]:
    """Hold a lock on an open file, once whoever has it lets go."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
