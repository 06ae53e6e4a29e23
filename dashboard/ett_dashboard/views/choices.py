"""What a viewer chooses, kept in the address.

The address is the one place that holds a choice: a widget shows what it says and writes it back,
so that links, the back button and a reload all lead to the same view. Read choices where a page
begins and hand them on; a refresh in between may still carry the address of before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zoneinfo import available_timezones

import streamlit as st

from ett_dashboard.client import Question
from ett_dashboard.job_fields import FILTERS
from ett_dashboard.live import shared_reads
from ett_dashboard.rows import Groups
from ett_dashboard.settings import of_app
from ett_dashboard.words import plain

WINDOWS: Mapping[str, str] = {"1h": "1 hour", "24h": "24 hours", "7d": "7 days"}
WEIGHTS: Mapping[str, str] = {"accelerator": "Accelerator-hours", "job": "Jobs", "cost": "Cost"}
WEIGHT_MEANING = (
    "What a second of a job weighs. Accelerator-hours: as many as accelerators it holds. Jobs: every job "
    "the same. Cost: the accelerators it holds times their price."
)
DEAREST = 1e6


def one_of(
    name: str, title: str, options: Mapping[str, str], *, default: str = "", meaning: str | None = None
) -> str:
    """A choice between few: the key of the chosen option."""
    now = st.query_params.get(name, default)
    now = now if now in options else default or next(iter(options))
    key = _key(name)
    drawn = st.query_params.get(name, "")
    st.session_state[key] = now
    st.segmented_control(
        title,
        list(options),
        format_func=lambda option: options[option],
        key=key,
        required=True,
        help=meaning,
        on_change=lambda: _write(name, default, drawn),
    )
    return now


def any_of(name: str, title: str, options: Sequence[str]) -> str:
    """A choice among many words that come from jobs; empty where all are meant."""
    now = st.query_params.get(name, "")
    key = _key(name)
    drawn = st.query_params.get(name, "")
    st.session_state[key] = now or None
    shown = sorted({*options, now} - {""})
    st.selectbox(
        title,
        shown,
        format_func=lambda word: plain(word, 40),
        key=key,
        placeholder=f"Any {title.lower()}",
        index=None,
        label_visibility="collapsed",
        on_change=lambda: _write(name, "", drawn),
    )
    return now


def words(name: str, title: str, hint: str) -> str:
    """Free words."""
    now = st.query_params.get(name, "")
    key = _key(name)
    drawn = st.query_params.get(name, "")
    st.session_state[key] = now
    st.text_input(
        title,
        key=key,
        placeholder=hint,
        label_visibility="collapsed",
        on_change=lambda: _write(name, "", drawn),
    )
    return now


def window(windows: Mapping[str, str] = WINDOWS) -> str:
    """How far back the page looks: 1h, 24h, 7d."""
    return one_of("window", "Window", windows, default="24h")


def weight() -> str:
    """What a second of a job weighs: accelerator, job or cost."""
    return one_of("weight", "Weighted by", WEIGHTS, default="accelerator", meaning=WEIGHT_MEANING)


def of_jobs() -> dict[str, str]:
    """The filters of jobs: label or "text" to what was chosen; those that choose nothing are left out."""
    chosen = {}
    with st.container(horizontal=True, key="filters"):
        for name in FILTERS:
            chosen[name] = any_of(name, name.capitalize(), _told(name))
        chosen["text"] = words("text", "Text", "Part of a name")
    return {name: value for name, value in chosen.items() if value}


def settings() -> None:
    """The settings of the viewer: time zone and price."""
    zones = {"": "That of the browser", **{name: name for name in sorted(available_timezones())}}
    _from_list("zone", "Time zone", zones)
    own = of_app().price_per_hour
    told = f"{own:g}, as the app was told" if own else "none, unless the exporter knows one"
    now = _number(st.query_params.get("price", ""))
    key = _key("price")
    drawn = st.query_params.get("price", "")
    st.session_state[key] = now
    st.number_input(
        "Price of an accelerator-hour",
        min_value=0.0,
        max_value=DEAREST,
        value=None,
        placeholder=told,
        key=key,
        help="Turns accelerator-hours into money on every page. Empty: the price of the app or the exporter.",
        on_change=lambda: _write("price", "", drawn),
    )


def price_per_hour() -> float | None:
    """The price of an accelerator-hour that the viewer or the app says; None where neither does."""
    return _number(st.query_params.get("price", "")) or of_app().price_per_hour


def _from_list(name: str, title: str, options: Mapping[str, str]) -> None:
    now = st.query_params.get(name, "")
    key = _key(name)
    drawn = st.query_params.get(name, "")
    st.session_state[key] = now if now in options else ""
    st.selectbox(
        title,
        list(options),
        format_func=lambda option: options[option],
        key=key,
        on_change=lambda: _write(name, "", drawn),
    )


def _write(name: str, default: str, drawn: str) -> None:
    if st.query_params.get(name, "") != drawn:
        return  # the viewer went on to another address, and the browser still tells what was chosen before
    value = st.session_state[_key(name)]
    text = f"{value:g}" if isinstance(value, float) else str(value or "")
    if text in ("", default):
        st.query_params.pop(name, None)
    else:
        st.query_params[name] = text


def _key(name: str) -> str:
    return f"choice {name}"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value <= DEAREST else None


def _told(name: str) -> list[str]:
    """The words that jobs of the latest week bear as one of their labels."""
    parameters = (("window", "7d"), ("weight", "job"), ("group_by", name))
    answer = shared_reads().ask(Question("/api/v1/fleet", Groups, parameters)).value
    return [group.key for group in answer.fleet if group.key] if answer else []
