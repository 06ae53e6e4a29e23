"""Tables of where the time of a job went, by component and by area. Pure: rows to strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ett_core.colours import component_colour
from ett_core.components import GROUP_COLOURS, GROUPS, group_seconds, meaning_of_area
from ett_dashboard.addresses import settings_of, to_page
from ett_dashboard.frames import Share
from ett_dashboard.markup import GROUP_TITLES, heads, link
from ett_dashboard.tiles import WALL_MEANING
from ett_dashboard.words import duration, percent

PARTITION = (
    ("Component", "Every second of a job belongs to exactly one."),
    ("What it holds", "Which seconds are meant."),
    ("Time", "As hours, minutes and seconds, rounded; exact in the CSV."),
    ("Seconds", "The same in seconds."),
    ("Share", "Of the wall time; rounded so that the shares add up to 100.0 %."),
)
AREAS = (
    ("Area", "A part of the training cycle, by who can do something about it."),
    ("Time", "Wall time of the job, rounded."),
    ("Share", "Of the wall time."),
)
"""Columns of tables: title and definition."""


def partition_table(shares: Sequence[Share], asked: Mapping[str, str] | None = None) -> str:
    """Seconds and percent by component under their groups; ends with a sum of 100.0 %.

    With what was `asked` for, components lead to their definitions.
    """
    body = "".join(_group_rows(group, [s for s in shares if s.group == group], asked) for group in GROUPS)
    total = sum(share.seconds for share in shares)
    points = sum(share.percent for share in shares)
    return (
        f'<table class="ett-partition"><thead><tr>{heads(PARTITION)}</tr></thead><tbody>{body}'
        f'<tr class="ett-sum" title="{WALL_MEANING}"><td>Wall time</td><td></td><td>{duration(total)}</td>'
        f"<td>{total:,.1f}</td><td>{percent(points)}</td></tr></tbody></table>"
    )


def area_table(areas: dict[str, float]) -> str:
    """The same seconds as the published training cycle cuts them."""
    total = sum(areas.values()) or 1.0
    rows = "".join(
        f'<tr title="{escape(meaning_of_area(area))}"><td>{escape(area)}</td>'
        f"<td>{duration(seconds)}</td>"
        f"<td>{percent(100 * seconds / total)}</td></tr>"
        for area, seconds in areas.items()
        if seconds
    )
    head = f"<thead><tr>{heads(AREAS)}</tr></thead>"
    return f'<table class="ett-partition">{head}<tbody>{rows}</tbody></table>'


def _group_rows(group: str, shares: Sequence[Share], asked: Mapping[str, str] | None) -> str:
    if not shares:
        return ""
    title, meaning = GROUP_TITLES[group]
    total = group_seconds({share.component: share.seconds for share in shares})[group]
    points = sum(share.percent for share in shares)
    head = (
        f'<tr class="ett-group" style="--hue:{GROUP_COLOURS[group]}"><td>{title}</td><td>{meaning}</td>'
        f"<td>{duration(total)}</td><td>{total:,.1f}</td><td>{percent(points)}</td></tr>"
    )
    return head + "".join(_share_row(share, asked) for share in shares)


def _share_row(share: Share, asked: Mapping[str, str] | None) -> str:
    name = escape(share.component)
    if asked is not None:
        name = link(to_page("definitions", settings_of(asked), of=share.component), name)
    return (
        f'<tr class="ett-share" data-component="{escape(share.component)}" title="{escape(share.meaning)}">'
        f'<td><i style="background:{component_colour(share.component)}"></i>{name}</td>'
        f"<td>{escape(share.meaning)}</td><td>{duration(share.seconds)}</td>"
        f"<td>{share.seconds:,.1f}</td><td>{percent(share.percent)}</td></tr>"
    )
