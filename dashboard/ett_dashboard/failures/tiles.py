"""Figures that stand at the head of the failures of a fleet and of one failure. Pure."""

from __future__ import annotations

from ett_dashboard.failures.rows import FailureOfJob, Failures, Nodes
from ett_dashboard.failures.words import recurrence
from ett_dashboard.tiles import Tile
from ett_dashboard.words import HOUR_S, compact, duration, hours, percent, whole

LOST_MEANING = (
    "Accelerator-hours of training thrown away, of standing still and of recovery; "
    "queueing holds no accelerator and counts nothing."
)
COST_MEANING = "The same in money, at the price of an accelerator-hour in the settings, else of the exporter."


def failures_tiles(found: Failures, nodes: Nodes | None, price: float | None = None) -> list[Tile]:
    """What failures of a window cost together, and how many things are to blame.

    `price` of an accelerator-hour, where it is not the exporter's that counts.
    """
    worst = max(found.groups, key=lambda group: group.lost_accelerator_s, default=None)
    share = None if worst is None or worst.lost_ratio is None else 100 * worst.lost_ratio
    loops = sum(failure.recurrence.crash_loop for failure in found.failures)
    suspects = sum(node.suspect for node in nodes.nodes) if nodes else None
    tiles: list[Tile] = [
        (
            "Lost to failures",
            hours(found.lost_accelerator_s),
            LOST_MEANING,
        ),
        ("Failures", whole(found.total), "Attempts that ended before they were through."),
        ("Worst class", percent(share), "Share of all that was lost that the costliest class made up."),
        (
            "In crash loops",
            whole(loops),
            "Failures listed here that left their job where the one before had left it.",
        ),
        ("Suspect nodes", whole(suspects), "Nodes that fail more often than chance explains."),
    ]
    shown = tiles if found.is_listed else tiles[:3]
    return _priced(shown, found.lost_accelerator_s, price, found.cost)


def cost_tiles(failure: FailureOfJob, price: float | None = None) -> list[Tile]:
    """What one failure cost, and how often it has come; `price` as above."""
    cost = failure.losses
    tiles: list[Tile] = [
        (
            "Lost",
            hours(failure.lost_accelerator_s),
            f"{LOST_MEANING} On {whole(cost.accelerators)} accelerators.",
        ),
        ("Training lost", duration(cost.unsaved_s), "Training whose steps this failure took back."),
        ("Stood still", duration(cost.stalled_s), "Time without progress before the failure was noticed."),
        (
            "Recovery",
            duration(cost.recovery_s),
            f"From the failure to the next loop or failure; {duration(cost.queue_s)} of it in a queue.",
        ),
        ("Back in the loop after", _back(failure), "Time to recover: from the failure to the next loop."),
        _row(failure),
    ]
    return _priced(tiles, failure.lost_accelerator_s, price, failure.cost)


def _priced(tiles: list[Tile], lost_s: float, price: float | None, cost: float | None) -> list[Tile]:
    """The tiles with what was lost in money after the first, where anything has a price."""
    money = cost if price is None else price * lost_s / HOUR_S
    return tiles if money is None else [tiles[0], ("Cost", compact(money), COST_MEANING), *tiles[1:]]


def _row(failure: FailureOfJob) -> Tile:
    said = recurrence(failure)
    label = "In a crash loop" if failure.recurrence.crash_loop else "In a row"
    told = f" This one: {said}." if failure.recurrence.count > 1 else " This one is the first."
    meaning = f"Failures of this job by the same class, one after the other.{told}"
    return label, whole(failure.recurrence.count), meaning


def _back(failure: FailureOfJob) -> str:
    return "not so far" if failure.ttr_s is None else duration(failure.ttr_s)
