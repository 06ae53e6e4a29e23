"""Pieces of HTML about what became slower. Pure: rows to strings, every word of a job inert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from html import escape

from ett_core.components import FAILURE, GROUP_COLOURS
from ett_core.fleet.regressions import Regression
from ett_dashboard.regressions.words import beside, sentence


def alarms(found: Sequence[Regression], zone: tzinfo, address: Callable[[str], str] | None = None) -> str:
    """What became slower, one card each; `address` gives that of the history of a family, if there is one."""
    cards = "".join(_card(each, zone, address) for each in found)
    return f'<div class="ett-alarms">{cards}</div>'


def _card(found: Regression, zone: tzinfo, address: Callable[[str], str] | None) -> str:
    also = f'<br><span class="ett-do">{escape(beside(found.changed))}</span>' if found.changed else ""
    body = (
        f'<span class="ett-chip" style="--hue:{GROUP_COLOURS[FAILURE]}">slower</span>'
        f"<span><bdi>{escape(sentence(found, zone))}</bdi>.{also}</span>"
    )
    if address is None:
        return f'<div class="ett-alarm">{body}</div>'
    return f'<a class="ett-alarm ett-go" href="{escape(address(found.family))}" target="_self">{body}</a>'
