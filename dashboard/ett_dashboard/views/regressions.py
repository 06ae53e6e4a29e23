"""The Regressions page: what takes longer than it did, each family of jobs against its own history."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from html import escape

import streamlit as st

from ett_core.fleet.regressions import ALL_FAMILIES
from ett_dashboard import listing, markup, words
from ett_dashboard.addresses import SHARED, to_family, to_regressions
from ett_dashboard.chart import chart
from ett_dashboard.client import Question
from ett_dashboard.failures import questions
from ett_dashboard.failures.rows import Regressions
from ett_dashboard.live import shared_reads
from ett_dashboard.regressions import fields, figures
from ett_dashboard.regressions import markup as pieces
from ett_dashboard.regressions.frames import History, histories, in_order
from ett_dashboard.regressions.rows import Families, Runs
from ett_dashboard.regressions.words import family_name, figure_meaning, figure_name
from ett_dashboard.settings import of_app
from ett_dashboard.table import table
from ett_dashboard.views import address, choices, frame
from ett_dashboard.windows import WITHIN

WINDOWS = ("7d", "30d", "90d")


def show() -> None:
    """Draw the page."""
    if not of_app().source.is_whole:
        st.html(markup.page_head("Regressions", ""))
        frame.lacks("the history of each family of jobs")
        return
    asked = _asked(address.asked())
    shared_reads().begin(_questions(asked))
    choices.of_jobs()
    frame.live(lambda: _draw(asked))


def _asked(given: Mapping[str, str]) -> dict[str, str]:
    """What the address asks for; what it does not say, or says wrongly, is as usual."""
    window = given.get("window", "")
    chosen = {name: value for name in (*SHARED, "sort", "family", "scope") if (value := given.get(name))}
    return {**chosen, "window": window if window in WINDOWS else "30d"}


def _questions(asked: Mapping[str, str]) -> tuple[Question[Regressions], Question[Families]]:
    return questions.regressions(asked["window"], asked), questions.families(asked["window"], asked)


def _draw(asked: Mapping[str, str]) -> None:
    reads = shared_reads()
    of_regressions, of_families = _questions(asked)
    reads.begin((of_regressions, of_families))
    reading = reads.ask(of_regressions)
    families = reads.ask(of_families).value
    found = reading.value
    st.html(markup.page_head("Regressions", frame.as_of(found.as_of) if found else ""))
    frame.signs_of_age(reading)
    with st.container(key="live"):
        st.html(_choices(asked))
        if found is None or families is None:
            return
        if not families.families:
            st.html(_none(asked))
            return
        _worse(found, asked)
        _history(found, families, asked)
        _families(found, families, asked)


def _choices(asked: Mapping[str, str]) -> str:
    links = [(name, to_regressions({**asked, "window": name}), name == asked["window"]) for name in WINDOWS]
    return markup.choices([("Within the last", links)])


def _worse(found: Regressions, asked: Mapping[str, str]) -> None:
    note = f"{words.many(found.runs, 'run')} looked at; choose one to see its history"
    st.html(markup.section("Slower in new runs", note))
    if found.components:
        st.html(pieces.alarms(found.components, frame.zone(), partial(to_family, asked)))
    else:
        st.html(
            markup.quiet("No part of a start, a recovery or the loop became longer, as far as can be told.")
        )


def _history(found: Regressions, families: Families, asked: Mapping[str, str]) -> None:
    family = _family(found, families, asked)
    reading = shared_reads().ask(questions.runs(asked["window"], asked, family))
    if reading.value is None:
        return
    told = reading.value
    st.html(markup.section(f"History of {family_name(family)}", _note(told, family)))
    shown = histories(told.runs, family, found.components)
    if not shown:
        st.html(markup.quiet("No run of it reached its loop in this time."))
    begin = min((point.start for each in shown for point in each.points), default=told.begin)
    span = (max(told.begin, begin - (told.end - begin) / 50), told.end)
    for place in range(0, len(shown), 2):
        for column, each in zip(st.columns(2, gap="large"), shown[place : place + 2], strict=False):
            with column:
                _one(each, span, family)
    st.html(markup.csv_link("runs", **{**asked, "family": family}))


def _one(shown: History, span: tuple[float, float], family: str) -> None:
    name = figure_name(shown.figure)
    meaning = escape(figure_meaning(shown.figure))
    st.html(f'<div class="ett-figure-head" title="{meaning}">{escape(name)}</div>')
    drawn = figures.history(shown, span, frame.zone())
    chart(drawn, title=f"{name} over time", key=f"history_{shown.figure}", revision=family, zoom=True)


def _family(found: Regressions, families: Families, asked: Mapping[str, str]) -> str:
    """The family that is asked for, else that of the most certain change, else the one with most jobs."""
    if asked.get("scope"):
        return ALL_FAMILIES
    if asked.get("family"):
        return asked["family"]
    return found.components[0].family if found.components else families.families[0].family


def _note(told: Runs, family: str) -> str:
    runs = words.many(told.total, "run")
    latest = f", the latest {len(told.runs):,} of them" if told.total > len(told.runs) else ""
    unit = "; times of what is usual in each family" if family == ALL_FAMILIES else ""
    return f"{runs}{latest}{unit}; grey before a change, dotted the change"


def _families(found: Regressions, families: Families, asked: Mapping[str, str]) -> None:
    note = "what is usual in each, as medians over its jobs; choose one to see its history"
    st.html(markup.section(words.many(len(families.families), "family", "families"), note))
    columns = fields.families(found.components, frame.zone(), partial(to_family, asked))
    order = asked.get("sort", "")
    ordered = listing.ordered(columns, in_order(families.families, found.components), order)
    rows = listing.rows(columns, ordered, lambda family: family.family, asked.get("family", ""))
    heads = listing.columns(columns, order, lambda by: to_regressions({**asked, "sort": by}))
    table(heads, rows, caption="Families", key="families")
    everything = markup.link(to_family(asked, ALL_FAMILIES), "All families together")
    st.html(f'<p class="ett-take">{everything}</p>{markup.csv_link("families", **asked)}')


def _none(asked: Mapping[str, str]) -> str:
    lines = [
        f"No run began within {WITHIN[asked['window']]}, or none is of what is asked for.",
        "A part of a start or of the loop is compared once four jobs of a family have new runs.",
    ]
    return markup.empty("Nothing to compare so far", lines)
