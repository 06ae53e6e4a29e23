"""In what a job stood still, from what launchers tell of the phases of its ranks: pure.

Ranks report when a save and a compilation begin. Where one was open while nothing moved, the others
waited for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ett_core.evidence_log import EvidenceLine

STALL = "stall"
_CLASS_OF_PHASE = {"checkpoint": "checkpoint_stall", "compile": "compile_slow"}
_BEGAN = "no progress for "
_OVER = "there is progress again"
_RANKS_IN = re.compile(r"ranks? ([\d, -]{1,300}) in (checkpoint|compile)\b", re.ASCII)
_SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


class StalledIn(NamedTuple):
    """The class that this is, the rank where only one was in the phase, and the words that told."""

    failure_class: str
    rank: int | None
    text: str


def stalled_in(evidence: Iterable[EvidenceLine]) -> StalledIn | None:
    """The save or the compilation in which a job stood still at last; None where it was in neither.

    Args:
        evidence: what was told of one attempt, in any order.
    """
    last: dict[str, EvidenceLine] = {}
    for line in sorted(line for line in evidence if line.source == STALL):
        if line.text.startswith(_BEGAN):
            last[line.writer] = line
        elif _OVER in line.text:
            last.pop(line.writer, None)
    told = [
        (match[2], match[1], line.text) for line in last.values() for match in _RANKS_IN.finditer(line.text)
    ]
    phases = {phase for phase, _, _ in told}
    if len(phases) != 1:
        return None
    spans = [span for _, ranks, _ in told for span in _SPAN.findall(ranks)]
    only = int(spans[0][0]) if len(spans) == 1 and not spans[0][1] else None
    return StalledIn(_CLASS_OF_PHASE[told[0][0]], only, told[0][2])
