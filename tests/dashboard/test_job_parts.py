"""The parts of the Job page: starts, recoveries, ranks, checkpoints and throughput in rows and words."""

from __future__ import annotations

import csv
import io
from datetime import timezone

import msgspec
import pytest

from ett_core.accounting.account import AttemptAccount
from ett_core.failures import Diagnosis
from ett_core.throughput import Throughput
from ett_dashboard import listing
from ett_dashboard.checkpoints.rows import IntervalRow, Intervals
from ett_dashboard.job import fields, markup, throughput
from ett_dashboard.job.ranks import rank_lines, rank_sentences
from ett_dashboard.job.rows import RankRow, Ranks, StragglerRow
from ett_dashboard.job.tiles import checkpoint_tiles, throughput_tiles
from ett_dashboard.job.waterfall import starts, steps, steps_of_recovery, steps_of_start
from ett_dashboard.job.words import collectives_told, start_sentence
from ett_dashboard.rows import FailureRow, JobDetail, StepTimes, StretchRow
from ett_dashboard.tiles import job_tiles

HOSTILE = "<img src=x onerror=alert(1)>"


def attempt(number: int = 0, **known) -> AttemptAccount:
    """An attempt of two ranks, from 10 to 100 s, with its loop from 40 s on."""
    fields = {
        "attempt": number,
        "start": 10.0,
        "end": 100.0,
        "loop_start": 40.0,
        "outcome": "running",
        "observed": True,
        "critical_rank": 1,
        "leader": 0,
        "world_size": 2,
        "accelerators": 2,
        "accelerator_type": "H100",
        "resumed_step": 100,
        "last_step": 400,
        "first_batch_at": {0: 28.0, 1: 40.0},
        "hidden": {},
        "components": {"start.model_init": 30.0, "training": 60.0},
    }
    return AttemptAccount(**fields | known)


def stretch(start: float, end: float, number: int = 0, **components: float) -> StretchRow:
    named = {name.replace("__", "."): amount for name, amount in components.items()}
    return StretchRow(start=start, end=end, attempt=number, components=named or {"training": end - start})


LINE = [
    stretch(0.0, 10.0, start__allocation=10.0),
    stretch(10.0, 20.0, start__model_init=10.0),
    stretch(20.0, 22.0, start__other=2.0),
    stretch(22.0, 40.0, start__model_init=18.0),
    stretch(40.0, 60.0),
    stretch(60.0, 65.0, recover__teardown=5.0),
    stretch(65.0, 80.0, 1, recover__compile=15.0),
    stretch(80.0, 100.0, 1),
]


def job(*attempts: AttemptAccount, timeline=LINE) -> JobDetail:
    return JobDetail(
        job_id="j",
        state="training",
        start=0.0,
        end=100.0,
        wall_s=100.0,
        components={"training": 100.0},
        attempt_list=list(attempts),
        timeline=timeline,
    )


def failure(time: float, ttr_s: float | None) -> FailureRow:
    return FailureRow(
        attempt=0,
        time=time,
        rank=1,
        node="n",
        exception=None,
        message=None,
        exit_code=None,
        signal=9,
        status=None,
        silent=False,
        ttr_s=ttr_s,
        unsaved_s=0.0,
        fallback_step=None,
        resume_evidence="unknown",
    )


def told(found):
    return {step.component: step.spans for step in found}


def test_the_first_start_begins_with_the_allocation_and_a_component_that_is_broken_off_has_two_bars():
    of = job(attempt())
    assert told(steps_of_start(of, starts(of)[0])) == {
        "start.allocation": ((0.0, 10.0),),
        "start.model_init": ((10.0, 10.0), (22.0, 18.0)),
        "start.other": ((20.0, 2.0),),
    }


def test_a_later_start_begins_with_its_attempt():
    of = job(attempt(), attempt(1, start=65.0, loop_start=80.0))
    assert told(steps_of_start(of, starts(of)[1])) == {"recover.compile": ((0.0, 15.0),)}


def test_a_recovery_goes_over_attempts_to_the_next_loop_and_one_without_it_to_now():
    gone_on = {"recover.teardown": ((0.0, 5.0),), "recover.compile": ((5.0, 15.0),)}
    assert told(steps_of_recovery(job(), failure(60.0, 20.0))) == gone_on
    assert told(steps_of_recovery(job(timeline=LINE[:-1]), failure(60.0, None))) == gone_on


def test_the_steps_of_a_recovery_add_up_to_the_time_to_recover():
    found = steps_of_recovery(job(), failure(60.0, 20.0))
    assert sum(step.seconds for step in found) == 20.0


def test_in_a_joined_stretch_a_start_comes_before_its_loop_and_a_gap_after_it():
    joined = [stretch(0.0, 60.0, training=40.0, recover__restart=8.0, start__compile=12.0)]
    assert told(steps(joined, 0.0, 12.0)) == {"start.compile": ((0.0, 12.0),)}
    assert told(steps(joined, 52.0, 60.0)) == {"recover.restart": ((0.0, 8.0),)}


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, "attempt 0 was in its loop after 40 s; the longest part was start.model_init (28 s, 70.0 %)"),
        ({}, "rank 1 held it up, first batches came 12 s apart"),
        ({"first_batch_at": {0: 40.0, 1: 40.0}}, "(28 s, 70.0 %)"),
        ({"loop_start": None}, "attempt 0 has been starting for 1 m 40 s"),
        ({"loop_start": None, "outcome": "failed"}, "attempt 0 ended after 1 m 40 s, before any loop"),
    ],
)
def test_a_start_in_words(known, words):
    of = job(attempt(**known))
    (start,) = starts(of)
    how = start_sentence(start, steps_of_start(of, start)).how
    assert words in how
    assert ("held it up" in how) is ("first_batch_at" not in known)


def test_what_other_tracks_hid_is_said_and_its_words_are_inert():
    (start,) = starts(job(attempt(hidden={"compile": 30.0, "cache\u202e_load": 5.0, "nothing": 0.0})))
    assert start_sentence(start, []).do == "Hidden by work beside it: compile 30 s, cache_load 5.0 s."
    (start,) = starts(job(attempt()))
    assert start_sentence(start, []).do == ""


def test_collectives_of_the_starts_are_told_a_rank_those_called_most_first():
    """Names are the trainer's own: they are inert."""
    counted = {"counted": 2, "groups": 3, "groups_s": 0.4, "collectives": 30, "collectives_s": 5.0}
    kinds = {f"collectives.{name}": n for n, name in enumerate(["a", "b", "c", "d", "e\u202ef"], 1)}
    told = collectives_told({f"start.{name}": n for name, n in {**counted, **kinds}.items()})
    assert told == (
        "Until its first step a rank made 1.5 process groups (0.2 s) and 15 collectives (2.5 s): "
        "2.5 ef, 2 d, 1.5 c, 1 b."
    )
    assert collectives_told({"hooks.batches_seen": 3.0}) == ""
    none = {"start.counted": 1.0, "start.groups": 1.0, "start.groups_s": 1.0}
    assert collectives_told(none).endswith("1 process group (1.0 s) and 0 collectives (0 s).")


def test_a_waterfall_has_a_bar_where_a_component_owned_time():
    html = markup.waterfall(steps(LINE, 0.0, 40.0), HOSTILE)
    assert 'style="left:25.00%;width:25.00%;' in html
    assert 'style="left:55.00%;width:45.00%;' in html
    assert "<td>28 s</td><td>70.0 %</td>" in html
    assert "<img" not in html
    assert "Together" in markup.waterfall([], "nothing")


def test_attempts_as_a_file_have_exact_values_and_none_where_nothing_is_known():
    known = starts(job(attempt(hidden={"compile": 3.0}), attempt(1, loop_start=None, last_step=None)))
    first, second = csv.DictReader(io.StringIO(listing.as_csv(fields.attempts({}), known).decode()))
    assert (first["start_s"], first["behind_s"], first["hidden_s"]) == ("40.0", "12.0", "3.0")
    assert (first["loop_s"], first["steps"], first["steps_per_s"]) == ("60.0", "300.0", "5.0")
    assert (second["start_s"], second["steps"], second["steps_per_s"]) == ("", "", "")


def test_a_row_of_the_attempts_leads_to_its_start_and_keeps_what_else_was_chosen():
    columns = fields.attempts({"id": "a b", "zone": "UTC"})
    (row,) = listing.rows(columns, starts(job(attempt(3))), lambda _start: "x")
    assert row.cells[0].href == "job?id=a+b&zone=UTC&attempt=3"
    assert [cell.text for cell in row.cells[:4]] == ["attempt 3", "running", "40 s", "rank 1"]


def diagnosed(number: int, rank: int | None, node: str = "") -> FailureRow:
    diagnosis = Diagnosis("gpu_oom", "workload", "root", "certain", "with_change", rank, node, (), "")
    return msgspec.structs.replace(failure(60.0, 1.0), attempt=number, diagnosis=diagnosis)


SLOW = StragglerRow(attempt=1, rank=2, node="n2", since=0.0, until=240.0, ratio=2.13, cause="data_wait")


def test_slow_ranks_are_told_with_what_slows_them_those_that_are_slow_now_first():
    now = msgspec.structs.replace(SLOW, rank=0, node="", until=60.0, ratio=1.5, cause="step", ongoing=True)
    assert rank_sentences([], Ranks(as_of=0.0, stragglers=[SLOW, now])) == [
        "Rank 0 is slow now, for 1 m 0 s: 1.5 times as long a step, its own steps take longer.",
        "Rank 2 on n2 was slow in attempt 1, for 4 m 0 s: 2.1 times as long a step, it waits for its data.",
    ]
    many = rank_sentences([], Ranks(as_of=0.0, stragglers=[SLOW] * 5))
    assert many[3:] == ["2 other stretches of slow ranks."]


def test_who_died_first_is_counted_over_attempts_and_nobody_is_named_where_no_rank_is_known():
    failures = [diagnosed(0, 1, "a"), diagnosed(1, None, "x"), diagnosed(2, 1, HOSTILE), failure(9.0, None)]
    (told,) = rank_sentences(failures, Ranks(as_of=0.0))
    assert told == f"Rank 1 on {HOSTILE} died first 2 times, last in attempt 2."
    assert rank_sentences([diagnosed(0, -1)], Ranks(as_of=0.0)) == []


def test_ranks_that_keep_pace_are_said_to():
    assert rank_sentences([], Ranks(as_of=0.0, step_spread=0.012)) == [
        "No rank was slower than the others; their steps lie 1.2 % apart."
    ]


def test_ranks_of_which_something_is_to_be_said_come_first():
    of = msgspec.structs.replace(job(attempt()), failure_list=[diagnosed(0, 3)])
    rows = [RankRow(rank=rank, first_batch_at=28.0 + rank, is_straggler=rank == 2) for rank in range(5)]
    lines = rank_lines(of, Ranks(as_of=50.0, attempt=0, ranks=rows))
    assert [(line.row.rank, line.parts) for line in lines] == [
        (2, ("slow now",)),
        (3, ("died first once",)),
        (1, ("last to start",)),
        (0, ("leads the loop",)),
        (4, ()),
    ]
    assert [line.first_batch_s for line in lines] == [20.0, 21.0, 19.0, 18.0, 22.0]
    cells = listing.rows(fields.ranks(), lines, lambda line: str(line.row.rank))[0].cells
    assert [cell.text for cell in cells] == ["rank 2", "", "slow now", "20 s", "n/a", "n/a", "never"]


def test_the_last_hour_is_told_of_a_job_that_has_run_for_longer():
    """Of a younger one it is its life, of one that is over nobody asks how it goes now."""
    running = msgspec.structs.replace(job(), wall_s=7200.0, ett_percent=90.0, ett_percent_within={"1h": 12.5})
    assert [tile[:2] for tile in job_tiles(running)][:2] == [
        ("Effective training time", "90.0 %"),
        ("ETT, last hour", "12.5 %"),
    ]
    for other in ({"finished": True}, {"wall_s": 3600.0}, {"ett_percent_within": {"1h": None}}):
        labels = [label for label, _, _ in job_tiles(msgspec.structs.replace(running, **other))]
        assert labels[1] == "Time to start", other


def test_throughput_counts_lost_training_too_and_says_nothing_where_nothing_is_known():
    fast = msgspec.structs.replace(
        job(attempt()),
        samples=1.2e5,
        components={"training": 60.0, "unsaved_training": 40.0},
        step_times=StepTimes(timed=9, p50_s=0.2647, p99_s=1.5),
    )
    assert [value for _, value, _ in throughput_tiles(fast)] == ["1.2 k", "5.0", "265 ms", "1.5 s"]
    assert [value for _, value, _ in throughput_tiles(job())] == ["n/a"] * 4


def reported(**fields) -> JobDetail:
    """A job of 100 s, of which parts of 16 s tell 32 steps and 160 samples each."""
    told = Throughput(begin=-12.0, width_s=16.0, steps=(8.0, *[32.0] * 6), samples=(40.0, *[160.0] * 6))
    return msgspec.structs.replace(job(attempt()), **({"throughput": told, "world_size": 2} | fields))


def test_parts_of_a_life_are_those_within_it_of_which_all_is_known():
    """The first begins with the job, the last ends with it; of a live one the latest minute is left out."""
    over = throughput.paces(reported(finished=True))
    assert (over[0].begin, over[0].end, over[-1].begin, over[-1].end) == (0.0, 4.0, 84.0, 100.0)
    assert [(pace.steps_per_s, pace.samples_per_s) for pace in over[:2]] == [(2.0, 10.0), (2.0, 10.0)]
    live = throughput.paces(reported(as_of=100.0))
    assert [pace.end for pace in live] == [4.0, 20.0, 36.0]
    alone = throughput.paces(reported(as_of=99.0, world_size=1))
    assert alone[-1].end == 84.0
    assert throughput.paces(job(attempt())) == []


def test_the_rate_over_time_is_of_samples_where_they_are_counted_else_of_steps():
    """Steps of an area with the failures on it; the hover tells both rates."""
    of = reported(finished=True)
    known = throughput.paces(of)
    drawn = throughput.figure(known, [failure(40.0, None)], (0.0, 100.0), timezone.utc)
    area, marks = drawn["data"]
    assert area["y"] == pytest.approx([10.0] * 14)
    assert area["x"][:3] == ["1970-01-01 00:00:00.000", "1970-01-01 00:00:04.000", "1970-01-01 00:00:04.000"]
    assert area["hovertext"][2] == "10.0 samples a second<br>2.0 steps a second<br>over 16 s"
    assert (marks["x"], marks["y"]) == (["1970-01-01 00:00:40.000"], [0.0])
    assert throughput.note(known).startswith("Samples a second over time, in parts of 16 s;")
    silent = msgspec.structs.replace(of.throughput, samples=(0.0,) * 7)
    stepping = throughput.paces(msgspec.structs.replace(of, throughput=silent))
    assert throughput.title(stepping) == "Steps a second over time"
    only = throughput.figure(stepping, [], (0.0, 100.0), timezone.utc)["data"]
    assert [trace["y"][:2] for trace in only] == [pytest.approx([2.0, 2.0])]


def test_the_interval_stands_beside_the_best_one_and_its_range():
    interval = IntervalRow(
        job_id="j",
        saves=9,
        failures=2,
        wall_s=9e3,
        loop_s=9e3,
        interval_s=600.0,
        blocking_s=12.0,
        upload_s=60.0,
        best_s=300.0,
        shortest_s=200.0,
        wasted_percent=5.0,
    )
    saving = msgspec.structs.replace(job(), last_durable_at=40.0, as_of=100.0)
    told = checkpoint_tiles(saving, interval)
    assert [value for _, value, _ in told] == ["10 m 0 s", "5 m 0 s", "12 s", "1 m 0 s", "1 m ago"]
    assert "between 3 m 20 s and any longer one" in told[1][2]
    assert told[2][2].endswith("nobody can tell: blocking alone counts for the best interval.")
    slow = checkpoint_tiles(saving, msgspec.structs.replace(interval, slowed_s=4.0))
    assert slow[2][2].endswith("Steps beside one in the background take 4.0 s longer.")
    assert [value for _, value, _ in checkpoint_tiles(job(), None)] == ["n/a"] * 4 + ["never"]
    answer = Intervals(as_of=0.0, jobs=[interval], total=1)
    assert (answer.of("j"), answer.of("k")) == (interval, None)
