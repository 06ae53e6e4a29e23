"""A standby for a program that knows of none: what it has imported is imported ahead, nothing else.

In the rank, `ask` runs once after the first steps, on the thread that trains. In its standby, `import_ahead`
puts the seams in place and imports; the program then runs there from its first line and is observed as ever.
Only installed packages are imported, never modules of the program. Torch reads variables when it is imported:
those that the program had set by then are set beforehand; where it has set others later there is no standby.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from importlib import import_module
from types import ModuleType

from ett_trainer_hooks.auto.install import install
from ett_trainer_hooks.pipeline import standby
from ett_trainer_hooks.recording.recorder import Recorder
from ett_trainer_hooks.standby.handing_over import started_with
from ett_trainer_hooks.standby.understudy import State

OURS = frozenset({"ett_core", "ett_trainer_hooks"})
READ_AT_IMPORT = ("TORCH", "PYTORCH", "TRITON")
"""What variables begin with that torch and Triton read once."""
PLACES = "_DIR"
"""What those end with that torch sets by itself once it compiles."""


def ask(
    at_import: Mapping[str, str], recorder: Recorder, environ: MutableMapping[str, str] = os.environ
) -> None:
    """Ask for a standby; `at_import` is what was set before torch was imported."""
    if late := set_late(at_import, environ):
        why = f"{', '.join(late)}: set after torch was imported, so that a standby would not know of it"
        recorder.decision("no standby", why)
        return
    own = set_before(at_import, State.started_with or started_with())
    standby.ask_for(
        f"{__name__}:{import_ahead.__name__}", [json.dumps(own), *installed(sys.modules)], environ
    )


def import_ahead(own: str, *names: str) -> None:
    """Import modules as the program will find them: with its variables, and the seams in place."""
    os.environ.update(json.loads(own))
    install()
    for name in names:
        with suppress(Exception):  # the program tells what it lacks
            import_module(name)


def installed(modules: Mapping[str, ModuleType]) -> list[str]:
    """The modules of installed packages, in the order in which they were imported; none of ours."""
    places = tuple({sysconfig.get_path(kind) + os.sep for kind in ("purelib", "platlib")})
    found = []
    for name, module in list(modules.items()):
        spec = getattr(module, "__dict__", {}).get(
            "__spec__"
        )  # asked otherwise, a lazy one would be imported
        if spec is None or spec.name != name or name.partition(".")[0] in OURS:
            continue
        if (spec.origin or "").startswith(places):
            found.append(name)
    return found


def set_before(at_import: Mapping[str, str], at_start: Mapping[str, str]) -> dict[str, str]:
    """The variables that the program had set when it imported torch.

    >>> set_before({"A": "1", "B": "2", "ETT_X": "3"}, {"A": "1"})
    {'B': '2'}
    """
    return {
        name: text
        for name, text in at_import.items()
        if at_start.get(name) != text and not name.startswith("ETT_")
    }


def set_late(at_import: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The variables that torch would have read, and that the program has set later.

    >>> set_late({}, {"TORCH_LOGS": "x", "TORCHINDUCTOR_CACHE_DIR": "/x", "HOME": "/"})
    ['TORCH_LOGS']
    """
    return sorted(
        name
        for name, text in now.items()
        if name.startswith(READ_AT_IMPORT) and not name.endswith(PLACES) and at_import.get(name) != text
    )
