"""The Caches page of a fleet of which only metrics are known: all jobs together, and who waits most."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from ett_dashboard import listing, markup, words
from ett_dashboard.addresses import changed
from ett_dashboard.chart import chart
from ett_dashboard.live import shared_reads
from ett_dashboard.prometheus import figures, questions
from ett_dashboard.prometheus.fields import cache_fields
from ett_dashboard.prometheus.rows import CacheTotals
from ett_dashboard.table import table
from ett_dashboard.views import address, choices, frame


def show() -> None:
    """Draw the page."""
    chosen = choices.of_jobs()
    asked = address.asked()
    frame.live(lambda: _draw(chosen, asked))


def _draw(chosen: Mapping[str, str], asked: Mapping[str, str]) -> None:
    reading = shared_reads().ask(questions.caches(chosen))
    found = reading.value
    st.html(markup.page_head("Caches", frame.as_of(found.as_of) if found else ""))
    frame.signs_of_age(reading)
    with st.container(key="live"):
        if found is not None and (found.caches or found.compile):
            _page(found, asked)
        elif found is not None:
            lines = ["No series tells of a compile cache or of compile time, of the jobs that are chosen."]
            st.html(markup.empty("Nothing was compiled so far", lines))


def _page(found: CacheTotals, asked: Mapping[str, str]) -> None:
    whose = "of all jobs, within the last hour" if found.is_recorded else _of_some(found)
    st.html(markup.tiles(_tiles(found, whose), lead=True))
    left, right = st.columns(2, gap="large")
    with left:
        st.html(markup.section("Hit rate by cache", whose))
        if found.caches:
            chart(figures.hit_rates(found), title="Hit rate by cache", key="hit_rates")
        else:
            st.html(markup.quiet("No cache was asked."))
    with right:
        st.html(markup.section("Compile time by stage", "beside it, because a hit is no proof"))
        if any(found.compile.values()):
            chart(figures.stages(found), title="Compile time by stage", key="stages")
        else:
            st.html(markup.quiet("Nothing was compiled."))
    _jobs(found, asked)
    st.html(markup.section("Runs"))
    frame.lacks("which run was cold or warm, and why,")


def _of_some(found: CacheTotals) -> str:
    return f"of the {words.many(len(found.jobs), 'job')} below so far"


def _tiles(found: CacheTotals, whose: str) -> list[tuple[str, str, str]]:
    hits = sum(row.hits for row in found.caches.values())
    asked = hits + sum(row.misses for row in found.caches.values())
    return [
        (
            "Hit rate",
            words.percent(100 * hits / asked if asked else None),
            f"Hits in hits and misses of all caches, {whose}.",
        ),
        ("Requests", words.whole(asked), f"Hits and misses of all caches, {whose}."),
        (
            "Compile time",
            words.duration(sum(found.compile.values())),
            f"Of all ranks together, waited for or hidden, {whose}.",
        ),
        ("Saved by hits", words.duration(found.saved_s), f"As the compiler estimates it, {whose}."),
    ]


def _jobs(found: CacheTotals, asked: Mapping[str, str]) -> None:
    st.html(markup.section("Jobs that compiled longest", "since they began; choose one to open it"))
    fields, order = cache_fields(found.compile_of_jobs, asked), asked.get("sort", "")
    table(
        listing.columns(fields, order, lambda by: changed("caches", asked, sort=by)),
        listing.rows(fields, listing.ordered(fields, found.jobs, order), lambda job: job.job_id),
        caption="Jobs and their compile caches",
        key="cache-jobs",
    )
