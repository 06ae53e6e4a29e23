"""Tables to take away, over HTTP."""

from __future__ import annotations

import csv
import io
import time

import httpx
from stories import post, recovered

from ett_dashboard.csv_files import FILES


def table_at(address: str) -> list[dict[str, str]]:
    """The rows of a file."""
    answer = httpx.get(address)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_the_partition_of_a_job_has_the_seconds_of_the_api(app, exporter):
    story = recovered("csv/job", time.time() - 2000, 600)
    story.succeed(600, 1)
    post(exporter, story)
    told = httpx.get(f"{exporter}/api/v1/jobs/csv/job").json()["components"]
    rows = table_at(f"{app}/csv/partition?id=csv%2Fjob")
    assert {row["component"]: float(row["seconds"]) for row in rows} == told


def test_the_table_of_jobs_holds_every_job(app, exporter):
    post(exporter, recovered("csv/listed", time.time() - 900, 600, team="rank"))
    (row,) = [row for row in table_at(f"{app}/csv/jobs?sort=job") if row["job_id"] == "csv/listed"]
    assert (row["team"], row["failures"]) == ("rank", "1")


def test_attempts_and_ranks_of_a_job_hold_every_one(app, exporter):
    post(exporter, recovered("csv/parts", time.time() - 900, 600))
    attempts = table_at(f"{app}/csv/attempts?id=csv%2Fparts")
    assert [(row["attempt"], row["outcome"]) for row in attempts] == [("0", "failed"), ("1", "running")]
    ranks = {row["rank"]: row for row in table_at(f"{app}/csv/ranks?id=csv%2Fparts")}
    assert {rank: row["node"] for rank, row in ranks.items()} == {"0": "node-a", "1": "node-a"}
    assert "died first once" in ranks["1"]["part"]


def test_what_is_not_there_is_said_in_a_sentence(app):
    names = ", ".join(FILES)
    assert httpx.get(f"{app}/csv/nothing").text == f"no table is called 'nothing'; there are: {names}\n"
    answer = httpx.get(f"{app}/csv/partition?id=never%2Fheard")
    assert (answer.status_code, "never/heard" in answer.text) == (404, True)
    answer = httpx.get(f"{app}/csv/nodes?window=tomorrow")
    assert (answer.status_code, "not 'tomorrow'" in answer.text) == (400, True)
