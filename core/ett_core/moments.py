"""When something was said, so that the latest word counts however events arrive."""

from __future__ import annotations

import sys
from typing import TypeAlias

from ett_core.events import AnyEvent

Moment: TypeAlias = tuple[int, float, str, int]
"""Attempt, Unix seconds, writer, sequence number."""


def moment_of(event: AnyEvent) -> Moment:
    """The moment of an event."""
    return (event.attempt, event.time, sys.intern(event.writer), event.seq)
