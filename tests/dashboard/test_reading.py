"""Reading the exporter: the client, the shared readings, the settings."""

from __future__ import annotations

import threading

import httpx
import pytest

from ett_cli.main import main
from ett_dashboard.client import Client, ExporterError, Question, UnknownJobError
from ett_dashboard.live import SharedReads
from ett_dashboard.rows import FleetAnswer
from ett_dashboard.settings import Settings

ALL_JOBS = Question("/api/v1/jobs", FleetAnswer)
JOBS = {"as_of": 5.0, "jobs": [], "of_a_later_version": 1}


def client(answer) -> Client:
    return Client("http://exporter:1/", transport=httpx.MockTransport(answer))


def refuse(request):
    raise httpx.ConnectError("refused", request=request)


def broken(request):
    raise httpx.RemoteProtocolError("peer closed", request=request)


def late(request):
    raise httpx.ReadTimeout("late", request=request)


def test_answers_become_rows_and_unknown_fields_are_ignored():
    assert client(lambda _: httpx.Response(200, json=JOBS)).ask(ALL_JOBS) == FleetAnswer(5.0, [])


def test_identities_are_sent_whole():
    asked = []
    with pytest.raises(UnknownJobError, match="no such job"):
        client(
            lambda r: asked.append(r.url.raw_path) or httpx.Response(404, json={"error": "no such job"})
        ).job("a/b@1 ?")
    assert asked == [b"/api/v1/jobs/a/b@1%20%3F"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refuse, "nothing answers at http://exporter:1"),
        (broken, "the connection to http://exporter:1 broke"),
        (late, "does not answer in time"),
        (lambda _: httpx.Response(503, json={"error": "busy"}), "answers 503 busy"),
        (lambda _: httpx.Response(200, text="<html>"), "something else than expected"),
        (lambda _: httpx.Response(200, json={"as_of": "x", "jobs": 3}), "something else than expected"),
        (lambda _: httpx.Response(200, text='{"x":' + "[" * 100_000), "something else than expected"),
        (lambda _: httpx.Response(500, text='{"error":' + "[" * 100_000), "answers 500$"),
    ],
)
def test_whatever_goes_wrong_is_one_error_with_words(answer, said):
    with pytest.raises(ExporterError, match=said):
        client(answer).ask(ALL_JOBS)


def endless():
    while True:
        yield b" " * 1000


def test_an_answer_without_an_end_is_given_up():
    """Neither what never stops to come, nor what comes in drops for minutes, holds a reader."""
    answering = httpx.MockTransport(lambda _: httpx.Response(200, content=endless()))
    seconds = iter(range(1000))
    long = Client("http://exporter:1", transport=answering, longest_bytes=100_000, monotonic=lambda: 0.0)
    slow = Client("http://exporter:1", transport=answering, monotonic=lambda: float(next(seconds)))
    for reader in (long, slow):
        with pytest.raises(ExporterError, match="answers without an end"):
            reader.ask(ALL_JOBS)
    assert 60 < next(seconds) < 100


@pytest.mark.parametrize("moment", ["soon", "nan", "inf"])
def test_a_moment_that_is_none_is_an_error_with_words(moment):
    """An answer that still stands, as of no moment, is not shown as if it were good."""
    exporter = Tagging()
    reader = client(exporter)
    reader.ask(ALL_JOBS)
    exporter.as_of = moment
    with pytest.raises(ExporterError, match="something else than expected"):
        reader.ask(ALL_JOBS)


class Tagging:
    """An exporter over HTTP whose answer has a tag; what was asked and sent is kept."""

    def __init__(self):
        self.tag, self.as_of, self.sent = '"a"', 5.0, []

    def __call__(self, request):
        stands = request.headers.get("if-none-match") == self.tag
        self.sent.append(304 if stands else 200)
        headers = {"ETag": self.tag, "X-Ett-As-Of": str(self.as_of)}
        return (
            httpx.Response(304, headers=headers)
            if stands
            else httpx.Response(200, json=JOBS, headers=headers)
        )


def test_an_answer_that_still_stands_is_not_sent_again_and_is_as_of_now():
    exporter = Tagging()
    reader = client(exporter)
    first = reader.ask(ALL_JOBS)
    exporter.as_of = 9.0
    second = reader.ask(ALL_JOBS)
    assert (first.as_of, second.as_of, second.jobs is first.jobs) == (5.0, 9.0, True)
    exporter.tag = '"b"'
    reader.ask(ALL_JOBS)
    assert exporter.sent == [200, 304, 200]
    reader.ask(Question("/api/v1/jobs", FleetAnswer, (("team", "a"),)))
    assert exporter.sent[3:] == [200]


class Exporter:
    """An exporter whose answers are counted and can be made to fail."""

    def __init__(self) -> None:
        self.asked = 0
        self.error: ExporterError | None = None

    def job(self, job_id):
        raise UnknownJobError(f"no job {job_id}")

    def ask(self, question):
        self.asked += 1
        if self.error is not None:
            raise self.error
        return question.answer(as_of=float(self.asked), jobs=[])


def test_readers_share_one_reading_until_it_is_too_old():
    exporter, now = Exporter(), [100.0]
    reads = SharedReads(exporter, keep_s=2.0, clock=lambda: now[0])
    threads = [threading.Thread(target=reads.ask, args=(ALL_JOBS,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exporter.asked == 1
    now[0] += 2.0
    assert reads.ask(ALL_JOBS).value == FleetAnswer(2.0, [])


class Withheld:
    """An exporter that answers questions only when it may."""

    def __init__(self, exporter, may_answer):
        self.job, self._exporter, self._may_answer = exporter.job, exporter, may_answer

    def ask(self, question):
        assert self._may_answer.wait(60)
        return self._exporter.ask(question)


def test_a_slow_answer_is_waited_for_only_where_nothing_younger_is_known():
    """A page shows what it knew meanwhile, and the answer once it has come; too old figures it waits for."""
    exporter, now, may_answer = Exporter(), [100.0], threading.Event()
    may_answer.set()

    reads = SharedReads(Withheld(exporter, may_answer), keep_s=2.0, clock=lambda: now[0], patience_s=0.0)
    assert reads.ask(ALL_JOBS).value == FleetAnswer(1.0, [])
    may_answer.clear()
    now[0] += 3.0
    assert [reads.ask(ALL_JOBS).value for _ in range(3)] == [FleetAnswer(1.0, [])] * 3
    now[0] += 10.0
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(reads.ask(ALL_JOBS).value))
    waiting.start()
    may_answer.set()
    waiting.join(60)
    assert answers == [FleetAnswer(2.0, [])]
    assert exporter.asked == 2


def test_what_is_needed_soon_is_waited_for_no_longer_than_said():
    """All is there, or it is said that it is not; what comes later is kept for whoever asks next."""
    exporter, may_answer = Exporter(), threading.Event()

    reads = SharedReads(Withheld(exporter, may_answer), keep_s=60.0)
    assert not reads.soon([ALL_JOBS], within_s=0.0)
    may_answer.set()
    assert reads.soon([ALL_JOBS], "gone", within_s=60.0)
    assert (reads.ask(ALL_JOBS).value, reads.job("gone").unknown) == (FleetAnswer(1.0, []), True)
    assert exporter.asked == 1


class Apart:
    """An exporter that answers once so many ask at the same time."""

    def __init__(self, at_once):
        self.together, self.asked = threading.Barrier(at_once), 0

    def job(self, job_id):
        self.together.wait(60)
        raise UnknownJobError(f"no job {job_id}")

    def ask(self, question):
        self.together.wait(60)
        self.asked += 1
        return question.answer(as_of=1.0, jobs=[])


def test_questions_that_are_begun_are_asked_at_the_same_time():
    exporter = Apart(4)
    reads = SharedReads(exporter, keep_s=60.0)
    asked = [Question(f"/{name}", FleetAnswer) for name in "abc"]
    reads.begin(asked, "x")
    assert [reads.ask(question).error for question in asked] == [None] * 3
    assert reads.job("x").unknown
    assert exporter.asked == 3


def test_what_takes_its_time_is_not_waited_for_by_one_after_the_other():
    """Whoever comes when an answer has been waited for long enough is shown what was known before."""
    exporter, now, may_answer = Exporter(), [1e6], threading.Event()
    may_answer.set()

    class Slow(Exporter):
        def ask(self, question):
            assert may_answer.wait(60)
            return exporter.ask(question)

    reads = SharedReads(Slow(), keep_s=1e5, clock=lambda: now[0], patience_s=3600.0)
    assert reads.ask(ALL_JOBS).value == FleetAnswer(1.0, [])
    may_answer.clear()
    now[0] += 1e5
    reads.begin([ALL_JOBS])
    now[0] += 3600.0
    assert reads.ask(ALL_JOBS).value == FleetAnswer(1.0, [])
    may_answer.set()


def test_a_question_is_sent_with_its_parameters():
    asked = []
    client(lambda r: asked.append(r.url.raw_path) or httpx.Response(200, json=JOBS)).ask(
        Question("/api/v1/jobs", FleetAnswer, (("team", "a&b"), ("limit", "3")))
    )
    assert asked == [b"/api/v1/jobs?team=a%26b&limit=3"]


def test_an_answer_is_kept_for_as_long_as_its_question_says():
    exporter, now = Exporter(), [100.0]
    reads = SharedReads(exporter, keep_s=2.0, clock=lambda: now[0])
    slow = Question("/slow", FleetAnswer, keep_s=30.0)
    quick = Question("/quick", FleetAnswer)
    for _ in range(3):
        reads.ask(slow)
        reads.ask(quick)
        now[0] += 5.0
    assert exporter.asked == 4
    assert reads.ask(slow).value == FleetAnswer(1.0, [])


def test_the_last_good_answer_stays_while_the_exporter_is_gone():
    exporter, now = Exporter(), [100.0]
    reads = SharedReads(exporter, keep_s=2.0, clock=lambda: now[0])
    reads.ask(ALL_JOBS)
    exporter.error = ExporterError("gone")
    now[0] += 10
    reading = reads.ask(ALL_JOBS)
    assert (reading.value, reading.read_at, reading.error) == (FleetAnswer(1.0, []), 100.0, "gone")
    exporter.error = None
    now[0] += 10
    assert reads.ask(ALL_JOBS).error is None


def test_an_unknown_job_is_no_outage():
    assert SharedReads(Exporter(), keep_s=1.0).job("x").unknown


def test_at_most_so_many_jobs_are_kept():
    reads = SharedReads(Exporter(), keep_s=1.0, limit=3)
    for number in range(10):
        reads.job(str(number))
    assert len(reads._entries) == 3


def test_settings_travel_through_the_environment():
    settings = Settings(exporter_url="https://ett.example:8/", refresh_s=1.5)
    assert Settings.from_environment(settings.to_environment()) == settings


@pytest.mark.parametrize(
    "wrong", [{"exporter_url": "localhost:9410"}, {"refresh_s": 0.1}, {"refresh_s": float("nan")}]
)
def test_settings_that_cannot_work_are_refused(wrong):
    with pytest.raises(ValueError, match=r"does not look like|at least 0.5"):
        Settings(**wrong)


def test_the_command_refuses_a_wrong_address_with_a_sentence(capsys):
    assert main(["dashboard", "--exporter", "nowhere"]) == 2
    assert "does not look like http://HOST:PORT" in capsys.readouterr().err
