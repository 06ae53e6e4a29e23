"""What the pages share: the live area, and the signs of age."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from ett_dashboard import markup
from ett_dashboard.live import Reading
from ett_dashboard.settings import of_app
from ett_dashboard.views import address
from ett_dashboard.words import moment

PAUSED = "paused"
OLD = "<style>[class*=st-key-live] {opacity: 0.45; filter: grayscale(0.85);}</style>"


def live(draw: Callable[[], None]) -> None:
    """Draw now and again every few seconds, unless the viewer paused it."""
    paused = bool(st.session_state.get(PAUSED, False))
    every_s = None if paused else of_app().refresh_s
    st.fragment(draw, run_every=every_s)()


def pause_toggle() -> None:
    """The switch that holds the page still."""
    st.toggle(
        "Pause", key=PAUSED, help="Holds the figures still; the page refreshes again when switched off."
    )


def signs_of_age(reading: Reading[Any]) -> None:
    """A banner, and everything greyed, where the source could not be read; a word where it cannot know.

    The place is always taken, so that what follows keeps its node when the banner comes and goes.
    """
    with st.container(key="age"):
        if reading.lacks:
            st.html(markup.lacking(reading.error or ""))
        elif reading.error is not None:
            age_s = None if reading.read_at is None else max(time.time() - reading.read_at, 0.0)
            st.html(markup.unreachable(of_app().source.name, reading.error, age_s) + OLD)


def lacks(what: str) -> bool:
    """Say in the place of something that only the API of an exporter has it; False where one is read."""
    if of_app().source.is_whole:
        return False
    st.html(markup.lacking(f"{what} needs the exporter's API"))
    return True


def zone() -> tzinfo:
    """The time zone of the viewer: as chosen, as the app was told, as the browser says, else UTC."""
    names = (address.asked().get("zone"), of_app().zone, st.context.timezone)
    try:
        return ZoneInfo(next((name for name in names if name), "UTC"))
    except (ZoneInfoNotFoundError, ValueError):
        return timezone.utc


def as_of(moment_s: float) -> str:
    """The moment for which figures stand, for the viewer, and whether they are held there."""
    name = datetime.fromtimestamp(moment_s, zone()).tzname() or ""
    held = ", paused" if st.session_state.get(PAUSED, False) else ""
    return f"as of {moment(moment_s, zone())[11:]} {name}".rstrip() + held
