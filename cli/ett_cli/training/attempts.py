"""With which number a job goes on that is started again by hand: none that an earlier attempt has had."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ett_trainer_hooks.identity.placement import ATTEMPTS_PER_RESTART, attempt_base
from ett_trainer_hooks.identity.values import Values
from ett_trainer_hooks.journal.pruned import first_event, pruned_attempts
from ett_trainer_hooks.journal.segments import journals_below, packed_journals_below


def told_attempt(job_id: str, journals: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variable that numbers this start, where neither the environment nor a scheduler does.

    For a job on one machine, whose journals tell of all earlier starts: packed or not, or by what is left of
    those that were removed.
    """
    if "ETT_ATTEMPT" in environ or attempt_base(Values(environ)):
        return {}
    number = next_attempt(job_id, journals)
    return {"ETT_ATTEMPT": str(number)} if number else {}


def next_attempt(job_id: str, journals: Path) -> int:
    """The number of the first attempt of another start: thousands count starts, as those of schedulers do."""
    paths = [*journals_below(journals), *packed_journals_below(journals)]
    firsts = map(first_event, paths)
    begun = [first.attempt for first in firsts if first is not None and first.job_id == job_id]
    begun += pruned_attempts(journals, job_id)
    return ATTEMPTS_PER_RESTART * (1 + max(begun) // ATTEMPTS_PER_RESTART) if begun else 0
