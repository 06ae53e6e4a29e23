"""Failures of a fleet: from answers to tables, figures, words and markup."""

from __future__ import annotations

import csv
import io
from datetime import timezone

import plotly.graph_objects as go
import pytest
from fleet_answers import ABORTED, AT, ECC, bucket, diagnosis, failure, group, node, outbreak, row

from ett_core.colours import DOMAIN_COLOURS
from ett_core.failures import CLASSES
from ett_dashboard import listing
from ett_dashboard.failures import fields, figures, frames, markup, tiles, words
from ett_dashboard.failures.rows import Failures
from ett_dashboard.rows import EvidenceRow

UTC = timezone.utc
HOSTILE = "<script>x</script><a href='y'>z</a>"


def answer(*groups, total: int = 3) -> Failures:
    lost_s = sum(each.lost_accelerator_s for each in groups)
    return Failures(as_of=AT, failures=(), total=total, lost_accelerator_s=lost_s, groups=groups)


def test_evidence_stands_in_order_of_time_across_ranks_with_its_roles():
    lines = frames.evidence_lines(failure())
    assert [(line.where, line.role, line.after_s) for line in lines] == [
        ("launcher on n7", "root", 0.0),
        ("rank 3 on n7", "root", 2.0),
        ("rank 0 on n8", "cascade", 3.0),
        ("rank 9 on n9", "", 7.0),
    ]


def test_the_same_words_at_another_time_have_no_role():
    late = EvidenceRow(time=AT + 60.0, rank=3, text=ECC)
    assert frames.role_of(late, diagnosis()) == ""
    both = EvidenceRow(time=AT + 0.5, rank=3, text=f"{ABORTED}\n{ECC}")
    assert frames.role_of(both, diagnosis()) == "root"


def test_without_a_root_line_evidence_counts_from_the_failure():
    lines = frames.evidence_lines(failure(diagnosis=diagnosis(evidence=())))
    assert [line.after_s for line in lines] == [-2.0, 0.0, 1.0, 5.0]


def test_parts_by_domain_hold_all_of_their_classes():
    parts = frames.by_domain([bucket(AT, gpu_ecc=1, object_store=3, user_code=2), bucket(AT + 3600.0)])
    told = {part.domain: (part.count, part.lost_accelerator_s, part.classes) for part in parts}
    assert told == {
        "infrastructure": (4, 4 * 3600.0, (("object_store", 3), ("gpu_ecc", 1))),
        "workload": (2, 2 * 3600.0, (("user_code", 2),)),
    }


@pytest.mark.parametrize("name", [*CLASSES, "of_a_later_version", ""])
def test_every_class_has_a_domain_with_a_colour_and_words(name):
    assert frames.domain_of(name) in figures.DOMAIN_COLOURS
    assert words.meaning(name)
    told = words.failure_sentence(failure(diagnosis=diagnosis(failure_class=name)))
    assert told.how
    assert "None" not in told.how


def test_the_fleet_s_sentence_names_the_class_that_costs_most():
    groups = (group("preempted", 1.0, lost_ratio=0.25), group("object_store", 3.0, lost_ratio=0.75))
    told = words.fleet_sentence(answer(*groups))
    assert told.how == "3 failures cost 4.0 accelerator-hours; object_store alone made up 75.0 %"
    assert told.do == CLASSES["object_store"].action
    assert words.fleet_sentence(answer(total=0)).how == "no failure in this time"
    assert words.fleet_sentence(answer(group("hang", 0.0), total=1)).how == (
        "1 failure cost 0 accelerator-hours"
    )


def test_an_outbreak_says_whom_it_struck_when_and_how_unusual_that_is():
    told = words.outbreak_sentence(outbreak(), UTC).how
    assert told == (
        "object_store struck 9 jobs of 2 teams from 24 Nov 16:00 to 24 Nov 18:00, "
        "20 times as often as around it (probability below 0.000001); 10.0 accelerator-hours lost"
    )
    ongoing = words.outbreak_sentence(outbreak(until=None, factor=None, owners=[]), UTC).how
    assert "struck 9 jobs since 24 Nov 16:00 and goes on, which it had not done before" in ongoing


def test_a_failure_says_what_it_means_whose_it_is_and_whether_to_try_again():
    told = words.failure_sentence(failure())
    assert told.how == (
        "GPU memory failed in a way that its error correction cannot mend. "
        "It is of the hardware, network or storage (certain). "
        "Started again it may succeed on other hardware, or once this is repaired"
    )
    assert told.do == CLASSES["gpu_ecc"].action
    assert words.failure_sentence(failure(retry="stop")).how.endswith(
        "It came again: stop trying until it is changed"
    )
    victim = diagnosis(failure_class="peer_failure", domain="unknown", role="cascade")
    assert (
        "followed from elsewhere; look at rank 3 on n7"
        in words.failure_sentence(failure(diagnosis=victim)).how
    )


@pytest.mark.parametrize(
    ("again", "said"),
    [
        (row(1), "new"),
        (row(3, crash_loop=True, same_node=True, same_rank=True), "crash loop, 3 in a row on the same node"),
        (row(2, same_rank=True), "2 in a row on the same rank"),
    ],
)
def test_a_row_of_failures_in_words(again, said):
    assert words.recurrence(failure(recurrence=again)) == said


def test_a_node_of_unknown_use_gets_no_figure():
    assert words.node_sentence(node(expected=None, probability=None)) == (
        "3 that may be its own; how long it was in use is not known"
    )


def test_the_list_shows_what_is_known_and_leads_to_the_failure():
    columns = fields.failures(UTC)
    shown, unknown = listing.rows(columns, [failure(), failure(ttr_s=None)], lambda one: one.id)
    said = {column.name: cell for column, cell in zip(columns, shown.cells, strict=True)}
    assert said["failure_class"].href == "failures?id=ads%2Fa~2"
    assert said["where"].text == "rank 3 on n7"
    assert said["lost_accelerator_s"].text == "1.5 h"
    assert said["domain"].hue == DOMAIN_COLOURS["infrastructure"]
    assert [cells[6].text for cells in (shown.cells, unknown.cells)] == ["1 m 30 s", "not so far"]


def test_what_is_lost_is_told_in_money_where_anything_has_a_price():
    def cost(price, told):
        shown = {label: value for label, value, _ in tiles.cost_tiles(failure(cost=told), price)}
        return shown.get("Cost")

    assert [cost(None, None), cost(None, 7.5), cost(2.0, 7.5), cost(2.0, None)] == [None, "7.5", "2.9", "2.9"]


def test_a_suspect_node_stands_out():
    columns = fields.nodes(UTC)
    suspect, good = listing.rows(columns, [node(), node(suspect=False)], lambda one: one.node)
    assert (suspect.cells[1].text, good.cells[1].text) == ("suspect", "no more than chance")
    assert suspect.cells[1].hue
    assert not good.cells[1].hue


def test_files_to_take_away_are_exact():
    files = {
        "lost_accelerator_s": listing.as_csv(fields.failures_taken_away(UTC), [failure()]),
        "cumulative_ratio": listing.as_csv(fields.groups(), [group("hang", 2.0)]),
        "probability": listing.as_csv(fields.nodes_taken_away(UTC), [node()]),
        "role": listing.as_csv(fields.evidence(), frames.evidence_lines(failure())),
    }
    told = {
        name: [row[name] for row in csv.DictReader(io.StringIO(content.decode()))]
        for name, content in files.items()
    }
    assert told == {
        "lost_accelerator_s": ["5280.0"],
        "cumulative_ratio": [""],
        "probability": ["1.8e-05"],
        "role": ["root", "root", "cascade", ""],
    }


SPAN = (AT, AT + 86_400.0)
PARTS = frames.by_domain([bucket(AT, gpu_ecc=1, user_code=2)])
LINES = frames.evidence_lines(failure())


@pytest.mark.parametrize(
    "figure",
    [
        figures.pareto([group("object_store", 3.0, cumulative_ratio=1.0, lost_ratio=1.0, ttr_median_s=9.0)]),
        figures.pareto([group("hang", 0.0)], by_count=True),
        figures.pareto([]),
        figures.over_time(PARTS, [outbreak(), outbreak(until=None)], SPAN, UTC, by_count=True),
        figures.over_time([], [], SPAN, UTC, by_count=False),
        figures.evidence(LINES, UTC),
        figures.evidence([], UTC),
    ],
)
def test_plotly_knows_every_property(figure):
    go.Figure(figure)


def test_the_pareto_tells_what_classes_make_up_together():
    shown = [group("object_store", 3.0, cumulative_ratio=0.75), group("hang", 1.0, cumulative_ratio=1.0)]
    (trace,) = figures.pareto(shown)["data"]
    assert (trace["y"], trace["x"]) == (["object_store", "hang"], [3.0, 1.0])
    assert trace["text"] == ["3.0 h · together 75.0 %", "1.0 h · together 100.0 %"]


def test_an_outbreak_is_shaded_from_its_first_strike_to_its_last_or_to_now():
    layout = figures.over_time(PARTS, [outbreak(until=None)], SPAN, UTC, by_count=True)["layout"]
    (shape,), (note,) = layout["shapes"], layout["annotations"]
    assert (shape["x0"], shape["x1"]) == ("2025-11-24 16:00:00.000", "2025-11-25 16:00:00.000")
    assert "object_store" in note["text"]


def test_evidence_is_drawn_on_the_lane_of_its_rank():
    figure = figures.evidence(LINES, UTC)
    marks = {trace["name"]: list(zip(trace["x"], trace["y"], strict=True)) for trace in figure["data"]}
    assert marks == {"root": [(0.0, 0), (2.0, 2)], "cascade": [(3.0, 1)], "told": [(7.0, 3)]}
    assert figure["layout"]["yaxis"]["ticktext"] == ["launcher", "rank 0", "rank 3", "rank 9"]


def test_words_of_jobs_are_harmless_in_figures_and_markup():
    line = EvidenceRow(time=AT, rank=0, node=HOSTILE, source=HOSTILE, text=HOSTILE)
    told = failure(
        job_name=HOSTILE, team=HOSTILE, cause=HOSTILE, evidence=[line], diagnosis=diagnosis(node=HOSTILE)
    )
    lines = frames.evidence_lines(told)
    pieces = [
        markup.failure_head(told, UTC, {}),
        markup.evidence_table(lines, UTC),
        markup.outbreaks([outbreak(failure_class=HOSTILE)], UTC),
        markup.alike([HOSTILE], {}),
        str(figures.evidence(lines, UTC)),
        str(figures.pareto([group(HOSTILE, 1.0)])),
        str(figures.over_time(frames.by_domain([bucket(AT, **{HOSTILE: 1})]), [], SPAN, UTC, by_count=True)),
    ]
    for piece in pieces:
        assert "<script" not in piece
        assert "<a href='y'" not in piece
    assert "script" in pieces[1]


def test_a_flood_of_evidence_is_cut_on_the_page():
    rows = [EvidenceRow(time=AT + n, rank=n, text="bye") for n in range(markup.MOST_LINES + 24)]
    table = markup.evidence_table(frames.evidence_lines(failure(evidence=rows)), UTC)
    assert table.count("<tr class=") == markup.MOST_LINES
    assert "24 more lines are left out" in table
