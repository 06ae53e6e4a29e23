"""A server of metrics as a source, without one: its queries, its answers as rows, how it is asked."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.accounting import STATES
from ett_core.urgency import urgency
from ett_dashboard.checkpoints import questions as interval_questions
from ett_dashboard.checkpoints.rows import IntervalRow
from ett_dashboard.client import ExporterError, LacksError, UnknownJobError
from ett_dashboard.failures import questions as failure_questions
from ett_dashboard.fleet import questions as fleet_questions
from ett_dashboard.live import SharedReads
from ett_dashboard.prometheus import caches, failures, fleet_time, jobs, questions, ranking
from ett_dashboard.prometheus.answers import Line, Sample
from ett_dashboard.prometheus.api import MOST_JOBS, PrometheusApi
from ett_dashboard.prometheus.engine import Engine
from ett_dashboard.prometheus.intervals import interval_row
from ett_dashboard.prometheus.promql import Series, among, containing, equals, quoted
from ett_dashboard.prometheus.settings import PrometheusSettings
from ett_dashboard.rows import CacheRow, Job
from ett_dashboard.settings import Settings
from ett_dashboard.what_if import questions as what_if_questions

HOSTILE = 'a"} or vector(1) #\\\n\u2028.*|(b)\u202e🚀\x00\ufffd'
SERIES = Series(('env="prod"',))
WEIGHED = fleet_questions.Weighing("accelerator", "accelerator")


def meant(literal: str) -> str:
    """What a string of PromQL means, by the rules of Go that Prometheus keeps; for what `quoted` writes."""
    return json.loads(literal)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_quoted_label_means_itself(text):
    """Whatever a label holds, its string stays one string and means the same."""
    assert meant(quoted(text)) == text
    parsed = promql_parser.parse(f"a{{b={quoted(text)}}}")
    assert isinstance(parsed, promql_parser.VectorSelector)


@pytest.mark.parametrize(
    "asked", [{}, {"team": HOSTILE}, {"text": HOSTILE}, {"state": "lost", "text": "a.b"}]
)
@pytest.mark.parametrize("sort", ["urgency", "-job_name", *fleet_questions.SORTS.values(), "-ett_percent"])
def test_every_query_of_jobs_is_one_bounded_choice(asked, sort):
    """Whatever is asked: the server hands out so many jobs, and every selector bears the matchers."""
    parsed = promql_parser.parse(ranking.first(SERIES, {**asked, "sort": sort}, 7))
    assert isinstance(parsed, promql_parser.AggregateExpr)
    assert str(parsed.op) in ("topk", "bottomk")
    assert str(parsed.param) == "7"
    found = selectors(parsed)
    assert found
    assert all(any((m.name, m.value) == ("env", "prod") for m in one.matchers.matchers) for one in found)


def selectors(node) -> list:
    if isinstance(node, promql_parser.VectorSelector):
        return [node]
    if isinstance(node, promql_parser.MatrixSelector):
        return [node.vector_selector]
    if isinstance(node, promql_parser.Call):
        return [one for argument in node.args for one in selectors(argument)]
    parts = (getattr(node, name, None) for name in ("expr", "lhs", "rhs"))
    return [one for part in parts if part is not None for one in selectors(part)]


def test_parts_of_names_and_lists_of_names_are_literal():
    """A part of a name is found in capitals or not; no character of a name means anything else."""
    assert containing("job_id", "a.B") == r'job_id=~"(?is:.*a\\.B.*)"'
    assert among("job_id", ["a|b", "c"]) == r'job_id=~"a\\|b|c"'
    assert equals("team", "\ud800") == r'team="\ufffd"'


def sample(name: str, value: float, instance: str = "e1", **labels: str) -> Sample:
    return Sample({"__name__": name, "instance": instance, "job": "x", **labels}, 1000.0, value)


def told(job_id: str, instance: str = "e1", wall_s: float = 100.0, **more: float) -> list[Sample]:
    """A job of which 60 s were training, as an exporter's series tell of it."""
    own = {"job_id": job_id, "instance": instance}
    return [
        sample("ett_job_info", 1, **own, job_name=HOSTILE, team="ads", cluster="c1"),
        sample("ett_job_state", 1, **own, state="recovering"),
        sample("ett_job_wall_seconds", wall_s, **own),
        sample("ett_job_component_seconds", 60.0, **own, component="training"),
        sample("ett_job_component_seconds", wall_s - 60.0, **own, component="data_wait"),
        sample("ett_job_failures_total", 2, **own, domain="workload"),
        sample("ett_job_failures_total", 1, **own, domain="platform"),
        sample("ett_job_time_to_recover_seconds_sum", 30.0, **own),
        sample("ett_job_time_to_recover_seconds_count", 1, **own),
        sample("ett_job_attempt", 3, **own),
        sample("ett_job_compile_cache_requests_total", 7, **own, cache="fx_graph", result="hit"),
        sample("ett_job_compile_cache_requests_total", 3, **own, cache="fx_graph", result="miss"),
        sample("ett_job_compile_cache_requests_total", 9, **own, cache="fx_graph", result="of later"),
        *(sample(name, value, **own) for name, value in more.items()),
    ]


def test_a_job_is_told_as_far_as_its_series_tell():
    """Names stay as they are; the mean time to recover and failures without an end are kept apart."""
    row = jobs.job("j", jobs.figures_of_jobs(told("j"))["j"], as_of=1000.0)
    assert (row.title, row.team, row.model, row.state) == (HOSTILE, "ads", None, "recovering")
    assert (row.wall_s, row.ett_percent, row.start, row.end) == (100.0, 60.0, 900.0, 1000.0)
    assert (row.failures, row.ttr_s, row.attempts) == (3, [30.0, None, None], 4)
    assert row.caches == {"fx_graph": CacheRow(7, 3)}
    assert (row.step, row.unsaved_exposure_s, row.last_durable_at) == (None, None, None)
    own = {"job_id": "j", "instance": "e1"}
    ratios = [
        sample("ett_job_effective_ratio", ratio, **own, window=window)
        for window, ratio in (("all", 0.6), ("1h", 0.25))
    ]
    row = jobs.detail("j", jobs.figures_of_jobs([*told("j"), *ratios])["j"], as_of=1000.0)
    assert row.ett_percent_within == {"1h": 25.0}


def test_failures_before_the_loop_are_none_of_the_interval():
    """Of three failures one struck in the loop, by the best interval that the exporter tells; or none did."""

    def row(*others: Sample) -> IntervalRow:
        saves = {"sum": 8.0, "count": 4}
        own = {"job_id": "j"}
        told_too = [
            sample(f"ett_job_checkpoint_blocking_seconds_{name}", value, **own)
            for name, value in saves.items()
        ]
        figures = jobs.figures_of_jobs([*told("j"), *told_too, *others])["j"]
        job = jobs.job("j", figures, as_of=1000.0)
        assert job.failures == 3
        return interval_row(job, figures)

    best_s = (2 * 2.0 * 100.0 / 1) ** 0.5
    found = row(sample("ett_job_checkpoint_interval_seconds", best_s, job_id="j", kind="optimal"))
    assert (found.failures, found.best_s) == (1, pytest.approx(best_s))
    assert (row().failures, row().best_s, row().slowed_s) == (0, None, None)
    slowing_s = (2 * 8.0 * 100.0 / 1) ** 0.5
    slow = row(
        sample("ett_job_checkpoint_slowed_seconds", 6.0, job_id="j"),
        sample("ett_job_checkpoint_interval_seconds", slowing_s, job_id="j", kind="optimal"),
    )
    assert (slow.failures, slow.best_s, slow.slowed_s) == (1, pytest.approx(slowing_s), 6.0)
    assert slow.wasted_percent == pytest.approx(found.wasted_percent + 100 * 4 * 6.0 / 100.0)


def test_a_job_that_two_tell_of_is_told_by_one():
    """Parts of two sources are never mixed: who knows more wall time is believed."""
    samples = [*told("j", "old", 80.0), *told("j", "new", 100.0)]
    row = jobs.job("j", jobs.figures_of_jobs(samples)["j"], as_of=1000.0)
    assert row.wall_s == sum(row.components.values()) == 100.0


def test_labels_that_a_server_adds_do_not_take_a_job_apart():
    """A label cluster that is added to series without one of their own is no other source."""
    added = [
        one
        if one.labels["__name__"] == "ett_job_info"
        else Sample({**one.labels, "cluster": "outside"}, one.at, one.value)
        for one in told("j")
    ]
    row = jobs.job("j", jobs.figures_of_jobs(added)["j"], as_of=1000.0)
    assert (row.cluster, row.wall_s) == ("c1", 100.0)


def test_a_job_without_a_state_is_none():
    known = jobs.figures_of_jobs([sample("ett_job_wall_seconds", 5.0, job_id="j")])
    assert jobs.job("j", known["j"], 1.0) is None


def test_hours_add_up_to_parts():
    """Each part has its own hours; what was before the first one is left out."""
    end, hour = 7200.0 * 12, 3600.0
    points = [(end - 24 * hour, 99.0), *((end - back * hour, float(back)) for back in range(23, -1, -1))]
    lines = [Line({"component": "training"}, points), Line({"component": "stalled"}, [(end, 5.0)])]
    found = fleet_time.over_time(lines, parts=12, number=24, as_of=end)
    assert [part.all.components["training"] for part in found.over_time] == [
        2 * back + 1.0 for back in range(22, -1, -2)
    ]
    assert (found.over_time[-1].begin, found.over_time[-1].end) == (end - 2 * hour, end)
    assert found.over_time[-1].all.components["stalled"] == 5.0


def test_classes_have_shares_and_those_that_never_came_are_left_out():
    counted = [Sample({"failure_class": name}, 0, value) for name, value in (("a", 1.97), ("b", 1.02))]
    lost = [Sample({"failure_class": name}, 0, value) for name, value in (("a", 25.0), ("b", 75.0))]
    found = failures.failures([*counted, Sample({"failure_class": "c"}, 0, 0.2)], lost, (), "lost", 5.0)
    assert [(group.key, group.count, group.lost_ratio, group.cumulative_ratio) for group in found.groups] == [
        ("b", 1, 0.75, 0.75),
        ("a", 2, 0.25, 1.0),
    ]
    assert (found.total, found.lost_accelerator_s, found.is_listed) == (3, 100.0, False)


def test_parts_of_failures_end_where_their_samples_stand():
    lines = [Line({"failure_class": "a"}, [(20.0, 1.1), (40.0, 2.0)])]
    found = failures.buckets(lines, lines, parts=4, size_s=10.0, end=40.0)
    assert [(part.begin, part.end, part.counts) for part in found] == [
        (0.0, 10.0, {}),
        (10.0, 20.0, {"a": 1}),
        (20.0, 30.0, {}),
        (30.0, 40.0, {"a": 2}),
    ]


def test_requests_of_jobs_add_up():
    row = jobs.job("j", jobs.figures_of_jobs(told("j"))["j"], 1.0)
    assert caches.together([row, row]) == {"fx_graph": CacheRow(14, 6)}


class Server:
    """What answers over HTTP like a server of metrics; `answer` is the status and body of everything."""

    def __init__(self, answer=(200, {"status": "success", "data": {"result": []}})):
        self.answer, self.asked = answer, []

    def __call__(self, request):
        self.asked.append(request)
        status, body = self.answer(self.queries[-1]) if callable(self.answer) else self.answer
        return (
            httpx.Response(status, json=body) if isinstance(body, dict) else httpx.Response(status, text=body)
        )

    @property
    def queries(self) -> list[str]:
        return [parse_qs(request.content.decode())["query"][0] for request in self.asked]

    def api(self, **settings) -> PrometheusApi:
        settings = PrometheusSettings(url="http://prom:9090/prometheus/", **settings)
        return PrometheusApi(Engine(settings, httpx.MockTransport(self)), settings.matchers)


def vector(*rows):
    """The answer of a server: labels and value of each series."""
    result = [{"metric": labels, "value": [1000.0, str(value)]} for labels, value in rows]
    return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


def lines(*series):
    """The answer of a server about a stretch of time: labels and points of each series."""
    result = [{"metric": labels, "values": [[at, str(y)] for at, y in points]} for labels, points in series]
    return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}


QUESTIONS = (
    fleet_questions.jobs({"team": HOSTILE}, "-ett_percent", 15),
    fleet_questions.jobs({}, "job"),
    fleet_questions.window("24h", WEIGHED, {"cluster": HOSTILE}),
    fleet_questions.over_time("7d", WEIGHED, {}, 1e9),
    failure_questions.failures("90d", "lost", {"domain": "platform"}),
    interval_questions.intervals({"text": HOSTILE}),
    questions.caches({"model": HOSTILE}),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.path)
def test_an_empty_server_is_no_error_and_every_query_bears_the_matchers(question):
    """Without a single series the answer is empty; each query is understood and matched."""
    server = Server()
    server.api(matchers=('env="prod"',)).ask(question)
    assert server.asked
    assert {request.url.path for request in server.asked} <= {
        "/prometheus/api/v1/query",
        "/prometheus/api/v1/query_range",
    }
    for query in server.queries:
        found = selectors(promql_parser.parse(query))
        assert all(any(m.name == "env" for m in one.matchers.matchers) for one in found)


def test_a_job_over_time_is_its_effective_share_and_its_samples_a_second():
    """The lines of two queries over the life of the job; both bear the matchers."""

    def answer(query):
        if "rate(" in query:
            return lines(({"job_id": "j"}, [(900.0, 5.0), (950.0, 6.0)]))
        if "effective_ratio" in query:
            return lines(({"window": "all"}, [(900.0, 0.5)]), ({"window": "1h"}, [(900.0, 0.25)]))
        return vector(*((dict(one.labels), one.value) for one in told("j")))

    server = Server(answer)
    found = server.api(matchers=('env="prod"',)).ask(questions.history("j"))
    assert found.effective == {"all": [(900.0, 0.5)], "1h": [(900.0, 0.25)]}
    assert found.samples_per_s == [(900.0, 5.0), (950.0, 6.0)]
    for query in server.queries:
        chosen = selectors(promql_parser.parse(query))
        assert all(any(m.name == "env" for m in one.matchers.matchers) for one in chosen)


def test_caches_of_all_jobs_are_those_that_rules_record():
    """With recorded series totals are of all jobs; of a team, which they do not tell, of those listed."""
    of_job = [(dict(one.labels), one.value) for one in told("j")]
    of_job.append(
        ({"__name__": jobs.COMPILE, "job_id": "j", "instance": "e1", "job": "x", "stage": "b"}, 4.0)
    )

    def answer(query):
        if caches.REQUESTS in query:
            return vector(({"cache": "pgo", "result": "hit"}, 8), ({"cache": "pgo", "result": "miss"}, 2))
        if caches.SECONDS in query:
            return vector(({"stage": "inductor"}, 50))
        if caches.SAVED_BY_RULE in query:
            return vector(({}, 7))
        return vector(({"job_id": "j"}, 4.0)) if query.startswith("topk") else vector(*of_job)

    found = Server(answer).api().ask(questions.caches({"model": "m"}))
    assert (found.is_recorded, found.caches, found.compile) == (
        True,
        {"pgo": CacheRow(8, 2)},
        {"inductor": 50.0},
    )
    assert (found.saved_s, found.compile_of_jobs) == (7.0, {"j": 4.0})
    found = Server(answer).api().ask(questions.caches({"team": "ads"}))
    assert (found.is_recorded, found.caches, found.compile) == (
        False,
        {"fx_graph": CacheRow(7, 3)},
        {"b": 4.0},
    )


def test_no_answer_has_more_jobs_than_the_limit():
    """Without a limit, or with a large one, the server is still asked for a bounded number."""
    server = Server()
    server.api().ask(fleet_questions.jobs({}, "wall_s", 10**6))
    assert server.queries[0].startswith(f"bottomk({MOST_JOBS}, ")


def test_what_metrics_do_not_tell_is_said_and_no_outage():
    """Such a reading has no value and says what would answer."""
    reads = SharedReads(Server().api(), keep_s=1.0)
    unanswered = [
        (what_if_questions.what_if("7d", "accelerator", (), {}), "this needs the exporter's API"),
        (fleet_questions.window("1h", fleet_questions.Weighing("job", "job"), {}), "weighing by jobs needs"),
        (fleet_questions.window("1h", WEIGHED, {"team": "a"}), "for a choice by team, needs"),
        (fleet_questions.over_time("1h", WEIGHED, {}, 1e9), "time in parts of an hour needs"),
        (failure_questions.failures("7d", "lost", {"node": "n"}), "choosing failures by node needs"),
    ]
    for question, said in unanswered:
        reading = reads.ask(question)
        assert reading.lacks
        assert said in reading.error
    with pytest.raises(UnknownJobError, match="has no series of a job"):
        Server().api().job("x")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((422, {"status": "error", "error": "query timed out"}), "answers 422 query timed out"),
        ((401, "<html>who are you"), "answers 401"),
        ((200, "<html>"), "something else than expected"),
        ((200, '{"data":' + "[" * 100_000), "something else than expected"),
        ((302, ""), "answers 302"),
        ((200, {"status": "success", "data": {"result": [{"metric": {}, "value": "x"}]}}), "something else"),
    ],
)
def test_whatever_goes_wrong_is_one_error_with_words(answer, said):
    with pytest.raises(ExporterError, match=said):
        Server(answer).api().ask(QUESTIONS[0])


def test_who_asks_is_said_as_the_settings_say(tmp_path):
    """A token, a user with a password, or a tenant; files are read anew for each request."""
    file = tmp_path / "secret"
    file.write_text("first\n")
    server = Server()
    api = server.api(token_file=file, tenant="ml")
    api.ask(QUESTIONS[2])
    file.write_text("second\n")
    api.ask(QUESTIONS[2])
    headers = [request.headers for request in server.asked]
    assert [one["Authorization"] for one in headers] == ["Bearer first", "Bearer second"]
    assert {one["X-Scope-OrgID"] for one in headers} == {"ml"}
    file.write_text("me:pass:word\n")
    basic = Server()
    basic.api(basic_auth_file=file).ask(QUESTIONS[2])
    word = basic.asked[0].headers["Authorization"].removeprefix("Basic ")
    assert base64.b64decode(word) == b"me:pass:word"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"url": "prom:9090"}, "--prometheus 'prom:9090' does not look like"),
        ({"url": "http://me:secret@prom"}, "use --prometheus-basic-auth-file"),
        ({"basic_auth_file": Path("/nowhere")}, "basic auth file /nowhere: No such file"),
        ({"ca_file": Path("/nowhere")}, "--prometheus-ca-file /nowhere: No such file"),
        ({"ca_file": Path(__file__)}, "it holds no certificates"),
        ({"matchers": ('a="b"} or up{x="y"',)}, "is no matcher"),
        ({"matchers": ('a="b", c="d"',)}, "is no matcher"),
        ({"matchers": ("a=b",)}, "is no matcher"),
    ],
)
def test_settings_that_cannot_work_are_refused_without_a_secret(wrong, said):
    given = {"url": "http://prom:9090"} | wrong
    with pytest.raises(ValueError, match=said) as refused:
        PrometheusSettings(**given)
    assert "secret" not in str(refused.value)


def test_settings_travel_through_the_environment(tmp_path):
    file = tmp_path / "user"
    file.write_text("me:secret")
    told = PrometheusSettings(
        url="https://prom", basic_auth_file=file, tenant="ml", matchers=('a="x\\"y"', 'b!~"c,d"')
    )
    settings = Settings(prometheus=told)
    assert Settings.from_environment(settings.to_environment()) == settings
    assert not settings.source.is_whole
    assert Settings.from_environment({}).prometheus is None


def test_the_order_of_states_is_that_of_urgency():
    """In the query of urgency no state is missing, and each weighs what it weighs elsewhere."""
    query = ranking.urgency(SERIES)
    weights = {}
    for one in query.split(" or ")[: len(STATES)]:
        for state in STATES:
            if f"{state}" in one.partition("state=~")[2].partition(")")[0].strip('"}').split("|"):
                weights[state] = float(one.rpartition("* ")[2].split(")")[0])
    assert weights.keys() == set(STATES)
    rows = [
        Job(
            job_id=state,
            state=state,
            start=0,
            end=1,
            wall_s=1,
            components={},
            finished=state in ranking.OVER,
        )
        for state in STATES
    ]
    by_rows = [urgency(row)[:2] for row in sorted(rows, key=urgency)]
    by_query = [urgency(row)[:2] for row in sorted(rows, key=lambda row: -weights[row.state])]
    assert by_rows == by_query


def test_lacking_is_an_exporter_error_so_that_nothing_breaks():
    assert issubclass(LacksError, ExporterError)
