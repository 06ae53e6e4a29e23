"""The Failures page: what failures cost, when, what is to blame; one of them in full with `?id=`."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from ett_dashboard import listing, markup, words
from ett_dashboard.addresses import SHARED, to_failures
from ett_dashboard.chart import chart
from ett_dashboard.client import Question
from ett_dashboard.failures import fields, figures, frames, questions, tiles
from ett_dashboard.failures import markup as pieces
from ett_dashboard.failures.rows import Failures, Nodes, Regressions
from ett_dashboard.failures.words import fleet_sentence
from ett_dashboard.figures import leading
from ett_dashboard.live import shared_reads
from ett_dashboard.table import table
from ett_dashboard.views import address, choices, failure, frame
from ett_dashboard.windows import WITHIN

ORDERS = {"lost": "accelerator-hours", "count": "number"}
MOST_CLASSES = 8
NAMES = (*SHARED, *questions.OF_FAILURES, "sort")


def show() -> None:
    """Draw the page that the address asks for."""
    failure_id = address.asked().get("id", "")
    if failure_id:
        shared = address.asked()
        price = choices.price_per_hour(shared)
        frame.live(lambda: failure.draw(failure_id, shared, price))
        return
    asked, price = _asked(address.asked()), choices.price_per_hour(address.asked())
    shared_reads().begin(_questions(asked))
    choices.of_jobs()
    frame.live(lambda: _draw(asked, price))


def _asked(given: Mapping[str, str]) -> dict[str, str]:
    """What the address asks for; what it does not say, or says wrongly, is as usual."""
    window, order = given.get("window", ""), given.get("order", "")
    return {
        **{name: value for name in NAMES if (value := given.get(name))},
        "window": window if window in questions.BUCKETS else "7d",
        "order": order if order in ORDERS else "lost",
    }


def _questions(asked: Mapping[str, str]) -> tuple[Question[Failures], Question[Regressions], Question[Nodes]]:
    window = asked["window"]
    return (
        questions.failures(window, asked["order"], asked),
        questions.regressions(window, asked),
        questions.nodes(window, asked),
    )


def _draw(asked: Mapping[str, str], price: float | None) -> None:
    reads = shared_reads()
    of_failures, of_regressions, of_nodes = _questions(asked)
    reads.begin((of_failures, of_regressions, of_nodes))
    reading = reads.ask(of_failures)
    worse, nodes = reads.ask(of_regressions).value, reads.ask(of_nodes).value
    found = reading.value
    st.html(markup.page_head("Failures", frame.as_of(found.as_of) if found else ""))
    frame.signs_of_age(reading)
    with st.container(key="live"):
        st.html(_choices(asked))
        if found is not None and found.total:
            st.html(markup.said(fleet_sentence(found)))
            st.html(markup.tiles(tiles.failures_tiles(found, nodes, price)))
            _failures(found, worse, nodes, asked)
        elif found is not None:
            st.html(_none(asked))


def _choices(asked: Mapping[str, str]) -> str:
    windows = [
        (name, to_failures({**asked, "window": name}), name == asked["window"]) for name in questions.BUCKETS
    ]
    orders = [
        (title, to_failures({**asked, "order": name}), name == asked["order"])
        for name, title in ORDERS.items()
    ]
    domains = [
        ("anybody", to_failures({**asked, "domain": ""}), "domain" not in asked),
        *(
            (name, to_failures({**asked, "domain": name}), asked.get("domain") == name)
            for name in frames.DOMAINS
        ),
    ]
    return markup.choices([("Within the last", windows), ("Largest by", orders), ("Of", domains)])


def _failures(
    found: Failures, worse: Regressions | None, nodes: Nodes | None, asked: Mapping[str, str]
) -> None:
    zone, by_count = frame.zone(), asked["order"] == "count"
    outbreaks = worse.outbreaks if worse else ()
    with st.container(key="outbreaks"):
        if outbreaks:
            st.html(pieces.outbreaks(outbreaks, zone))
    left, right = st.columns(2, gap="large")
    with left:
        st.html(markup.section("Classes", "what they cost and make up together; colour: whose it is"))
        ways = [to_failures({**asked, "failure_class": group.key}) for group in found.groups]
        drawn = leading(figures.pareto(found.groups, by_count=by_count), ways)
        chart(drawn, title="Classes of failures", key="classes")
        st.html(_classes(found, asked) + markup.csv_link("classes", **asked))
    with right:
        shaded = "shaded: a class that strikes many jobs" if found.is_listed else ""
        st.html(markup.section("Over time", shaded))
        span = (found.over_time[0].begin, found.over_time[-1].end)
        parts = frames.by_domain(found.over_time)
        drawn = figures.over_time(parts, outbreaks, span, zone, by_count=by_count)
        chart(drawn, title="Failures over time", key="over_time", revision=asked["window"], zoom=True)
        st.html(pieces.domains())
    _nodes(nodes, asked)
    _list(found, asked)


def _classes(found: Failures, asked: Mapping[str, str]) -> str:
    """Links that choose a class."""
    chosen = asked.get("failure_class", "")
    names = [group.key for group in found.groups[:MOST_CLASSES] if group.key]
    links = [("all classes", to_failures({**asked, "failure_class": ""}), not chosen)]
    links += [(name, to_failures({**asked, "failure_class": name}), name == chosen) for name in names]
    return markup.choices([("Only", links)])


def _nodes(nodes: Nodes | None, asked: Mapping[str, str]) -> None:
    if frame.lacks("which nodes failures point at"):
        return
    if nodes is None or not nodes.nodes:
        return
    note = "failures against those that a node's time in use lets expect; suspects first"
    st.html(markup.section("Nodes at which failures point", note))
    columns = fields.nodes(frame.zone())
    table(
        listing.columns(columns, "", None),
        listing.rows(columns, nodes.nodes, lambda node: f"{node.cluster}/{node.node}"),
        caption="Nodes",
        key="nodes",
    )
    st.html(markup.csv_link("nodes", **asked))


def _list(found: Failures, asked: Mapping[str, str]) -> None:
    if not found.is_listed:
        st.html(markup.section(words.many(found.total, "failure")))
        frame.lacks("their list, with the evidence of each,")
        return
    more = (
        ""
        if found.total <= len(found.failures)
        else f"; the latest {len(found.failures):,} of them, all in the CSV"
    )
    note = f"latest first{more}; choose one to see its evidence"
    st.html(markup.section(words.many(found.total, "failure"), note))
    columns, order = fields.failures(frame.zone(), asked), asked.get("sort", "")
    table(
        listing.columns(columns, order, lambda by: to_failures({**asked, "sort": by})),
        listing.rows(columns, listing.ordered(columns, found.failures, order), lambda one: one.id),
        caption="Failures",
        key="failures",
    )
    st.html(markup.csv_link("failures", **asked))


def _none(asked: Mapping[str, str]) -> str:
    chosen = [name.replace("_", " ") for name in questions.OF_FAILURES if asked.get(name)]
    window = WITHIN[asked["window"]]
    said = f"No job failed within {window}."
    if chosen:
        said = f"None within {window} is of what is asked for: {', '.join(chosen)}."
    return markup.empty("No failures", [said, "Choose a longer time, or fewer conditions."])
