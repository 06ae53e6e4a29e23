"""What was seen earlier: by time where it is known, then by place in its log. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ett_core.failures.lines import Sighting

SKEW_S = 5.0
"""Clocks of nodes differ; sightings of different logs so close together have no order."""


def by_time(sighting: Sighting) -> tuple[bool, float, str, int]:
    """What sightings are sorted by; those without a time come last."""
    unknown = sighting.order_s is None
    return (unknown, sighting.order_s or 0.0, sighting.source, sighting.line)


def earliest(sightings: Sequence[Sighting]) -> Sighting | None:
    """The first of them, None of none."""
    return min(sightings, key=by_time, default=None)
