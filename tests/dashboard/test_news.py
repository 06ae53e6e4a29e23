"""What need not be read again because nothing came of it."""

from __future__ import annotations

import msgspec
import pytest

from ett_dashboard.client import ExporterError, Question, UnknownJobError
from ett_dashboard.live import SharedReads
from ett_dashboard.news import Changes, News
from ett_dashboard.rows import FleetAnswer, JobDetail, JobsTogether

FLEET = Question("/api/v1/jobs", FleetAnswer)


class Exporter:
    """Jobs that change when they are told to; what was asked is kept."""

    def __init__(self):
        self.asked, self.live, self.finished = [], 0, True
        self.name, self.changes, self.error = "a", [], None

    def job(self, job_id):
        return self.ask(Question(f"/api/v1/jobs/{job_id}", JobDetail))

    def ask(self, question):
        self.asked.append(question.path)
        if self.error is not None:
            raise self.error
        if question.answer is Changes:
            return self.told(**dict(question.parameters))
        if question.answer is JobDetail:
            whole = {"state": "x", "finished": self.finished, "start": 0, "end": 9, "wall_s": 9}
            return msgspec.convert({"job_id": "j", "components": {}, "as_of": 1.0, **whole}, JobDetail)
        return FleetAnswer(1.0, [], 0, JobsTogether({"succeeded": 1}, self.live))

    def told(self, since, rows, limit):
        assert rows == "false"
        name, _, place = since.partition("-")
        known = name == self.name
        new = self.changes[int(place) if known else 0 :][: int(limit)]
        reached = (int(place) if known else 0) + len(new)
        return Changes(7.0, f"{self.name}-{reached}", not known, reached < len(self.changes), new)


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def exporter():
    return Exporter()


@pytest.fixture
def reads(exporter, now):
    """Shared readings of which each is a refresh old when it is asked for again."""
    return SharedReads(exporter, keep_s=2.0, clock=lambda: now[0])


def asked_by(exporter, now, read):
    """What a refresh asks for."""
    now[0] += 5.0
    exporter.asked.clear()
    reading = read()
    return [path.rpartition("/")[2] for path in exporter.asked], reading


def test_a_job_that_is_over_is_read_again_only_when_something_came_of_it(exporter, now, reads):
    """A refresh asks what is new; changes of other jobs cost nothing, its own one reading."""
    reads.job("j")
    asked_by(exporter, now, lambda: reads.job("j"))
    for _ in range(3):
        paths, reading = asked_by(exporter, now, lambda: reads.job("j"))
        assert (paths, reading.value.as_of, reading.read_at) == (["changes"], 7.0, now[0])
    exporter.changes.append("other")
    assert asked_by(exporter, now, lambda: reads.job("j"))[0] == ["changes"]
    exporter.changes.append("j")
    assert asked_by(exporter, now, lambda: reads.job("j"))[0] == ["changes", "j"]
    assert asked_by(exporter, now, lambda: reads.job("j"))[0] == ["changes"]


def test_one_question_after_news_serves_all_readings(exporter, now, reads):
    """Many jobs that are over are refreshed by one small request."""
    jobs = [f"j{number}" for number in range(9)]

    def all_jobs():
        return [reads.job(job_id) for job_id in jobs]

    all_jobs()
    asked_by(exporter, now, all_jobs)
    assert asked_by(exporter, now, all_jobs)[0] == ["changes"]
    exporter.changes.append("j4")
    assert asked_by(exporter, now, all_jobs)[0] == ["changes", "j4"]


def test_time_alone_changes_a_job_that_goes_on(exporter, now, reads):
    """It is read anew each time, and nobody asks after news of it."""
    exporter.finished = False
    reads.job("j")
    assert asked_by(exporter, now, lambda: reads.job("j"))[0] == ["j"]


def test_a_list_stands_while_all_its_jobs_are_over_and_none_changes(exporter, now, reads):
    """With one job that goes on it does not."""
    reads.ask(FLEET)
    asked_by(exporter, now, lambda: reads.ask(FLEET))
    assert asked_by(exporter, now, lambda: reads.ask(FLEET))[0] == ["changes"]
    exporter.changes.append("new")
    exporter.live = 1
    assert asked_by(exporter, now, lambda: reads.ask(FLEET))[0] == ["changes", "jobs"]
    assert asked_by(exporter, now, lambda: reads.ask(FLEET))[0] == ["jobs"]


def test_an_exporter_that_started_again_is_read_anew(exporter, now, reads):
    """Its numbers mean something else."""
    reads.job("j")
    asked_by(exporter, now, lambda: reads.job("j"))
    exporter.name = "b"
    assert asked_by(exporter, now, lambda: reads.job("j"))[0] == ["changes", "j"]


def test_without_news_the_exporter_is_asked_and_its_fault_is_told(exporter, now, reads):
    """An exporter that is gone shows at the next refresh, also on a job that is over."""
    reads.job("j")
    asked_by(exporter, now, lambda: reads.job("j"))
    exporter.error = ExporterError("gone")
    _, reading = asked_by(exporter, now, lambda: reads.job("j"))
    assert (reading.error, reading.value.finished) == ("gone", True)
    exporter.error = None
    _, reading = asked_by(exporter, now, lambda: reads.job("j"))
    assert reading.error is None


def test_pages_of_changes_are_taken_to_the_end(monkeypatch):
    """More changes than an answer holds come in several."""
    monkeypatch.setattr("ett_dashboard.news.PAGE", 2)
    exporter = Exporter()
    news = News(exporter.ask)
    news.catch_up()
    before = {name: news.mark(name) for name in "abcde"}
    exporter.changes += ["a", "b", "c", "d", "a"]
    assert news.catch_up() == 7.0
    assert [name for name in "abcde" if news.mark(name) != before[name]] == ["a", "b", "c", "d"]


def test_an_unknown_job_stays_unknown(exporter, now, reads):
    """There is nothing that could stand."""
    exporter.error = UnknownJobError("no such job")
    assert reads.job("j").unknown
    assert asked_by(exporter, now, lambda: reads.job("j"))[1].unknown
