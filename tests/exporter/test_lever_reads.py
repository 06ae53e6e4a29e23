"""Caches by run, checkpoint intervals and what-if, asked as a reader does."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from slowing_saves import beside_steps

from ett_core import events as ev
from ett_exporter.api import make_app
from ett_exporter.job_series import job_samples
from ett_exporter.service import Service

BEGIN = 1_764_000_000.0
NOW = BEGIN + 400.0


def asked(service: Service, *addresses: str) -> list[httpx.Response]:
    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(make_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter/api/v1") as client:
            return [await client.get(address) for address in addresses]

    return asyncio.run(ask())


def compiled(story, *, hits: int, compile_s: float, torch: str = "2.13.0", ends: bool = True):
    """One rank that compiles, trains for 100 s, saves twice, and is killed."""
    labels = {"model": "dlrm", "team": "ads", "job_name": story.job_id}
    story.tell(
        0,
        ev.AttemptStart,
        world_size=4,
        accelerators=4,
        accelerator_type="H200",
        labels=labels,
        versions={"torch": torch},
        config_hash="aa",
    )
    story.tell(2, ev.PhaseBegin, phase="compile")
    at = 2 + compile_s
    story.tell(at, ev.PhaseEnd, phase="compile")
    story.tell(at, ev.Cache, cache="fx_graph", hits=hits, misses=10 - hits, bytes=1000, saved_s=3.0)
    story.tell(at, ev.FirstBatch, step=0)
    for report in range(1, 6):
        moment = at + 20 * report
        story.tell(moment, ev.Progress, step=10 * report, steps=10, samples=10, data_wait_s=1.0)
        if report in (1, 3):
            story.tell(moment, ev.PhaseBegin, phase="checkpoint")
            story.tell(moment + 1, ev.PhaseEnd, phase="checkpoint")
            story.tell(moment + 1, ev.Checkpoint, step=10 * report, mode="sync", blocking_s=1.0, bytes=10)
            story.tell(moment + 3, ev.CheckpointDurable, step=10 * report, mode="sync", bytes=10)
    story.tell(at + 101, ev.Failure, exit_code=1, exception="ValueError", message="bad")
    story.tell(at + 102, ev.AttemptEnd, status="failed", exit_code=1)
    if ends:
        story.tell(at + 103, ev.JobEnd, rank=-1, status="failed")
    return story


@pytest.fixture
def told(service, blank_story):
    """A cold run, a warm one, one that is cold for no reason, and one of another torch."""
    opened = service(now=NOW)
    for story in (
        compiled(blank_story("cold/1", BEGIN), hits=0, compile_s=60.0),
        compiled(blank_story("warm/2", BEGIN + 10), hits=10, compile_s=5.0),
        compiled(blank_story("again/3", BEGIN + 20), hits=0, compile_s=60.0),
        compiled(blank_story("new/4", BEGIN + 30), hits=0, compile_s=60.0, torch="2.14.0"),
    ):
        for body in story.bodies().values():
            opened.ingest(body)
    return opened


def test_runs_tell_their_verdict_and_the_surprises_are_found(told):
    """The latest first; what was expected to be warm and is cold can be asked for alone."""
    everything, surprises, warm = (
        answer.json()
        for answer in asked(
            told, "/caches/runs", "/caches/runs?surprise=true", "/caches/runs?verdict=warm&team=ads"
        )
    )
    assert [row["id"] for row in everything["runs"]] == ["new/4~0", "again/3~0", "warm/2~0", "cold/1~0"]
    assert [row["verdict"] for row in everything["runs"]] == ["cold", "cold", "warm", "cold"]
    assert (everything["verdicts"], everything["surprises"]) == ({"cold": 3, "warm": 1}, 1)
    assert [row["id"] for row in surprises["runs"]] == ["again/3~0"]
    assert surprises["runs"][0]["alike"] == "warm/2~0"
    (row,) = warm["runs"]
    assert (row["bytes"], row["saved_s"], row["compile_s"], row["hit_ratio"]) == (1000, 3.0, 5.0, 1.0)
    assert row["caches"]["fx_graph"]["hit_ratio"] == 1.0


def test_two_runs_are_compared_and_the_cold_one_explained(told):
    """Whichever is named first, the reasons are those of the one that compiled longer."""
    answers = [
        answer.json()
        for answer in asked(
            told,
            "/caches/comparison?one=new/4~0&two=warm/2~0",
            "/caches/comparison?one=warm/2~0&two=new/4~0",
        )
    ]
    assert [answer["cold"] for answer in answers] == ["new/4~0"] * 2
    assert answers[0]["reasons"] == answers[1]["reasons"]
    assert "Torch changed from 2.13.0 to 2.14.0" in answers[0]["reasons"][0]
    assert answers[1]["differences"][0] == {"what": "torch", "one": "2.13.0", "two": "2.14.0", "is_key": True}


def test_a_run_that_is_not_there_is_said_to_be_unknown(told):
    missing, bad = asked(told, "/caches/comparison?one=x~0&two=warm/2~0", "/caches/comparison?one=x~0")
    assert (missing.status_code, bad.status_code) == (404, 400)
    assert "x~0" in missing.json()["error"]


def test_intervals_are_told_beside_the_best_of_them(told):
    """Two saves of 1 s in the 101 s of the loop of a job, one failure; the dearest comes first."""
    (answer,) = asked(told, "/intervals")
    rows = answer.json()["jobs"]
    assert len(rows) == answer.json()["total"] == 4
    assert [row["excess_accelerator_s"] for row in rows] == sorted(
        (row["excess_accelerator_s"] for row in rows), reverse=True
    )
    row = next(row for row in rows if row["job_id"] == "warm/2")
    assert (row["saves"], row["failures"], row["blocking_s"], row["upload_s"]) == (2, 1, 1.0, 2.0)
    assert row["interval_s"] == 40.0  # between its two saves
    assert row["loop_s"] == pytest.approx(101.0)  # from its first batch to its failure
    assert row["best_s"] == pytest.approx((2 * 101.0) ** 0.5)
    assert row["wasted_percent"] == pytest.approx(100 * (2.0 + row["unsaved_s"]) / 101.0)
    assert row["shortest_s"] < row["best_s"] < row["longest_s"]
    assert row["best_percent"] < row["wasted_percent"]
    views = told.known(NOW).views
    samples = [sample for view in views for sample in job_samples(view)]
    assert row["best_s"] in {value for _, labels, value in samples if "optimal" in labels}


def test_the_best_interval_of_a_dead_job_stays_as_it_is(service, blank_story):
    """A job that failed and never came back: an hour later its wall time is longer, and that is all."""
    answers = []
    for now in (NOW, NOW + 3600.0):
        opened = service(now=now)
        for body in (
            compiled(blank_story("dead/1", BEGIN), hits=0, compile_s=60.0, ends=False).bodies().values()
        ):
            opened.ingest(body)
        (answer,) = asked(opened, "/intervals")
        answers += answer.json()["jobs"]
    soon, later = answers
    assert later["wall_s"] == pytest.approx(soon["wall_s"] + 3600.0)
    told = ("loop_s", "best_s", "shortest_s", "longest_s", "wasted_percent", "best_percent")
    assert {name: later[name] for name in told} == {name: soon[name] for name in told}


def test_failures_before_the_loop_do_not_move_the_best_interval(service, blank_story):
    """Of a job that failed once in its loop and twice on its way back into it, one counts, everywhere."""
    story = compiled(blank_story("starts/1", BEGIN), hits=0, compile_s=60.0, ends=False)
    for attempt, at in enumerate((170.0, 180.0), 1):
        story.tell(at, ev.AttemptStart, attempt=attempt, world_size=4)
        story.tell(at + 2, ev.Failure, attempt=attempt, exit_code=1, exception="OSError", message="no device")
        story.tell(at + 3, ev.AttemptEnd, attempt=attempt, status="failed", exit_code=1)
    opened = service(now=NOW)
    for body in story.bodies().values():
        opened.ingest(body)
    intervals, jobs = (answer.json()["jobs"] for answer in asked(opened, "/intervals", "/jobs"))
    assert (jobs[0]["failures"], intervals[0]["failures"]) == (3, 1)
    assert intervals[0]["best_s"] == pytest.approx((2 * 101.0) ** 0.5)
    samples = [sample for view in opened.known(NOW).views for sample in job_samples(view)]
    assert intervals[0]["best_s"] in {value for _, labels, value in samples if "optimal" in labels}


def test_what_a_save_in_the_background_slows_is_part_of_what_it_costs(service, blank_story):
    """A save blocks 1 s and slows ten steps by 3 s: together 4 s, in the answer, the series and what-if."""
    opened = service(now=NOW)
    for story in (
        beside_steps(blank_story("beside/1", BEGIN)),
        compiled(blank_story("waits/2", BEGIN), hits=0, compile_s=60.0),
    ):
        for body in story.bodies().values():
            opened.ingest(body)
    rows = {row["job_id"]: row for row in asked(opened, "/intervals")[0].json()["jobs"]}
    row, waits = rows["beside/1"], rows["waits/2"]
    assert (row["blocking_s"], row["slowed_s"]) == (1.0, pytest.approx(3.0))
    assert row["best_s"] == pytest.approx((2 * 4.0 * row["loop_s"] / 1) ** 0.5)
    assert row["wasted_percent"] == pytest.approx(100 * (2 * 4.0 + row["unsaved_s"]) / row["loop_s"])
    assert waits["slowed_s"] is None
    assert waits["best_s"] == pytest.approx((2 * 1.0 * waits["loop_s"] / 1) ** 0.5)
    views = {view.account.job_id: job_samples(view) for view in opened.known(NOW).views}
    told = {name: dict(_by_labels(samples)) for name, samples in views.items()}
    assert told["beside/1"]["ett_job_checkpoint_slowed_seconds", ()] == row["slowed_s"]
    assert told["beside/1"]["ett_job_checkpoint_interval_seconds", ("optimal",)] == row["best_s"]
    assert ("ett_job_checkpoint_slowed_seconds", ()) not in told["waits/2"]


def _by_labels(samples):
    return (((name, labels), value) for name, labels, value in samples)


def test_what_if_begins_with_the_fleet_as_it_is(told):
    """Without levers: the same sums as the fleet's; with them: less time, the same training."""
    fleet, plain, both = (
        answer.json()
        for answer in asked(
            told, "/fleet?window=7d", "/what-if", "/what-if?levers=caches,failure:user_code,recovery"
        )
    )
    assert plain["now"]["components"] == pytest.approx(fleet["all"]["components"])
    assert plain["together"] == plain["now"]
    assert plain["now"]["effective_ratio"] == pytest.approx(fleet["all"]["effective_ratio"])
    assert both["levers"] == ["caches", "failure:user_code", "recovery"]
    assert both["together"]["components"]["training"] == pytest.approx(plain["now"]["components"]["training"])
    assert both["together"]["total"] == pytest.approx(plain["now"]["total"] - both["saved"])
    alone = {row["key"]: row["saved"] for row in both["alone"]}
    assert alone["caches"] == pytest.approx(3 * 55.0 * 4)
    assert both["overlap"] == pytest.approx(sum(alone[key] for key in both["levers"]) - both["saved"])
    assert plain["warm_runs"] == 1


def test_a_lever_that_is_not_there_is_refused_by_name(told):
    (answer,) = asked(told, "/what-if?levers=faster")
    assert answer.status_code == 400
    assert "no lever 'faster'" in answer.json()["error"]
    (answer,) = asked(told, "/what-if?weight=cost")
    assert "--price" in answer.json()["error"]
