"""The report of one job: a golden text of figures worked by hand, and its promises."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_cli.advice import advice_on
from ett_cli.amounts import rounded
from ett_cli.failure_words import last_words
from ett_cli.report import headline, largest_loss, partition_lines, report, what_to_do
from ett_core.components import COMPONENTS

JOB = {
    "job_id": "dlrm-7",
    "state": "succeeded",
    "wall_s": 100.0,
    "attempts": 2,
    "failures": 1,
    "ett_percent": 60.0,
    "components": {
        "training": 60.0,
        "start.model_init": 10.0,
        "start.compile": 15.0,
        "checkpoint_blocking": 1.0,
        "other": 0.01,
        "unsaved_training": 4.99,
        "recover.restart": 9.0,
    },
    "tts_s": 25.0,
    "ttr_s": [9.0],
    "unsaved_exposure_s": 0.0,
    "checkpoint_count": 8,
    "checkpoint_blocking_s": 1.0,
    "last_durable_step": 400,
    "failure_list": [
        {
            "attempt": 0,
            "cause": "rank 1 was killed by SIGKILL (sender unknown)",
            "fallback_step": 200,
            "unsaved_s": 4.99,
            "ttr_s": 9.0,
        }
    ],
    "caches": {"fx_graph": {"hits": 6, "misses": 2, "bypasses": 0}},
    "compile": {"dynamo": 0.4, "native": 12.0},
}

SLOW = {
    "start": 1000.0,
    "stragglers": [
        {"attempt": 0, "rank": 6, "node": "n3", "since": 1030.0, "until": 1150.0, "ratio": 1.54,
         "cause": "data_wait", "ongoing": True},
    ],
    "async_saves": {"saves": 2, "known": 2, "excess_s": 3.0, "share": 0.6, "noise_s": 0.1},
}  # fmt: skip


def test_stalls_are_told_by_their_sentences_and_not_by_stacks():
    line = {"attempt": 0, "time": 1090.0, "rank": -1, "node": "n0"}
    stalls = [
        {**line, "source": "stall", "text": "no rank made progress"},
        {**line, "source": "stack", "text": "x"},
    ]
    lines = report(JOB | {"start": 1000.0, "stalls": stalls}).splitlines()
    place = lines.index("Stalls")
    assert lines[place + 1 : place + 3] == ["  1 m 30.0 s in on n0: no rank made progress", ""]


def test_slow_ranks_and_saves_beside_steps_have_lines_of_their_own():
    lines = report(JOB | SLOW).splitlines()
    place = lines.index("Slow ranks")
    said = "rank 6 on n3, attempt 0: 1.5 times the usual step from 30.0 s on, still slow; it waits for data"
    assert lines[place + 1] == f"  {said}"
    assert "Saves beside steps 2 in flight made steps 60.0 % longer, by 3.0 s (give or take 100 ms)" in lines


GOLDEN = """\
Job dlrm-7: succeeded, 1 m 40.0 s of wall time, 2 attempts, 1 failure

ETT 60.0 %: the share of the wall time spent on training that survived

Where the time went
  effective                           60.0 s    60.0 %
    training                          60.0 s    60.0 %
  idleness                            26.0 s    26.0 %
    start.model_init                  10.0 s    10.0 %
    start.compile                     15.0 s    15.0 %
    checkpoint_blocking                1.0 s     1.0 %
    1 smaller one                      0.0 s     0.0 %
  failure                             14.0 s    14.0 %
    unsaved_training                   5.0 s     5.0 %
    recover.restart                    9.0 s     9.0 %
  wall time                          100.0 s   100.0 %

Time to start      25.0 s
Time to recover    9.0 s
Training lost      5.0 s unsaved
Checkpoints        8 saves, training blocked for 1.0 s in all (125 ms each), the last durable one at step 400

Failures
  1. attempt 0: rank 1 was killed by SIGKILL (sender unknown)
     resumed from step 200, 5.0 s of training lost, recovered in 9.0 s

Compile caches, over all ranks and attempts
  fx_graph         6 hits, 2 misses, 0 bypasses (75 % hits)
  seconds by stage dynamo 0.4 s, native 12.0 s

Largest loss: start.compile (before any failure: compiling before the first step was through) took \
15.0 s, 15.0 %: keep the compile cache where every start finds it, and compile once a node."""


def test_a_finished_job_reads_as_worked_by_hand():
    """Every part of the report stands where the golden text has it."""
    assert report(JOB) == GOLDEN


def test_what_is_not_known_is_left_out_or_said():
    """The few figures of a plain account make a report; unobserved is not called 0 %."""
    text = report({"job_id": "j", "state": "running", "wall_s": 3.0, "ett_percent": None, "components": {}})
    assert "ETT unobserved" in text
    assert "0.0 %" not in text
    assert "Failures" not in text
    assert "Largest loss" not in text


@pytest.mark.parametrize(
    ("state", "words", "figure"),
    [
        ("recovering", "not recovered yet", "not yet"),
        ("failed", "never recovered", "never"),
        ("succeeded", "recovered at an unknown time", "unknown"),
    ],
)
def test_a_failure_without_recovery_says_so(state, words, figure):
    """No step and no recovery time are words, never a zero; only a job that runs may still recover.

    One that succeeded did so, though no rank told when.
    """
    failure = {**JOB["failure_list"][0], "fallback_step": None, "ttr_s": None}
    ended = {"state": state, "finished": state != "recovering"}
    text = report({**JOB, **ended, "ttr_s": [None], "failure_list": [failure]})
    assert f"\n     5.0 s of training lost, {words}\n" in text
    assert f"Time to recover    {figure}\n" in text


def test_a_failure_that_an_exception_or_a_signal_explains_needs_no_last_words():
    """Where the cause says more than an exit status, lines of the output add nothing."""
    evidence = [{"source": "stderr", "text": "KeyError: 'x'"}]
    for known in ({"exception": "KeyError"}, {"signal": 9}, {"exit_code": -9}, {"status": "preempted"}):
        assert last_words({"cause": "c", "evidence": evidence, **known}) == ""
    stack = {"source": "stack", "text": "    raises_a_key_error (train.py:7)"}
    assert last_words({"cause": "c", "evidence": [*evidence, stack], "exit_code": 1}) == "KeyError: 'x'"


def test_the_last_words_are_those_of_the_rank_that_failed_first():
    """Its victims speak after it; what the diagnosis rests on tells more than what came last."""
    said = "[rank1]: ValueError: bad batch\n[rank0]: RuntimeError: Connection closed by peer"
    root = {"role": "root", "text": "[rank1]: ValueError: bad batch"}
    failure = {"cause": "rank 1 exited with status 1", "exit_code": 1, "evidence": [{"text": said}]}
    assert last_words({**failure, "diagnosis": {"evidence": [root]}}) == "ValueError: bad batch"
    assert last_words(failure) == "RuntimeError: Connection closed by peer"


def test_one_of_a_thing_has_no_s():
    """Counts agree with their nouns."""
    assert headline({**JOB, "attempts": 1, "failures": 0}).endswith("1 attempt, 0 failures")


def test_the_largest_loss_is_never_training():
    """Training is no loss, however long it took; a job of training alone has none."""
    assert largest_loss({"training": 90.0, "stalled": 10.0}).startswith("Largest loss: stalled ")
    assert largest_loss({"training": 90.0}) == ""


@pytest.mark.parametrize("component", [name for name in COMPONENTS if name != "training"])
def test_every_component_has_advice(component):
    """A report can always say what to do; clauses carry no full stop of their own."""
    assert len(advice_on(component)) > 20
    assert not advice_on(component).endswith(".")


seconds = st.floats(min_value=0.0, max_value=1e5)


@given(st.lists(seconds, min_size=1, max_size=30).filter(lambda amounts: sum(amounts) > 0.1))
def test_shares_add_up_as_shown_and_are_off_by_less_than_a_tenth(amounts):
    """Largest remainders: the sum is exactly 100.0, each share is the nearest tenth below or above."""
    shares = rounded(amounts, 100.0)
    assert round(sum(shares), 1) == 100.0
    for share, amount in zip(shares, amounts, strict=True):
        assert abs(share - 100 * amount / sum(amounts)) < 0.1 + 1e-6


@given(st.dictionaries(st.sampled_from(COMPONENTS), seconds, min_size=1))
def test_the_shown_components_add_up_to_the_shown_wall_time(components):
    """Rows of components, of groups and of the wall time tell the same total, in seconds and percent."""
    lines = partition_lines(components)
    rows = [re.fullmatch(r"( +)(.+?) +([\d.]+) s +([\d.]+) %", line) for line in lines[1:]]
    for figure in (3, 4):
        by_depth = {2: 0.0, 4: 0.0}
        for row in rows[:-1]:
            by_depth[len(row[1])] += float(row[figure])
        total = float(rows[-1][figure]) if rows else 0.0
        assert by_depth[2] == pytest.approx(total, abs=0.05)
        assert by_depth[4] == pytest.approx(total, abs=0.05)


def test_a_job_that_is_not_there_to_train_has_no_largest_loss_but_says_what_it_does():
    labels = {"purpose": "publishing", "publishes": "dlrm-7", "publishes_step": "400"}
    assert what_to_do({**JOB, "labels": labels}).startswith(
        "This job publishes the model of dlrm-7 (step 400)"
    )
    assert what_to_do({**JOB, "labels": {}}) == what_to_do(JOB) == largest_loss(JOB["components"])
