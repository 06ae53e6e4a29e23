"""What a rank asks a standby for, as it lies in the directory of the sockets; and what may differ later."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

CHANGING = frozenset(
    {
        "ETT_ATTEMPT",
        "MASTER_ADDR",
        "MASTER_PORT",
        "RANK",
        "GROUP_RANK",
        "ROLE_RANK",
        "ROLE_NAME",
        "WORLD_SIZE",
        "GROUP_WORLD_SIZE",
        "ROLE_WORLD_SIZE",
        "TORCHELASTIC_ERROR_FILE",
        "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_USE_AGENT_STORE",
    }
)
"""Variables that torchrun and the launcher set anew at each start, and nothing reads before the program."""
OURS = frozenset({"ETT_DISABLED", "ETT_STANDBY"})
"""Variables that a standby has otherwise until it takes over."""


class Wanted(msgspec.Struct, frozen=True):
    """What a standby prepares: `function` (as `module:name`) is called with `arguments`.

    The rest is what the rank that asks was started with.
    """

    function: str
    arguments: list[str]
    argv: list[str]
    executable: str
    cwd: str
    environ: dict[str, str]

    def save(self, path: Path) -> None:
        """Write it so that nobody sees half of it, for this user only."""
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(self))
        fresh.replace(path)

    @classmethod
    def load(cls, path: Path) -> Wanted:
        """The one that lies there.

        Raises:
            OSError: it cannot be read.
            ValueError: it is none.
        """
        return msgspec.json.decode(path.read_bytes(), type=cls)

    def is_like(self, other: Wanted) -> bool:
        """A standby made for this one serves the other as well."""
        mine, others = (
            msgspec.structs.replace(each, environ=lasting(each.environ)) for each in (self, other)
        )
        return mine == others


def lasting(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that must be the same at each start."""
    return {name: text for name, text in environ.items() if name not in CHANGING | OURS}


def misfit(wanted: Wanted, asked: Mapping[str, Any], surroundings: Mapping[str, Any]) -> str:
    """Why a standby made for `wanted` cannot run the program that is `asked` for; nothing where it can.

    `surroundings` are those of the standby.

    >>> made = Wanted("m:f", [], ["python", "a.py"], "python", "/", {"X": "1", "RANK": "0"})
    >>> asked = {"argv": ["python", "a.py"], "started_with": {"X": "1", "RANK": "3"}, "surroundings": {}}
    >>> misfit(made, asked, {})
    ''
    >>> misfit(made, {**asked, "started_with": {"X": "2"}}, {})
    'X is another than when it was made'
    """
    if asked["argv"] != wanted.argv:
        return f"it was made for {words(wanted.argv)}, not for {words(asked['argv'])}"
    before, now = lasting(wanted.environ), lasting(asked["started_with"])
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    if changed:
        return f"{', '.join(changed)} {'is' if len(changed) == 1 else 'are'} another than when it was made"
    other = [name for name, found in surroundings.items() if asked["surroundings"].get(name) != found]
    return f"{' and '.join(other)} differs from the standby's" if other else ""


def words(argv: Sequence[str]) -> str:
    """A command for a person, shortened."""
    text = " ".join(argv)
    return f"`{text[:77]}...`" if len(text) > 80 else f"`{text}`"  # noqa: PLR2004 - a line
