"""The What-if page: what the fleet would have reached without some of its losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from ett_core.fleet.what_if import FAILURE_PREFIX, LEVERS
from ett_dashboard import markup
from ett_dashboard.boxes import Box, boxes
from ett_dashboard.chart import chart
from ett_dashboard.client import Question
from ett_dashboard.live import shared_reads
from ett_dashboard.settings import of_app
from ett_dashboard.views import address, choices, frame
from ett_dashboard.weights import UNITS, quantity
from ett_dashboard.what_if import figures, questions
from ett_dashboard.what_if.frames import priced
from ett_dashboard.what_if.rows import WhatIf
from ett_dashboard.what_if.words import answer_sentence, basis, title
from ett_dashboard.words import points, ratio

LEVERS_KEY = "levers"
MOST_CLASSES = 10
"""Classes of failures that are offered, the dearest; an address may name others."""


def show() -> None:
    """Draw the page; jobs, window, weight and levers are kept in the address."""
    if not of_app().source.is_whole:
        st.html(markup.page_head("What-if", ""))
        frame.lacks("what would be without some losses")
        return
    window, weight = choices.window_and_weight_asked(address.asked())
    price = choices.price_per_hour(address.asked())
    chosen = choices.jobs_asked()
    shared_reads().begin((_to_choose(window, chosen),))
    choices.of_jobs()
    choices.window_and_weight()
    levers = _levers(window, chosen)
    frame.live(lambda: _draw(Asked(window, weight, price, levers, chosen)))


class Asked(NamedTuple):
    """What the viewer asks."""

    window: str
    weight: str
    price: float | None
    levers: Sequence[str]
    jobs: Mapping[str, str]


def _to_choose(window: str, chosen: Mapping[str, str]) -> Question[WhatIf]:
    """What tells which classes of failures are the dearest."""
    return questions.what_if(window, "accelerator", (), chosen)


def _levers(window: str, chosen: Mapping[str, str]) -> list[str]:
    """The levers that are supposed: those for all, and classes of failures, the dearest first."""
    given = [key for key in address.asked().get(LEVERS_KEY, "").split(",") if key]
    found = shared_reads().ask(_to_choose(window, chosen)).value
    classes = [row.key for row in found.alone if row.key.startswith(FAILURE_PREFIX)] if found else []
    kept = [key for key in given if key.startswith(FAILURE_PREFIX)]
    offered = list(dict.fromkeys([*LEVERS, *classes[:MOST_CLASSES], *kept]))
    named = [(key, title(key)) for key in offered]
    boxes(
        [Box(name=LEVERS_KEY, title="Suppose that", kind="several", options=named, titled=True)], key="levers"
    )
    return [key for key in given if key in offered]


def _draw(asked: Asked) -> None:
    by_price = asked.weight == "cost" and asked.price is not None
    weight = "accelerator" if by_price else asked.weight
    reading = shared_reads().ask(questions.what_if(asked.window, weight, asked.levers, asked.jobs))
    found = reading.value
    st.html(markup.page_head("What-if", frame.as_of(found.as_of) if found else ""))
    frame.signs_of_age(reading)
    with st.container(key="live"):
        if found is None:
            return
        if not found.now.total:
            st.html(
                markup.empty(
                    "No time to suppose anything of",
                    [f"{answer_sentence(found, asked.window).how}.", "Choose a longer time, or fewer words."],
                )
            )
            return
        _page(priced(found, asked.price) if by_price and asked.price else found, asked)


def _page(found: WhatIf, asked: Asked) -> None:
    st.html(markup.said(answer_sentence(found, asked.window)) + markup.tiles(_tiles(found), lead=True))
    st.html(
        markup.section(
            "The same training, with less around it",
            "each part of the time, as it is and as it would be",
            legend=True,
        )
    )
    chart(figures.before_and_after(found), title="The partition as it is and with the levers", key="parts")
    st.html(
        markup.section(
            "Each lever alone", "points of effective training time, and what it saves; chosen ones stand out"
        )
    )
    chart(figures.gains(found), title="Gain of each lever alone", key="gains")
    st.html(markup.quiet(basis(found)))
    way = {"window": asked.window, "weight": asked.weight, "levers": ",".join(asked.levers), **asked.jobs}
    st.html(
        markup.csv_link("what-if-levers", "Levers as CSV", **way)
        + markup.csv_link("what-if-parts", "Parts as CSV", **way)
    )


def _tiles(found: WhatIf) -> list[tuple[str, str, str]]:
    now, then = found.now.effective_ratio, found.together.effective_ratio
    unit = UNITS[found.weight]
    gain = None if now is None or then is None else then - now
    return [
        (
            "ETT with the levers",
            ratio(then),
            "Share of what is left of the time that trains, with all chosen levers.",
        ),
        (
            "ETT as it is",
            ratio(now),
            "Share of the time of these jobs that trained with an effect that survives.",
        ),
        ("Gain", points(gain), "Difference of the two."),
        (
            f"Saved, {unit}",
            quantity(found.saved, found.weight),
            "Time that the same training would not have taken.",
        ),
        (
            f"Counted once, {unit}",
            quantity(found.overlap, found.weight),
            "By so much the levers one by one promise more than together: it is the same time.",
        ),
    ]
