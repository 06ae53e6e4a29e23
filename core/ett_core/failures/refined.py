"""What other lines add to the line that tells why an attempt ended: they may name it better. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ett_core.failures.lines import Sighting
from ett_core.failures.order import SKEW_S, by_time
from ett_core.failures.rule import CONTEXT

FRAMES_BELOW = 6
"""Lines from the last frame that tells of shared memory to the exception."""
_NAMES_A_PATH = re.compile(r": ['\"]?/", re.ASCII)
_OOM_CALL = re.compile(r"invoked oom[- ]killer|oom-kill:constraint", re.IGNORECASE | re.ASCII)
_VICTIM = re.compile(r"killed process \d", re.IGNORECASE | re.ASCII)


def refined(chosen: Sighting, seen: Sequence[Sighting]) -> Sighting:
    """The chosen one of all sightings, or the one that says the same better."""
    return _of_shared_memory(_with_victim(_sent_by_somebody(chosen, seen), seen), seen)


def _sent_by_somebody(chosen: Sighting, seen: Sequence[Sighting]) -> Sighting:
    """Where the kernel says that it ended nothing for want of memory, a bare SIGKILL came from somebody."""
    denied = any(s.role == CONTEXT and s.failure_class == "host_oom" for s in seen)
    if denied and chosen.weak and chosen.failure_class == "host_oom":
        return msgspec.structs.replace(chosen, failure_class="external_stop")
    return chosen


def _of_shared_memory(chosen: Sighting, seen: Sequence[Sighting]) -> Sighting:
    """A device without space left, in a traceback through what lies in shared memory, is that memory."""
    if chosen.failure_class != "storage_full" or _NAMES_A_PATH.search(chosen.text):
        return chosen
    near = (s for s in seen if s.role == CONTEXT and s.failure_class == "shm_exhausted")
    if any(s.source == chosen.source and 0 < chosen.line - s.line <= FRAMES_BELOW for s in near):
        return msgspec.structs.replace(chosen, failure_class="shm_exhausted")
    return chosen


def _with_victim(chosen: Sighting, seen: Sequence[Sighting]) -> Sighting:
    """Where the kernel ran out of memory: the line that says which process it ended, not the call before."""
    if chosen.failure_class != "host_oom" or not _OOM_CALL.search(chosen.text):
        return chosen
    later = (s for s in seen if s.source == chosen.source and by_time(s) > by_time(chosen))
    told = (s for s in later if s.failure_class == "host_oom" and _VICTIM.search(s.text))
    return next((s for s in told if (s.order_s or 0.0) - (chosen.order_s or 0.0) <= SKEW_S), chosen)
