"""A report in one file: nothing fetched, every word inert, the same figures as the pages, never huge."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import timezone
from operator import itemgetter

import msgspec
import pytest
from fleet_answers import AT, bucket, failure, group, node, outbreak, regression, run

from ett_cli.main import main
from ett_core.accounting.account import AttemptAccount
from ett_core.decision_log import DecisionLine
from ett_core.fleet.families import Family
from ett_core.throughput import Throughput
from ett_dashboard.chart import plotly_file
from ett_dashboard.columns import count, seconds, text
from ett_dashboard.failures.rows import Failures, JobFailure, Nodes, Regressions
from ett_dashboard.fleet.questions import by_group
from ett_dashboard.fleet.rows import FleetTime, FleetWindow
from ett_dashboard.job.rows import Decisions
from ett_dashboard.regressions.rows import Families, Runs
from ett_dashboard.report import fleet, job
from ett_dashboard.report.fleet import FleetReport
from ett_dashboard.report.page import digest, document, script
from ett_dashboard.report.pieces import Chart, Columns, listed, rendered
from ett_dashboard.report.reading import READ_FOR_S, whole, write
from ett_dashboard.report.rows import ReportedJob
from ett_dashboard.rows import EvidenceRow, Job, StretchRow

UTC = timezone.utc
HOSTILE = "</script><script>x</script><a href='y'>z</a><!--"


UNDECIDED = Decisions(as_of=AT)


def decided(words: str, times: int = 1) -> Decisions:
    lines = [
        DecisionLine(
            attempt=0, time=AT + n, rank=0, node="n0", what=f"{words} {n}", why=words, values={words: n}
        )
        for n in range(times)
    ]
    return Decisions(as_of=AT, decisions=lines, total=times)


def of_job(**fields: object) -> JobFailure:
    names = JobFailure.__struct_fields__
    said = {name: value for name, value in msgspec.structs.asdict(failure(**fields)).items() if name in names}
    return JobFailure(**said)


def told_job(failures: Sequence[JobFailure] = (), stretches: int = 2, name: str = "a") -> ReportedJob:
    mixture = ("training", "data_wait", "checkpoint_blocking", "recompile", "stalled")
    shares = dict.fromkeys(mixture, 100.0 / len(mixture))
    return ReportedJob(
        job_id="ads/a",
        job_name=name,
        team=name,
        state="training",
        start=AT,
        end=AT + 100.0 * stretches,
        wall_s=100.0 * stretches,
        components={name: seconds * stretches for name, seconds in shares.items()},
        ett_percent=70.0,
        failures=len(failures),
        failure_list=list(failures),
        timeline=[
            StretchRow(start=AT + 100.0 * n, end=AT + 100.0 * n + 100.0, attempt=n // 10, components=shares)
            for n in range(stretches)
        ],
        labels={name: name},
    )


def told_fleet(name: str = "ads", **fields: object) -> FleetReport:
    parts = {"training": 80.0, "stalled": 20.0}
    time = FleetTime(key=name, jobs=2, total=100.0, effective_ratio=0.8, components=parts)
    week = AT - 604_800.0
    lately = Job(
        job_id=name, state="training", start=AT - 60.0, end=AT, wall_s=60.0, components={"training": 60.0}
    )
    said: dict[str, object] = {
        "window": "7d",
        "time": FleetWindow(as_of=AT, begin=week, end=AT, all=time, fleet=[time]),
        "jobs": [lately],
        "failures": Failures(
            as_of=AT,
            failures=[failure(job_name=name, cause=name)],
            total=1,
            lost_accelerator_s=5280.0,
            groups=[group("gpu_ecc", 1.4667, lost_ratio=1.0, cumulative_ratio=1.0)],
            over_time=[bucket(AT - 3600.0, gpu_ecc=1)],
        ),
        "nodes": Nodes(as_of=AT, nodes=[node(node=name)]),
        "regressions": Regressions(
            as_of=AT,
            begin=week,
            end=AT,
            runs=1,
            failures=1,
            components=[regression(family=name)],
            outbreaks=[outbreak(failure_class=name)],
        ),
        "families": Families(as_of=AT, begin=week, end=AT, families=[Family(name, 1, 1, AT, {})]),
        "runs": Runs(
            as_of=AT, begin=week, end=AT, runs=[run("a", 0.0, family=name, time_to_start=9.0)], total=1
        ),
    }
    return FleetReport(**(said | fields))


def charts_of(page: str) -> list[dict]:
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_job_is_told_with_its_starts_recoveries_and_throughput():
    """What each start and the recovery were made of, steps a second by attempt, the rate over its life."""
    known = {"observed": True, "world_size": 2, "accelerators": 2, "accelerator_type": "H100", "hidden": {}}
    known |= {"critical_rank": 1, "leader": 0, "first_batch_at": {}, "components": {}}
    first = AttemptAccount(
        attempt=0, start=AT, end=AT + 100.0, loop_start=AT + 40.0, outcome="failed", resumed_step=0,
        last_step=120, **known,
    )  # fmt: skip
    second = AttemptAccount(
        attempt=1, start=AT + 110.0, end=AT + 200.0, loop_start=AT + 150.0, outcome="running",
        resumed_step=100, last_step=600, **known,
    )  # fmt: skip
    line = [
        StretchRow(start=AT, end=AT + 40.0, attempt=0, components={"start.model_init": 40.0}),
        StretchRow(start=AT + 40.0, end=AT + 100.0, attempt=0, components={"training": 60.0}),
        StretchRow(start=AT + 100.0, end=AT + 110.0, attempt=0, components={"recover.teardown": 10.0}),
        StretchRow(start=AT + 110.0, end=AT + 150.0, attempt=1, components={"recover.compile": 40.0}),
        StretchRow(start=AT + 150.0, end=AT + 200.0, attempt=1, components={"training": 50.0}),
    ]
    told = msgspec.structs.replace(
        told_job([of_job(time=AT + 100.0, ttr_s=50.0, attempt=0)]),
        attempt_list=[first, second],
        timeline=line,
        throughput=Throughput(begin=AT, width_s=64.0, steps=(8.0, 64.0), samples=(64.0, 512.0)),
        world_size=1,
    )
    page = document("t", job.pieces(told, UNDECIDED, UTC), "").decode()
    rows = {
        title: re.findall(r'data-component="([^"]*)"', table)
        for title, table in re.findall(
            r'<table class="ett-waterfall" aria-label="([^"]*)">(.*?)</table>', page
        )
    }
    assert rows == {
        "Recovery from the failure of attempt 0": ["recover.teardown", "recover.compile"],
        "Start of attempt 1": ["recover.compile"],
        "Start of attempt 0": ["start.model_init"],
    }
    assert "Attempt 1 was in its loop after 40 s" in page
    assert re.findall(r"<bdi>(10\.0|2\.0)</bdi>", page) == ["10.0", "2.0"]
    assert [chart["title"] for chart in charts_of(page)][2:] == ["Samples a second over time"]


def test_the_page_allows_its_own_two_scripts_and_no_request():
    page = document("t", ["<p>x</p>"], "var Plotly = {};").decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].replace("&#x27;", "'") == (
        f"default-src 'none'; script-src '{digest('var Plotly = {};')}' '{digest(script())}'; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    assert f'<script type="module">{script()}</script>' in page
    assert not re.search(r'(src|href)="?(https?:)?//', page)


def test_plotly_of_the_installed_package_can_stand_in_a_page():
    document("t", [], plotly_file().read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match="cannot stand inside"):
        document("t", [], "x = '</script>'")


def test_pieces_keep_their_order_and_charts_their_places():
    one, two = (Chart({"data": [], "layout": {"height": n}}, str(n)) for n in (1, 2))
    html, charts = rendered(["<p>a</p>", Columns(cells=[[one], ["<p>b</p>", two]], widths=[1, 3])])
    assert charts == [one, two]
    assert re.findall(r'data-chart="(\d)"|<p>(\w)', html) == [("", "a"), ("0", ""), ("", "b"), ("1", "")]


def test_a_table_is_inert_and_says_what_it_means_and_leaves_out():
    fields = [
        text("name", "Name", HOSTILE, itemgetter(0)),
        seconds("time_s", "Time", "How long.", itemgetter(1)),
        count("count", "Count", "How many.", itemgetter(2)),
    ]
    html = listed("Times", fields, [(HOSTILE, 11.0, 1), ("b", None, 2000), ("c", 3.0, 3)], most=2)
    assert "<script" not in html
    assert re.findall(r"<bdi>([^<]*)</bdi>", html)[1:] == ["11 s", "1", "b", "n/a", "2,000"]
    assert re.findall(r'title="([^"]*)"', html)[1:] == ["How long.", "How many."]
    assert "1 more are left out." in html


def test_a_job_is_told_with_its_partition_failures_and_evidence():
    page = document("t", job.pieces(told_job([of_job()]), UNDECIDED, UTC), "").decode()
    for said in (
        "ads/a",
        "70.0 %",
        "gpu_ecc, attempt 2",
        "Xid 48",
        "infrastructure, certain",
    ):
        assert said in page
    assert [chart["title"] for chart in charts_of(page)] == [
        "Attempts over time by component",
        "Partition of the wall time",
    ]


def test_a_job_without_anything_is_told_too():
    page = document("t", job.pieces(told_job(stretches=0), UNDECIDED, UTC), "").decode()
    assert "No stretch of time is known so far." in page
    assert "None so far" in page


def test_a_job_is_told_with_what_its_pipeline_decided():
    """The latest of very many; their words are the page's."""
    page = document("t", job.pieces(told_job(), decided("save every", 60), UTC), "").decode()
    assert page.count("<bdi>save every</bdi>") == 40
    assert "<bdi>save every 0</bdi>" in page
    assert "20 earlier ones are left out." in page
    assert (
        "no part of the optimised pipeline"
        in document("t", job.pieces(told_job(), UNDECIDED, UTC), "").decode()
    )


def test_a_fleet_is_told_with_what_failed_and_what_became_slower():
    page = document("t", fleet.pieces(told_fleet(), UTC), "").decode()
    for said in (
        "Fleet, the last 7 days",
        "80.0 %",
        "suspect",
        "struck 9 jobs",
        "Time to start of ads is 2.0",
    ):
        assert said in page
    assert len(charts_of(page)) == 5
    assert "left out" not in page
    others = msgspec.structs.replace(told_fleet().time, left_out=2, missing=3)
    page = document("t", fleet.pieces(told_fleet(time=others), UTC), "").decode()
    assert "2 jobs that are not there to train are left out of all figures of time." in page
    assert "3 jobs are not counted here yet" in page
    nothing = Failures(as_of=AT, failures=(), total=0, lost_accelerator_s=0.0)
    quiet = FleetWindow(as_of=AT, begin=AT, end=AT, all=FleetTime(key="", jobs=0, total=0.0))
    page = document("t", fleet.pieces(told_fleet(failures=nothing, time=quiet, jobs=[]), UTC), "").decode()
    assert "No failure in this time" in page
    assert "No job held an accelerator in this time." in page


@pytest.mark.parametrize(
    "pieces",
    [
        job.pieces(told_job([of_job(cause=HOSTILE, message=HOSTILE)], name=HOSTILE), decided(HOSTILE), UTC),
        fleet.pieces(told_fleet(HOSTILE), UTC),
    ],
    ids=["job", "fleet"],
)
def test_words_of_jobs_are_inert_wherever_they_stand(pieces):
    page = document(HOSTILE, pieces, "").decode()
    assert len(re.findall("<script", page)) == 3
    assert len(re.findall("</script", page)) == 3
    assert "<a href='y'" not in page
    assert "<!--" not in page
    assert HOSTILE in json.dumps(charts_of(page)) or "&lt;/script&gt;" in page


def test_a_huge_job_stays_small():
    """Two hundred failures with four hundred long lines each, and a timeline as long as the API gives."""
    rows = [EvidenceRow(time=AT + n, rank=n, text="x" * 8000) for n in range(400)]
    failures = [of_job(attempt=n, evidence=rows) for n in range(200)]
    told = told_job(failures, stretches=2000)
    page = document(
        job.title(told), job.pieces(told, UNDECIDED, UTC), plotly_file().read_text(encoding="utf-8")
    )
    assert len(page) < 6_000_000
    assert b"180 earlier ones" in page
    assert b"375 more lines are left out" in page


@pytest.mark.parametrize(("takes_s", "asked", "missing"), [(1.0, 3, 0), (READ_FOR_S / 2, 2, 1)])
def test_a_report_waits_until_the_exporter_has_read_all_jobs_but_not_for_ever(takes_s, asked, missing):
    """The same question is asked again; where that takes too long the report says how many jobs it lacks."""
    nothing = FleetTime(key="", total=0.0)
    answers = [
        FleetWindow(as_of=AT, begin=0.0, end=AT, all=nothing, missing=missing) for missing in (2, 1, 0)
    ]
    heard, passed_s = [], iter(range(10))

    class Exporter:
        def ask(self, question):
            heard.append(question)
            return answers[len(heard) - 1]

    question = by_group("30d", "team", AT)
    told = whole(Exporter(), question, lambda: next(passed_s) * takes_s)
    assert (heard, told.missing) == ([question] * asked, missing)


def test_a_report_of_a_short_window_asks_for_the_window_that_the_exporter_keeps_ready():
    """Longer ones are two moments: the same whenever they are asked for again."""
    assert dict(by_group("7d", "team", AT).parameters)["window"] == "7d"
    month = dict(by_group("30d", "team", AT).parameters)
    assert float(month["end"]) - float(month["begin"]) == 30 * 86_400


def test_a_file_is_put_in_its_place_whole(tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(b"old")
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="No such file"):
        write(tmp_path / "none" / "report.html", b"new")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give the id of a job, or --fleet"),
        (["a", "--fleet", "7d"], "give the id of a job, or --fleet"),
        (["a", "--time-zone", "Mars/Olympus"], "'Mars/Olympus' is no zone"),
        (["a", "--exporter", "nowhere"], "does not look like http://HOST:PORT"),
    ],
)
def test_a_wrong_command_line_is_refused_with_a_sentence(capsys, tmp_path, words, said):
    assert main(["report", *words, "--out", str(tmp_path / "r.html")]) == 2
    assert said in capsys.readouterr().err


def test_an_exporter_that_is_not_there_is_told_in_a_sentence(capsys, tmp_path):
    words = ["report", "a", "--exporter", "http://127.0.0.1:9", "--out", str(tmp_path / "r.html")]
    assert main(words) == 1
    assert "nothing answers at http://127.0.0.1:9" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
