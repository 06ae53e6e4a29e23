"""Sizes that earlier starts of a job have seen (PGO): kept under the job's name, found by the next start.

Torch keeps which sizes vary, a file a rank in Inductor's cache directory, once a name is given to
what belongs together; the next start compiles with those sizes left open. `keep` gives it the job's
name, before torch is imported: then it holds on all threads. Names that the user has given stay.

Torch finds a frame again by its file, line, name and closure. The hash of a closure is another in
every process (where it holds code; up to Python 3.11, whatever it holds), so such a frame is never
found: a module of torch's own that is compiled as it is (`nn.Sequential`), a `forward` that calls
`super()`, a function within another. The first is told when it is compiled (`recording.compiling`);
`not_found` names the others, from the second start on.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, MutableMapping
from typing import Protocol

from ett_trainer_hooks import torch_private
from ett_trainer_hooks.identity import sanitised_job_id
from ett_trainer_hooks.identity.who import job_id_from_env
from ett_trainer_hooks.recording.recorder import Recorder
from ett_trainer_hooks.torch_private import Modules

NAMES = ("TORCH_COMPILE_JOB_ID", "TORCH_COMPILE_STICKY_PGO_KEY")
"""Torch's variables for the name, the first one first; read once, when torch is imported."""

WHAT = "profile"
PREFIX = "ett:"
"""Before the job's name: torch takes `1` and `0` for something else, and refuses names in `mast:`."""

SETTINGS = "torch.compiler.config"
"""The module in which torch keeps what it has read of its variables."""
_BARE = "torch/_dynamo/external_utils.py"
_PATH = re.compile(r"^(hash\([^)]*\)).*(:\d+:[^:]*)$", re.DOTALL)


class Teller(Protocol):
    """Takes decisions."""

    def decision(self, what: str, why: str, values: Mapping[str, float]) -> None:
        """Something was decided, in words."""


def keep(
    teller: Teller,
    environ: MutableMapping[str, str] = os.environ,
    modules: Modules = sys.modules,
) -> bool:
    """Have torch keep the sizes that vary under the job's name; False where it will not, which is told.

    Args:
        teller: whom to tell, such as the recorder.
        environ: the variables of the process, which name the job and are set.
        modules: the modules that are loaded.
    """
    if any(environ.get(name) for name in NAMES):
        return True
    job_id = job_id_from_env(environ)
    if not job_id:
        teller.decision(WHAT, "not kept: ETT_JOB_ID is not set, and no scheduler names the job", {})
        return False
    if SETTINGS in modules:
        teller.decision(WHAT, "not kept: torch was imported before, and has read its settings", {})
        return False
    environ[NAMES[0]] = PREFIX + sanitised_job_id(job_id)
    return True


def tell(recorder: Recorder, modules: Modules = sys.modules) -> None:
    """Tell which frames were not found though an earlier start had seen them; nothing where all were."""
    lost = not_found(modules)
    if lost:
        recorder.decision(WHAT, words(lost), {"not_found": len(lost)})


def not_found(modules: Modules = sys.modules) -> tuple[str, ...]:
    """Frames that earlier starts have seen, and that torch has taken for others in this one.

    Each as torch writes it: hash and name of the file, line, function. Without modules of torch's own
    that are compiled as they are.
    """
    lost = added(torch_private.part("profile_found", modules), torch_private.part("profile", modules))
    return tuple(name for name in lost if _BARE not in name)


def added(before: Mapping[object, object] | None, now: Mapping[object, object] | None) -> tuple[str, ...]:
    """Names of which there are more now, of those that there were, in order.

    Torch knows a file by its hash, so that it may lie elsewhere now.

    >>> added({"hash(1)/a.py:3:f": 0}, {"hash(1)/a.py:3:f": 0})
    ()
    >>> added({"hash(1)/a.py:3:f": 0}, {"hash(1)/a.py:3:f": 0, "hash(1)/b.py:3:f": 0})
    ('hash(1)/b.py:3:f',)
    """
    if not before or not now:
        return ()
    earlier, later = (Counter(_without_path(str(each)) for each in state) for state in (before, now))
    latest = {_without_path(str(each)): str(each) for each in now}
    return tuple(sorted(name for code, name in latest.items() if 0 < earlier[code] < later[code]))


def _without_path(name: str) -> str:
    return _PATH.sub(r"\1\2", name)


def words(lost: tuple[str, ...]) -> str:
    """What to know and to do, in a sentence."""
    return (
        f"sizes seen before were not found for {', '.join(lost)}: another closure each start; "
        "compile what has no closure: without super(), and without names of a function around it"
    )
