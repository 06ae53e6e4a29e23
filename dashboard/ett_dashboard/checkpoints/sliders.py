"""The sliders of the Checkpoints page: what the address supposes, else what was measured. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ett_dashboard.boxes import Box
from ett_dashboard.checkpoints.curve import Supposed

LEAST_BLOCKING_S = 0.001
"""A save that blocked for less would be free, and none too many."""
ROOM, FEWEST_STEPS = 4, 200
"""A slider reaches to so many times what was measured, and has so many steps at least."""


class Slider(NamedTuple):
    """One slider: its title, its step, and what its figure means."""

    title: str
    step: float
    meaning: str


SLIDERS: Mapping[str, Slider] = {
    "failures_a_day": Slider("Failures a day", 0.01, "Failures in a day of training."),
    "blocking_s": Slider(
        "Blocking of a save, s", 0.01, "Seconds that one save keeps the trainer from training."
    ),
    "slowed_s": Slider(
        "Slowing by a save, s",
        0.01,
        "Seconds by which one save in the background slows the steps beside it.",
    ),
    "upload_s": Slider(
        "Upload of a save, s",
        0.1,
        "Seconds from a save to its durability: until then a failure loses what lies before it, too.",
    ),
    "recovery_s": Slider(
        "Recovery of a failure, s",
        3.0,
        "Seconds from a failure back to the loop. It lifts the curve and leaves the best interval.",
    ),
}
"""By the name of the figure, which stands in the address."""


def supposed_in(asked: Mapping[str, str], measured: Supposed) -> Supposed:
    """The figures that an address supposes; those that were measured where it supposes none."""
    given = {name: value for name in SLIDERS if (value := _amount(asked.get(name, ""))) is not None}
    if not given:
        return measured
    if "blocking_s" in given:
        given["blocking_s"] = max(given["blocking_s"], LEAST_BLOCKING_S)
    return replace(measured, measured_percent=None, seen=None, **given)


def without(asked: Mapping[str, str]) -> dict[str, str]:
    """What an address asks for beside its suppositions."""
    return {name: value for name, value in asked.items() if name not in SLIDERS}


def slider(name: str, measured: Supposed, supposed: Supposed) -> Box:
    """The slider of a figure: it begins at what was measured, and shows what is supposed."""
    title, step, meaning = SLIDERS[name]
    usual = float(f"{getattr(measured, name):.3g}")
    most = max(ROOM * usual, FEWEST_STEPS * step, getattr(supposed, name))
    return Box(
        name=name,
        title=title,
        kind="slide",
        usual=f"{usual:g}",
        most=most,
        step=step,
        meaning=meaning,
        titled=True,
    )


def _amount(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value >= 0 and math.isfinite(value) else None
