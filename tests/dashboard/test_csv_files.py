"""Tables to take away, over HTTP."""

from __future__ import annotations

import csv
import io
import time
from contextlib import closing
from typing import NamedTuple

import pytest
from stories import Story, deciding, get, post, recovered, send

from ett_core.components import meaning_of
from ett_core.events import AttemptEnd, AttemptStart, Failure
from ett_dashboard.client import Client, Question
from ett_dashboard.csv_files import FILES
from ett_dashboard.failures import questions
from ett_dashboard.failures.questions import MOST_LISTED
from ett_dashboard.paging import once, pages


class Part(NamedTuple):
    """Some rows, and where the next ones begin."""

    rows: list[str]
    next_offset: int | None


def table_at(address: str) -> list[dict[str, str]]:
    """The rows of a file."""
    answer = get(address)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_the_partition_of_a_job_has_the_seconds_of_the_api(app, exporter):
    story = recovered("csv/job", time.time() - 2000, 600)
    story.succeed(600, 1)
    post(exporter, story)
    told = get(f"{exporter}/api/v1/jobs/csv/job").json()["components"]
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


def test_a_start_and_a_recovery_are_taken_apart_bar_by_bar(app, exporter):
    """They add up to what the API says the start and the recovery took; without a number it is the latest."""
    story = recovered("csv/starts", time.time() - 900, 600)
    story.succeed(600, 1)
    post(exporter, story)
    job = get(f"{exporter}/api/v1/jobs/csv/starts").json()
    of_job = "id=csv%2Fstarts"
    first, latest = (table_at(f"{app}/csv/start?{of_job}{more}") for more in ("&attempt=0", ""))
    assert [row["component"] for row in first][:3] == [
        "start.allocation",
        "start.process_start",
        "start.device_init",
    ]
    assert (first[0]["attempt"], float(first[0]["begin"]), first[0]["after_s"]) == ("0", job["start"], "0.0")
    assert first[0]["meaning"] == meaning_of("start.allocation")
    took = [one["loop_start"] - one["start"] for one in job["attempt_list"]]
    allocation_s = job["attempt_list"][0]["start"] - job["start"]
    assert together(first) == pytest.approx(allocation_s + took[0], abs=1e-6)
    assert together(latest) == pytest.approx(took[1], abs=1e-6)
    assert {row["attempt"] for row in latest} == {"1"}
    (failure,) = job["failure_list"]
    recovery = table_at(f"{app}/csv/recovery?{of_job}")
    assert together(recovery) == pytest.approx(failure["ttr_s"], abs=1e-6)
    assert float(recovery[0]["begin"]) == failure["time"]
    ends = [float(row["after_s"]) + float(row["seconds"]) for row in recovery]
    assert [float(row["after_s"]) for row in recovery[1:]] == pytest.approx(ends[:-1], abs=1e-6)
    answer = get(f"{app}/csv/start?{of_job}&attempt=7")
    assert (answer.status_code, answer.text) == (400, "attempt: one of 0, 1, not '7'\n")


def together(rows: list[dict[str, str]]) -> float:
    return sum(float(row["seconds"]) for row in rows)


def test_decisions_of_a_job_hold_their_figures(app, exporter):
    post(exporter, deciding("csv/told", time.time() - 900, 600))
    rows = table_at(f"{app}/csv/decisions?id=csv%2Ftold")
    assert [(row["rank"], row["ranks"], row["values"]) for row in rows] == [
        ("0", "2", '{"interval_s": 93.0}'),
        ("-1", "1", "{}"),
    ]


@pytest.fixture(scope="module")
def failing(exporter) -> int:
    """How many failures a job has: more than the page lists."""
    most = MOST_LISTED + 5
    story = Story("csv/failing", time.time() - 3 * 86_400.0)
    for attempt in range(most):
        at = 10.0 * attempt
        story.tell(AttemptStart, at, attempt, world_size=1, accelerators=1)
        story.tell(Failure, at + 5.0, attempt, exit_code=1, exception="ValueError", message=f"bad {attempt}")
        story.tell(AttemptEnd, at + 6.0, attempt, status="failed", exit_code=1)
    answer = send(f"{exporter}/api/v1/events", content=b"".join(story.take().values()))
    assert answer.json()["rejected"] == []
    until_s = time.monotonic() + 60.0
    while get(f"{exporter}/api/v1/failures?text=csv/failing").json()["total"] < most:
        assert time.monotonic() < until_s  # lists are of views up to a second old
        time.sleep(0.1)
    return most


def test_failures_are_all_there_however_many(app, failing):
    """More than the page lists; each once, chosen and in the order of the page."""
    rows = table_at(f"{app}/csv/failures?text=csv%2Ffailing&window=7d&sort=time")
    assert [int(row["attempt"]) for row in rows] == list(range(failing))


def test_pages_follow_each_other_to_the_end(exporter, failing):
    """Page by page from a real exporter; no answer is kept, as nobody asks for it again."""
    with closing(Client(exporter)) as client:
        asked = questions.every("7d", {"text": "csv/failing"})
        found = [page.failures for page in pages(client.ask, asked, rows=100)]
    assert [len(page) for page in found] == [100, 100, 100, failing - 300]
    assert [failure.attempt for page in found for failure in page] == list(range(failing))[::-1]


def test_what_moves_to_a_later_page_counts_once():
    """A new row comes first while pages are read: it is missed, and no other row is missed or doubled."""
    rows = ["c", "b", "a"]

    def ask(question):
        given = dict(question.parameters)
        begin, end = int(given["offset"]), int(given["offset"]) + int(given["limit"])
        page = Part(rows[begin:end], end if end < len(rows) else None)
        if not begin:
            rows.insert(0, "d")
        return page

    found = [row for page in pages(ask, Question("/", Part), rows=2) for row in page.rows]
    assert found == ["c", "b", "b", "a"]
    assert once(found, lambda row: row) == ["c", "b", "a"]


def test_what_is_not_there_is_said_in_a_sentence(app):
    names = ", ".join(FILES)
    assert get(f"{app}/csv/nothing").text == f"no table is called 'nothing'; there are: {names}\n"
    answer = get(f"{app}/csv/partition?id=never%2Fheard")
    assert (answer.status_code, "never/heard" in answer.text) == (404, True)
    answer = get(f"{app}/csv/nodes?window=tomorrow")
    assert (answer.status_code, "not 'tomorrow'" in answer.text) == (400, True)


def test_saves_and_compilations_of_a_job_hold_every_one(app, exporter):
    post(exporter, deciding("csv/saved", time.time() - 900, 600))
    told = get(f"{exporter}/api/v1/jobs/csv/saved").json()["checkpoints"]
    saves = table_at(f"{app}/csv/saves?id=csv%2Fsaved")
    assert [(float(save["time"]), save["step"], save["fate"]) for save in saves] == [
        (one["time"], str(one["step"]), "durable") for one in told
    ]
    again = [row for row in table_at(f"{app}/csv/compilations?id=csv%2Fsaved") if row["recompile_reason"]]
    assert {row["graph"] for row in again} == {"0/1", "0/2"}
    assert "size mismatch" in again[0]["recompile_reason"]


def test_a_report_is_a_file_of_its_own(app, exporter):
    """Of a job and of all jobs, as `ett report` writes it; what cannot be is said in a sentence."""
    post(exporter, recovered("csv/reported", time.time() - 900, 600, job_name="Reported"))
    for asked, name, words in (
        ("id=csv%2Freported&zone=Asia%2FTokyo", "csv-reported", ("Reported", "JST")),
        ("window=1h", "jobs-1h", ("Reported", "UTC")),
    ):
        answer = get(f"{app}/report?{asked}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}.html"'
        assert all(word in answer.text for word in words)
        assert "Content-Security-Policy" in answer.text
    assert get(f"{app}/report?id=never%2Fheard").status_code == 404
    answer = get(f"{app}/report?window=tomorrow")
    assert (answer.status_code, "not 'tomorrow'" in answer.text) == (400, True)
