"""Pieces of HTML about what became slower. Pure: rows to strings, every word of a job inert."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from html import escape

from ett_core.components import FAILURE, GROUP_COLOURS
from ett_core.fleet.regressions import Regression
from ett_dashboard.addresses import to_family
from ett_dashboard.regressions.words import beside, sentence


def alarms(found: Sequence[Regression], zone: tzinfo, *, linked: bool = True) -> str:
    """What became slower, one card each; `linked`: each leads to the history of its family."""
    cards = "".join(_card(each, zone, linked=linked) for each in found)
    return f'<div class="ett-alarms">{cards}</div>'


def _card(found: Regression, zone: tzinfo, *, linked: bool) -> str:
    also = f'<br><span class="ett-do">{escape(beside(found.changed))}</span>' if found.changed else ""
    body = (
        f'<span class="ett-chip" style="--hue:{GROUP_COLOURS[FAILURE]}">slower</span>'
        f"<span><bdi>{escape(sentence(found, zone))}</bdi>.{also}</span>"
    )
    if not linked:
        return f'<div class="ett-alarm">{body}</div>'
    return (
        f'<a class="ett-alarm ett-go" href="{escape(to_family({}, found.family))}" target="_self">{body}</a>'
    )
