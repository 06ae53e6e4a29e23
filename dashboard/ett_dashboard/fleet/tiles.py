"""The figures at the head of the Fleet page. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.components import TRAINING
from ett_dashboard import words
from ett_dashboard.rows import JobsTogether
from ett_dashboard.tiles import Tile
from ett_dashboard.weights import OF
from ett_dashboard.windows import WITHIN

TRAINING_NOW = (
    "Running jobs that train at this moment, of all that are not over, each counting the same; "
    "the others start, save, compile, recover or stand still."
)
SHORT: Mapping[str, str] = {"1h": "1 h", "24h": "24 h", "7d": "7 d"}


def fleet_tiles(
    jobs: JobsTogether, ratios: Mapping[str, float | None], window: str, weight: str
) -> list[Tile]:
    """ETT over each window (that which was chosen first), and how the jobs are now."""
    order = [window, *(name for name in SHORT if name != window)]
    return [
        *(_ratio(name, ratios.get(name), weight) for name in order),
        (
            "Training now",
            f"{words.whole(jobs.states.get(TRAINING, 0))} of {words.whole(jobs.live)}",
            TRAINING_NOW,
        ),
        (
            "In trouble",
            words.whole(jobs.in_trouble),
            "Running jobs that are lost, stalled, recovering or unobserved.",
        ),
        (
            "Unsaved now",
            words.duration(jobs.unsaved_exposure_s),
            "Training that would be lost if all running jobs died now.",
        ),
    ]


def _ratio(window: str, ratio: float | None, weight: str) -> Tile:
    meaning = (
        f"Effective training time: share of the time within {WITHIN[window]} that was training whose effect "
        f"survives. {OF[weight]}"
    )
    return (f"ETT, {SHORT[window]}", words.ratio(ratio), meaning)
