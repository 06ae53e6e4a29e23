"""When a cause may be called certain. Pure.

Its line says what happened and not how it was noticed, labelled logs bear its row out (`Rule.certain`), no
other line names another cause, and nobody had waited or lost a partner before.
"""

from __future__ import annotations

from collections.abc import Sequence

from ett_core.failures.lines import Sighting
from ett_core.failures.order import SKEW_S, by_time
from ett_core.failures.rule import CASCADE, ROOT

_EFFECTS = ("collective_timeout", "peer_failure", "rendezvous_failure", "straggler", "gpu_busy")
"""Classes that say what was seen and not why it came to that: never certain."""
TAKEN_AWAY = {"preempted", "evicted", "maintenance"}
"""Words of one who took the hardware back, which say the same."""


def is_certain(chosen: Sighting, seen: Sequence[Sighting]) -> bool:
    """Whether the sighting that was chosen among all can be called the cause without a doubt."""
    if not chosen.certain or chosen.role != ROOT or chosen.weak or chosen.failure_class in _EFFECTS:
        return False
    if any(_is_rival(other, chosen) for other in seen):
        return False
    before = (s for s in seen if s.role == CASCADE and not s.weak and s.failure_class in _EFFECTS)
    return not any(s.source == chosen.source and by_time(s) < by_time(chosen) for s in before)


def _is_rival(other: Sighting, chosen: Sighting) -> bool:
    """Whether a line that is not clearly later names another cause."""
    both = {other.failure_class, chosen.failure_class}
    if other.role != ROOT or other.weak or other.generic or len(both) == 1 or both <= TAKEN_AWAY:
        return False
    if None in (other.order_s, chosen.order_s):
        return True
    return (other.order_s or 0.0) - (chosen.order_s or 0.0) <= SKEW_S
