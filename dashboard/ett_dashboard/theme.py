"""Colours and the look of the app: one hue a group, one shade of it a component."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ett_core.components import COMPONENTS, GROUP_COLOURS, group_of

ASSETS = Path(__file__).parent / "assets"
DARKEST, LIGHTEST = -0.30, 0.50
"""The ends of a group's shades: share of black (negative) or white that is mixed in."""

STREAMLIT_OPTIONS: Mapping[str, str | bool] = {
    "server.headless": True,
    "server.fileWatcherType": "none",
    "server.showEmailPrompt": False,
    "server.runOnSave": False,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "logger.hideWelcomeMessage": True,
    "logger.level": "warning",
    "theme.light.primaryColor": "#1b7f79",
    "theme.light.backgroundColor": "#f6f7f5",
    "theme.light.secondaryBackgroundColor": "#ffffff",
    "theme.light.textColor": "#1c2529",
    "theme.light.borderColor": "#dcdfda",
    "theme.dark.primaryColor": "#46b3ab",
    "theme.dark.backgroundColor": "#12181b",
    "theme.dark.secondaryBackgroundColor": "#1a2226",
    "theme.dark.textColor": "#e6ebe9",
    "theme.dark.borderColor": "#2e3a3f",
    "theme.baseRadius": "6px",
    "theme.metricValueFontSize": "1.55rem",
    "theme.showWidgetBorder": True,
}
"""Settings of Streamlit under which the app runs, beside its address."""


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


@cache
def style() -> str:
    """The style sheet of the pieces that the app draws itself."""
    return (ASSETS / "style.css").read_text(encoding="utf-8")
