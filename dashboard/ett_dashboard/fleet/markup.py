"""Pieces of HTML of the Fleet page. Pure: readings to strings."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.urgency import in_trouble
from ett_dashboard import markup, weights
from ett_dashboard.fleet.questions import Weighing
from ett_dashboard.fleet.rows import FleetWindow
from ett_dashboard.fleet.tiles import fleet_tiles
from ett_dashboard.fleet.words import left_out, missing, summary
from ett_dashboard.live import Reading
from ett_dashboard.rows import FleetAnswer
from ett_dashboard.words import many, plain

MOST_ALARMS = 3


def standing(
    answer: FleetAnswer,
    windows: Mapping[str, Reading[FleetWindow]],
    window: str,
    weighing: Weighing,
    asked: Mapping[str, str],
) -> str:
    """How the fleet is: the jobs in trouble, the figures of all, and a sentence on the window chosen."""
    troubled = [row for row in answer.jobs[:MOST_ALARMS] if in_trouble(row)]
    ratios = {
        name: reading.value.all.effective_ratio if reading.value else None
        for name, reading in windows.items()
    }
    figures = markup.tiles(fleet_tiles(answer.together, ratios, window, weighing.name), lead=True)
    alarms = markup.attention(troubled, answer.as_of, asked) if troubled else ""
    return markup.stacked(alarms, figures, _said(windows[window], window, weighing, asked))


def jobs_head(total: int, order: str) -> str:
    """What stands above the table of jobs."""
    note = "" if order else "what hurts most comes first; choose one to open it"
    return markup.section(many(total, "job"), note)


def _said(reading: Reading[FleetWindow], window: str, weighing: Weighing, asked: Mapping[str, str]) -> str:
    if reading.value is not None:
        sentence = summary(reading.value.all, window, weighing.name, weighing.factor)
        others = "" if asked.get("purpose") else left_out(reading.value.left_out)
        notes = (missing(reading.value.missing), weights.OF[weighing.name], others)
        told = markup.said(sentence) + markup.quiet(" ".join(filter(None, notes)))
    elif reading.lacks:
        told = markup.lacking(reading.error or "")
    elif reading.error is not None:
        told = markup.quiet(f"Not weighed: {plain(reading.error, 200)}. Settings take a price.")
    else:
        return ""
    return f'<div class="ett-summary">{told}</div>'
