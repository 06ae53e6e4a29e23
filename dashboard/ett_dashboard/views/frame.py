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
from ett_dashboard.pause import is_paused
from ett_dashboard.settings import of_app
from ett_dashboard.views import address
from ett_dashboard.words import moment

OLD = "<style>[class*=st-key-live] {opacity: 0.45; filter: grayscale(0.85);}</style>"


def live(draw: Callable[[], None]) -> None:
    """Draw now and again every few seconds, unless the viewer paused it."""
    every_s = None if is_paused() else of_app().refresh_s
    st.fragment(draw, run_every=every_s)()


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


def told(*pieces: str) -> None:
    """Draw pieces of HTML one below the other as one element: each one costs the browser time.

    A refresh that changes any of them draws all of them anew: what a viewer scrolls, or reaches by keyboard,
    is not joined with what goes on.
    """
    shown = markup.stacked(*pieces)
    if shown:
        st.html(shown)


def lacking(what: str) -> str:
    """What says that only the API of an exporter has something; empty where one is read."""
    return "" if of_app().source.is_whole else markup.lacking(f"{what} needs the exporter's API")


def lacks(what: str) -> bool:
    """Say in the place of something that only the API of an exporter has it; False where one is read."""
    said = lacking(what)
    if said:
        st.html(said)
    return bool(said)


def zone() -> tzinfo:
    """The time zone of the viewer: as chosen, as the app was told, as the browser says, else UTC."""
    return zone_of(address.asked().get("zone"), of_app().zone, st.context.timezone)


def zone_of(*names: str | None) -> tzinfo:
    """The first zone that is named; UTC where none is, or there is no such zone."""
    try:
        return ZoneInfo(next((name for name in names if name), "UTC"))
    except (ZoneInfoNotFoundError, ValueError):
        return timezone.utc


def as_of(moment_s: float) -> str:
    """The moment for which figures stand, for the viewer, and whether they are held there."""
    return as_of_in(zone(), moment_s) + (", paused" if is_paused() else "")


def as_of_in(place: tzinfo, moment_s: float) -> str:
    """The moment for which figures stand, in a zone, with its name."""
    name = datetime.fromtimestamp(moment_s, place).tzname() or ""
    return f"as of {moment(moment_s, place)[11:]} {name}".rstrip()
