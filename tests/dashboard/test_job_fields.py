"""The table of jobs: its order, its words and its file."""

from __future__ import annotations

import csv
import io

from msgspec.structs import replace
from rows_of_jobs import job

from ett_core.urgency import urgency
from ett_dashboard import job_fields, listing


def shown(*jobs, order=""):
    fields = job_fields.fields(now=100.0)
    return listing.rows(fields, listing.ordered(fields, jobs, order), lambda row: row.job_id)


def test_jobs_that_hurt_most_come_first():
    rows = [
        job("over", "failed", finished=True, training=1.0, stalled=900.0),
        job("well", training=10.0, data_wait=1.0),
        job("well-but-wasteful", training=10.0, data_wait=5.0),
        job("down", "recovering", training=10.0),
        job("silent", "lost", training=10.0),
    ]
    order = [row.job_id for row in sorted(rows, key=urgency)]
    assert order == ["silent", "down", "well-but-wasteful", "well", "over"]


def test_a_figure_that_nobody_knows_says_so_and_comes_last_in_both_directions():
    known, unknown = job("known", training=5.0), job("unknown", unobserved=5.0)
    assert [cell.text for cell in shown(unknown)[0].cells][3:5] == ["n/a", "n/a"]
    for order in ("ett_percent", "-ett_percent"):
        assert [row.id for row in shown(unknown, known, order=order)] == ["known", "unknown"]


def test_the_order_of_the_address_is_marked_in_its_column_and_turned_round_by_it():
    fields = job_fields.fields(now=0.0)
    heads = {c.title: c for c in listing.columns(fields, "-ett_percent", lambda order: order)}
    assert (heads["ETT"].sorted, heads["ETT"].href) == ("descending", "ett_percent")
    assert (heads["Job"].sorted, heads["Job"].href) == (None, "job")


def test_the_file_has_exact_values_and_no_formulas():
    rows = [job("=cmd()", training=1 / 3)]
    (head, row) = csv.reader(io.StringIO(listing.as_csv(job_fields.taken_away(0.0), rows).decode()))
    told = dict(zip(head, row, strict=True))
    assert told["job_id"] == "'=cmd()"
    assert float(told["wall_s"]) == 1 / 3


def test_the_share_of_training_is_that_of_jobs_that_train():
    publishing = replace(job("publishing", training=0.0, other=5.0), purpose="publishing")
    assert [shown(row)[0].cells[3].text for row in (publishing, job("idle", other=5.0))] == ["n/a", "0.0 %"]


def test_the_way_to_a_job_keeps_the_filters_and_settings_of_the_viewer():
    """What belongs to the page that is left, as the order of its table, stays behind."""
    asked = {"zone": "Asia/Tokyo", "team": "a", "sort": "-wall_s", "rows": "more"}
    first = job_fields.fields(0.0, asked)[0]
    assert first.href(job("j", training=1.0)) == "job?zone=Asia%2FTokyo&team=a&id=j"
