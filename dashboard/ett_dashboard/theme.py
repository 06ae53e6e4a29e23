"""The look of the app: its two themes and its style sheet."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).parent / "assets"

STREAMLIT_OPTIONS: Mapping[str, str | bool] = {
    "server.headless": True,
    "server.fileWatcherType": "none",
    "server.showEmailPrompt": False,
    "server.runOnSave": False,
    "runner.postScriptGC": False,  # a full collection after each refresh costs more than all else in it
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "logger.hideWelcomeMessage": True,
    "logger.level": "warning",
    "theme.light.primaryColor": "#176d68",
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
def style() -> str:
    """The style sheet of the pieces that the app draws itself; `--ett-ground` is the colour behind them."""
    light, dark = (STREAMLIT_OPTIONS[f"theme.{name}.backgroundColor"] for name in ("light", "dark"))
    ground = f".stApp {{ --ett-ground: light-dark({light}, {dark}); }}\n"
    return ground + (ASSETS / "style.css").read_text(encoding="utf-8")


def colours() -> str:
    """The colours of both themes as declarations of CSS; which one counts follows `color-scheme`."""
    light, dark = variables("light"), variables("dark")
    return "".join(f"{name}:light-dark({light[name]},{dark[name]});" for name in light)


def variables(theme: str) -> dict[str, str]:
    """The colours of a theme by the names that Streamlit gives them in style sheets."""
    names = {
        "text-color": "textColor",
        "background-color": "backgroundColor",
        "secondary-background-color": "secondaryBackgroundColor",
        "border-color": "borderColor",
        "primary-color": "primaryColor",
    }
    return {f"--st-{css}": str(STREAMLIT_OPTIONS[f"theme.{theme}.{name}"]) for css, name in names.items()}


def script(*names: str) -> str:
    """The script of a component; whichever comes first lets links be followed, before it draws any."""
    return "\n".join((ASSETS / one).read_text(encoding="utf-8") for one in ("go.js", *names))
