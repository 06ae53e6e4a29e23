"""The Fleet page's questions, words and figures."""

from __future__ import annotations

from datetime import timezone

import msgspec
import pytest

from ett_dashboard import job_fields
from ett_dashboard.failures.rows import FailureGroup, Failures
from ett_dashboard.fleet import figures, questions, words
from ett_dashboard.fleet.rows import FleetPart, FleetTime, FleetWindow
from ett_dashboard.fleet.tiles import fleet_tiles
from ett_dashboard.rows import JobsTogether
from ett_exporter.queries import FleetQuery, JobsQuery


def spent(**components: float) -> FleetTime:
    total = sum(components.values())
    ratio = components.get("training", 0.0) / total if total else None
    return FleetTime(
        key="",
        jobs=3,
        total=total,
        components=components,
        effective_ratio=ratio,
    )


def part(begin: float, end: float, **components: float) -> FleetPart:
    return FleetPart(begin=begin, end=end, all=spent(**components))


def test_parts_are_asked_for_at_once_by_the_same_question_until_the_next_begins():
    weight = questions.weighing("accelerator", None)
    first = questions.over_time("24h", weight, {"team": "a"}, now=7_200_010.0)
    assert first == questions.over_time("24h", weight, {"team": "a"}, now=7_203_000.0)
    asked = dict(first.parameters)
    assert (asked["begin"], asked["end"], asked["buckets"]) == ("7120800", "7207200", "12")
    assert first != questions.over_time("24h", weight, {"team": "a"}, now=7_207_201.0)
    assert msgspec.convert(asked, FleetQuery, strict=False).buckets == 12


def test_a_price_said_here_goes_before_those_of_the_exporter():
    assert questions.weighing("cost", 3.6) == questions.Weighing("cost", "accelerator", 0.001)
    assert questions.weighing("cost", None) == questions.Weighing("cost", "cost")
    assert questions.weighing("job", 3.6) == questions.Weighing("job", "job")


def test_the_sentence_names_the_largest_loss_in_what_is_weighed():
    said = words.summary(spent(training=7200.0, publish=3600.0, stalled=1800.0), "24h", "accelerator", 1.0)
    assert said.how == (
        "3 jobs spent 3.5 accelerator-hours within the last 24 hours; 57.1 % of it was training whose effect "
        "survives, 14.3 % was lost to failures"
    )
    assert said.do == "The largest loss is publish: 1.0 accelerator-hours."
    assert words.summary(spent(), "1h", "job", 1.0).how == "no job spent any time within the last hour"


def test_shares_over_time_add_up_to_a_hundred_and_empty_parts_are_left_out():
    parts = [part(0, 60, training=3.0, stalled=1.0), part(60, 120), part(120, 180, unobserved=2.0)]
    found = FleetWindow(as_of=150.0, begin=0, end=180, all=spent(training=3.0), over_time=parts)
    drawn = figures.over_time(found, timezone.utc)["data"]
    assert [sum(values) for values in zip(*(trace["y"] for trace in drawn), strict=True)] == [100.0] * 4
    assert drawn[0]["x"][-1] == "1970-01-01 00:02:30"


@pytest.mark.parametrize(
    ("price", "said"), [(None, "2.0 h · 1 failure"), (3.0, "2.0 h · cost 6.0 · 1 failure")]
)
def test_classes_say_their_cost_where_there_is_a_price(price, said):
    group = FailureGroup(key="<b>x", count=1, jobs=1, lost_accelerator_s=7200.0)
    (trace,) = figures.classes([group], price)["data"]
    assert (trace["text"], trace["y"]) == ([said], ["&lt;b&gt;x"])


def test_the_window_that_was_chosen_comes_first():
    labels = [label for label, _, _ in fleet_tiles(JobsTogether(), {"7d": 0.5}, "7d", "job")]
    assert labels[:3] == ["ETT, 7 d", "ETT, 1 h", "ETT, 24 h"]


def test_how_many_of_the_running_jobs_train_is_said():
    jobs = JobsTogether(states={"training": 31, "recovering": 4, "compiling": 1, "succeeded": 900}, live=36)
    told = {label: value for label, value, _ in fleet_tiles(jobs, {}, "1h", "job")}
    assert told["Training now"] == "31 of 36"
    nobody = {label: value for label, value, _ in fleet_tiles(JobsTogether(), {}, "1h", "job")}
    assert nobody["Training now"] == "0 of 0"


def test_every_column_of_the_table_has_an_order_that_the_api_knows():
    """Whatever head is chosen, and chosen again, the exporter sorts by it."""
    for field in job_fields.fields(0.0):
        for order in (field.name, f"-{field.name}"):
            asked = dict(questions.jobs({}, order).parameters)
            assert msgspec.convert(asked, JobsQuery).sort == asked["sort"] != "urgency"
    assert dict(questions.jobs({}, "luck").parameters) == {"sort": "urgency"}
    assert dict(questions.jobs({}, "-luck").parameters) == {"sort": "urgency"}


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (None, words.NOT_READ),
        (0, "Nothing failed within the last hour."),
        (2, "Nothing failed within the last hour, as far as is known."),
    ],
)
def test_that_nothing_failed_is_said_only_where_somebody_knows(read, said):
    """Neither before an answer has come nor of jobs that the exporter has not read yet."""
    failures = (
        None
        if read is None
        else Failures(as_of=0.0, failures=(), total=0, lost_accelerator_s=0.0, missing=read)
    )
    assert words.no_failures(failures, "the last hour") == said
