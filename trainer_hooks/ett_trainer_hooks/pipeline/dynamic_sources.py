"""Sizes that varied in earlier starts of a job are left open from the first compilation of this one.

The journals of those starts on this host tell what was compiled again, and for what sizes; the advice
of `ett advise dynamic` on them becomes torch's setting, before torch is imported. Beside it stays what
was left open from the beginning, so that a start in which nothing varied any more does not undo it.
A value that the user has given stays. Frames are known by the names of what comes, not by their code:
this also holds for those that torch's own profile (`profile`) never finds again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from ett_core.events import AnyEvent, decode
from ett_core.shapes import advise, compilations_of, for_next_start, torch_version_of
from ett_core.shapes.sources import VARIABLE
from ett_trainer_hooks.identity import sanitised_job_id
from ett_trainer_hooks.identity.who import job_id_from_env
from ett_trainer_hooks.journal.segments import journals_in
from ett_trainer_hooks.pipeline.profile import SETTINGS, Teller
from ett_trainer_hooks.torch_private import Modules

WHAT = "dynamic sources"
READ_BYTES = 256 << 20
"""Journals are read up to this size together, the latest first."""
MOST_CHARACTERS = 32_768
"""A longer value is not set: the system takes no variable of any length."""

_WANTED = (b'"kind":"compile"', b'"kind":"attempt_start"')


def leave_open(
    teller: Teller, environ: MutableMapping[str, str] = os.environ, modules: Modules = sys.modules
) -> bool:
    """Have torch leave open what varied in earlier starts; False where nothing is set, with the reason told.

    Args:
        teller: whom to tell, such as the recorder.
        environ: the variables of the process, which name the job and its journals, and are set.
        modules: the modules that are loaded.
    """
    if environ.get(VARIABLE):
        teller.decision(WHAT, f"{VARIABLE} is set already and stays", {})
        return False
    if SETTINGS in modules:
        teller.decision(WHAT, "not set: torch was imported before, and has read its settings", {})
        return False
    job_id, place = job_id_from_env(environ), environ.get("ETT_JOURNAL_DIR")
    if not job_id or not place:
        teller.decision(WHAT, "not set: ETT_JOB_ID and ETT_JOURNAL_DIR name no job and its journals", {})
        return False
    events = list(_earlier(Path(place), sanitised_job_id(job_id)))
    compilations, version = list(compilations_of(events)), torch_version_of(events)
    value = for_next_start(compilations, torch_version=version)
    if not value or len(value) > MOST_CHARACTERS:
        why = "too much varied" if value else "nothing varied" if compilations else "nothing was compiled"
        teller.decision(WHAT, f"not set: {why} in the journals of earlier starts on this host", {})
        return False
    environ[VARIABLE] = value
    advice = advise(compilations, torch_version=version)
    graphs = {"graphs": advice.graphs, "expected_graphs": advice.expected}
    teller.decision(WHAT, f"left open, as it varied in earlier starts: {value}", graphs)
    return True


def _earlier(directory: Path, job_id: str) -> Iterator[AnyEvent]:
    """Starts and compilations in the journals of a job; what cannot be read is passed over."""
    left = READ_BYTES
    for journal in sorted(journals_in(directory), key=_written_at, reverse=True):
        try:
            left -= journal.stat().st_size
            if left < 0:
                return
            with journal.open("rb") as lines:
                wanted = [line for line in lines if any(mark in line for mark in _WANTED)]
        except OSError:
            continue
        for line in wanted:
            try:
                event = decode(line)
            except ValueError:
                continue
            if event.job_id == job_id:
                yield event


def _written_at(journal: Path) -> float:
    try:
        return journal.stat().st_mtime
    except OSError:
        return 0.0
