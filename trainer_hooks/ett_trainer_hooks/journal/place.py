"""Where the events of a job can be kept: the directory that was asked for, else a temporary one.

Called once by a launcher, before the command starts, and once by each process that keeps a journal.
It writes and removes one small file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ett_core.reasons import reason_of
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal.parts import Sizes, journal_path
from ett_trainer_hooks.journal.writer import Journal


def fresh_directory() -> Path:
    """A new temporary directory, for this user only.

    Raises:
        OSError: there is no place for one.
    """
    return Path(tempfile.mkdtemp(prefix="ett-"))


def writable_place(
    wanted: Path,
    say: Callable[[str], object],
    temporary: Callable[[], Path] = fresh_directory,
    *,
    without: str = "the command runs unobserved",
) -> Path | None:
    """The absolute path of `wanted`, made if need be; where it takes no file, that of a temporary directory.

    None where no directory takes a file; `without` says what that means. Whatever is not as `wanted` is
    told to `say`.
    """
    try:
        return _checked(wanted)
    except OSError as error:
        problem = f"journal directory {wanted} cannot be written ({reason_of(error)})"
    try:
        place = _checked(temporary())
    except OSError as error:
        say(f"{problem}, nor can a temporary one ({reason_of(error)}); {without}")
        return None
    say(f"{problem}; events go to {place}")
    return place


def journal_of(environ: Mapping[str, str], identity: Identity, clock: Clock, guard: Guard) -> Journal:
    """The journal of this process, in `ETT_JOURNAL_DIR` or, with one warning, where a file can be written."""
    wanted = Path(environ["ETT_JOURNAL_DIR"])
    place = writable_place(wanted, partial(guard.say_once, "place"), without="events wait in memory")
    path = journal_path(place or wanted, identity.writer, os.getpid())
    sizes = Sizes.from_env(environ, partial(guard.say_once, "sizes"))
    return Journal(path, identity, clock=clock, guard=guard, sizes=sizes)


def _checked(directory: Path) -> Path:
    """The directory by its absolute path, after a file was written there.

    Raises:
        OSError: it cannot be made, listed or written.
    """
    place = directory.absolute()
    if not place.exists():
        place.mkdir(parents=True, exist_ok=True)
    os.scandir(place).close()
    with tempfile.NamedTemporaryFile(dir=place, prefix=".ett-") as probe:
        probe.write(b"\n")
        probe.flush()
    return place
