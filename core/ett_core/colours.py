"""Colours: one hue a group, one shade of it a component, the hues of states and of whose a failure is. Pure.

The app, its pictures and the boards all take them from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ett_core.components import (
    COMPONENTS,
    EFFECTIVE,
    FAILURE,
    GROUP_COLOURS,
    IDLENESS,
    UNKNOWN,
    group_of,
)

DARKEST, LIGHTEST = -0.30, 0.50
"""The ends of a group's shades: share of black (negative) or white that is mixed in."""

GROUP_OF_STATE: Mapping[str, str] = {
    "training": EFFECTIVE,
    "succeeded": EFFECTIVE,
    "cancelled": UNKNOWN,
    "unobserved": UNKNOWN,
    "lost": FAILURE,
    "stalled": FAILURE,
    "recovering": FAILURE,
    "failed": FAILURE,
    "timed_out": FAILURE,
    "preempted": FAILURE,
}
"""The group that a state of a job belongs to; those that are not named are idle."""

DOMAIN_COLOURS: Mapping[str, str] = {
    "workload": "#3b6fb6",
    "infrastructure": "#cf5b35",
    "platform": "#6fb8dd",
    "unknown": "#8a8f98",
}
"""One colour for whose a failure is, told apart with any colour vision and from the groups of time."""


@cache
def component_colour(component: str) -> str:
    """The shade of a component: the group's colour, dark for its first, light for its last one.

    >>> component_colour("training"), component_colour("unobserved")
    ('#1b7f79', '#8a8f98')
    """
    siblings = [name for name in COMPONENTS if group_of(name) == group_of(component)]
    base = GROUP_COLOURS[group_of(component)]
    if len(siblings) == 1 or component not in siblings:
        return base
    place = siblings.index(component) / (len(siblings) - 1)
    return mixed(base, DARKEST + place * (LIGHTEST - DARKEST))


def mixed(colour: str, share: float) -> str:
    """A colour with a share of white (positive) or black (negative) mixed in.

    >>> mixed("#808080", 0.5), mixed("#808080", -0.5), mixed("#808080", 0)
    ('#c0c0c0', '#404040', '#808080')
    """
    target = 255 if share > 0 else 0
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(c + (target - c) * abs(share)):02x}" for c in channels)


def state_group(state: str) -> str:
    """The group whose colour a state wears.

    >>> state_group("recovering"), state_group("compiling")
    ('failure', 'idleness')
    """
    return GROUP_OF_STATE.get(state, IDLENESS)
