"""The Caches page: which runs were cold, what it cost, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import median

import streamlit as st

from ett_core.fleet.caches import COLD, VERDICTS, WARM
from ett_dashboard import listing, markup, words
from ett_dashboard.addresses import changed
from ett_dashboard.boxes import boxes
from ett_dashboard.caches import fields, figures, questions
from ett_dashboard.caches import markup as pieces
from ett_dashboard.caches.rows import CacheRunRow, CacheRuns
from ett_dashboard.caches.words import comparison_sentence, fleet_sentence
from ett_dashboard.chart import chart
from ett_dashboard.live import shared_reads
from ett_dashboard.settings import of_app
from ett_dashboard.table import Row, table
from ett_dashboard.views import address, cache_totals, choices, frame

PATH = "caches"
ROWS = 40
WARM_MEANING = "Runs whose caches hit and that compiled far less than the cold runs of their family."


def show() -> None:
    """Draw the page; the address may name two runs to compare, `?one=` and `?two=`."""
    if not of_app().source.is_whole:
        cache_totals.show()
        return
    asked = address.asked()
    shared_reads().begin((questions.runs({}), questions.runs(choices.chosen(questions.FILTERS))))
    chosen = choices.of_jobs() | _of_runs()
    frame.live(lambda: _draw(chosen, asked))


def _of_runs() -> dict[str, str]:
    """The family and the verdict that were chosen."""
    known = shared_reads().ask(questions.runs({})).value
    family = choices.any_of("family", "Family", [run.family for run in known.runs] if known else [])
    boxes([family, choices.any_of("verdict", "Verdict", VERDICTS)], key="of-runs")
    return choices.chosen(("family", "verdict"))


def _draw(chosen: dict[str, str], asked: dict[str, str]) -> None:
    reading = shared_reads().ask(questions.runs(chosen))
    answer = reading.value
    st.html(markup.page_head("Caches", frame.as_of(answer.as_of) if answer else ""))
    frame.signs_of_age(reading)
    with st.container(key="live"):
        if answer is not None and answer.total:
            _page(answer, chosen, asked)
        elif answer is not None:
            st.html(_nothing(is_chosen=bool(chosen)))


def _page(answer: CacheRuns, chosen: dict[str, str], asked: dict[str, str]) -> None:
    st.html(markup.said(fleet_sentence(answer)) + markup.tiles(_tiles(answer), lead=True))
    with st.container(key="comparison"):
        if asked.get("one") and asked.get("two"):
            _comparison(asked)
    with st.container(key="surprises"):
        if answer.surprises:
            _surprises(chosen, asked)
    st.html(
        markup.section(
            "Hit rate by cache and run", "beside it what was compiled all the same: a hit is no proof"
        )
        + pieces.verdicts()
    )
    chart(
        figures.hit_rates(answer.runs), title="Hit rates by cache and run, with seconds compiled", key="rates"
    )
    st.html(markup.section("Runs over time", "seconds compiled above, hit rate below; drag to zoom"))
    chart(
        figures.trend(answer.runs, frame.zone()),
        title="Seconds compiled and hit rate of runs over time",
        key="trend",
        revision=str(sorted(chosen.items())),
        zoom=True,
    )
    _table(answer, chosen, asked)


def _tiles(answer: CacheRuns) -> list[tuple[str, str, str]]:
    warm = answer.verdicts.get(WARM, 0)
    return [
        ("Warm runs", words.percent(100 * warm / answer.total), WARM_MEANING),
        ("Runs", words.whole(answer.total), "Attempts that compiled something or asked a cache."),
        ("Cold", words.whole(answer.verdicts.get(COLD, 0)), VERDICTS[COLD]),
        (
            "Expected warm, but cold",
            words.whole(answer.surprises),
            "Their job or family had compiled the same before, or was warm all along.",
        ),
        ("A cold run compiles", _middle(answer.runs, COLD), "Median of those listed, waited for or hidden."),
        ("A warm run compiles", _middle(answer.runs, WARM), "Median of those listed, waited for or hidden."),
    ]


def _middle(runs: Sequence[CacheRunRow], kind: str) -> str:
    taken = [run.compiled_s for run in runs if run.verdict == kind]
    return words.duration(median(taken) if taken else None)


def _comparison(asked: dict[str, str]) -> None:
    way = escape(changed(PATH, asked, one="", two=""))
    close = f'<a href="{way}" target="_self" class="ett-go ett-close">close</a>'
    st.html(markup.section("Two runs compared", "what is not the same stands out") + close)
    reading = shared_reads().ask(questions.comparison(asked["one"], asked["two"]))
    found = reading.value
    if found is None:
        st.html(markup.quiet(words.plain(reading.error or "Nothing is known of these runs.", 200)))
        return
    st.html(markup.said(comparison_sentence(found)) + pieces.reasons(found))
    left, right = st.columns(2, gap="medium")
    with left:
        chart(figures.side_by_side(found), title="Hit rates and seconds compiled of two runs", key="pair")
    with right:
        st.html(
            pieces.comparison_table(found, asked)
            + markup.csv_link("cache-comparison", one=asked["one"], two=asked["two"])
        )


def _surprises(chosen: dict[str, str], asked: dict[str, str]) -> None:
    st.html(markup.section("Expected warm, but cold", "choose one to see what differs from a warm run"))
    found = shared_reads().ask(questions.surprises(chosen)).value
    if found is not None:
        st.html(pieces.surprises(found.runs[:5], lambda one, two: changed(PATH, asked, one=one, two=two)))


def _table(answer: CacheRuns, chosen: dict[str, str], asked: dict[str, str]) -> None:
    one, order = asked.get("one", ""), asked.get("sort", "")
    note = (
        "choose one to compare with the first" if one else "put a first and a second one into the comparison"
    )
    st.html(markup.section(words.many(answer.total, "run"), f"the latest first; {note}"))
    known = fields.fields(frame.zone(), asked)
    runs = listing.ordered(known, answer.runs, order)[:ROWS]

    def pick(side: str, run_id: str) -> str:
        return changed(PATH, asked, **{side: run_id})

    first, *others = listing.columns(known, order, lambda by: changed(PATH, asked, sort=by))
    rows = [
        Row(
            row.id,
            [row.cells[0], fields.compare_cell(run, one, pick), *row.cells[1:]],
            chosen=row.id in compared,
        )
        for compared in [(one, asked.get("two", ""))]
        for run, row in zip(runs, listing.rows(known, runs, lambda run: run.id), strict=True)
    ]
    table([first, fields.COMPARE, *others], rows, caption="Runs", key="runs")
    if answer.total > len(runs):
        st.html(markup.quiet(f"{len(runs):,} of {answer.total:,} runs; all of them in the CSV."))
    st.html(markup.csv_link("cache-runs", **chosen))


def _nothing(*, is_chosen: bool) -> str:
    if is_chosen:
        return markup.empty("No run of this kind", ["Choose another family or verdict."])
    return markup.empty(
        "No run has told anything of compilation yet",
        [
            "Runs tell of it by themselves where torch compiles under `ett run`.",
            "Caches answer where they are watched: see hooks.md, watch_compile.",
        ],
        "ett run -- torchrun --nproc-per-node 2 train.py",
    )
