"""A log in which something ended, in words that no table knows, tells of an unknown failure."""

from __future__ import annotations

import pytest

from ett_core.failures import Where, judge, scan

ENDED = (
    "FATAL: scheduler plugin reported state 7",
    "E1129 10:00:00.123 4 engine.cc:77] the pipeline stage gave no answer",
    "thread 'main' panicked at src/main.rs:4:5:\nthe queue is gone",
    "trainer: internal inconsistency detected, aborting",
    "step 1200 loss 0.31\nrank 3 failed at step 1200, aborting the run",
    "2026-01-01 10:00:00,000 CRITICAL trainer: embedding cache lost its owner",
    "Job 8812 failed with state 4",
    "[2026-01-01 10:00:00] ERROR launcher: worker group is in disarray",
    "train.py exited with code 3",
    "systemd[1]: train.service: Main process exited, code=exited, status=1/FAILURE",
    "make: *** [Makefile:12: train] Error 1",
    "Unhandled exception. Acme.Halt",
    "prterun detected that one or more processes exited with non-zero status",
    "Training terminated abnormally.",
    "77|train|FAILED|1:0",
)
GOES_ON = (
    "ERROR metrics: could not push, will retry\nstep 11 loss 2",
    "ERROR: the dashboard did not take this\nstep 12 loss 2",
    "WARNING: rank 2 crashed earlier, replaced by a spare",
    "W1129 10:00:00.123 4 x.py:77] task failed, trying the next candidate",
    "eval: failed cases 3 of 100, error 0.03",
    "INFO job 7: 0 failed",
    "ERROR: no optional package; continuing",
    "/app/a.py:24: UserWarning: a: cannot open '/af_7': No such file or directory\n  warn(it)",
    "INFO: aborted duplicate upload\nINFO: epoch 2 begins",
    "INFO worker 3 exited with code 0",
    "df: /opt/.triton/autotune: No such file or directory",
    "systemd[1]: train.service: Main process exited, code=exited, status=0/SUCCESS",
    "ERROR: an evaluation gave no answer\n" + "all is well\n" * 4000,
)
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'


def diagnosis(text: str):
    return judge(scan(text.encode(), Where(source="log")))


@pytest.mark.parametrize("text", ENDED)
def test_last_words_without_a_name_are_an_unknown_failure(text):
    found = diagnosis(text)
    assert (found.failure_class, found.confidence, len(found.evidence)) == ("unknown", "unknown", 1)


@pytest.mark.parametrize("text", GOES_ON)
def test_what_is_survived_has_ended_nothing(text):
    assert diagnosis(text).failure_class == "not_a_failure"


@pytest.mark.parametrize("raised", ["acme.reader.Starved: the queue was empty", "StopIteration"])
def test_an_exception_of_any_name_is_the_program_s(raised):
    found = diagnosis(f"step 10 loss 2.1\n{TRACEBACK}{raised}")
    assert (found.failure_class, found.confidence, found.message) == ("user_code", "likely", raised)


def test_the_line_rank_and_time_of_last_words_are_told():
    found = diagnosis("step 1\n2026-11-29 10:00:00 [rank3] FATAL: the plugin is in state 7\n")
    (line,) = found.evidence
    assert (found.rank, line.line, line.time is not None) == (3, 2, True)


@pytest.mark.parametrize(
    "other", ["exitcode: -9", "Connection closed by localRank 2", "CUDA error: out of memory"]
)
def test_anything_that_a_table_knows_says_more(other):
    assert (
        diagnosis(f"FATAL: the plugin is in state 7\n{other}").failure_class == diagnosis(other).failure_class
    )


def test_last_words_of_one_rank_do_not_hide_what_another_said():
    one = scan(b"FATAL: the plugin is in state 7", Where(source="0.log"))
    other = scan(b"Sending process 165 closing signal SIGTERM", Where(source="1.log"))
    assert judge([*one, *other]).failure_class == "peer_failure"


def test_that_nobody_tries_again_ends_it():
    said = "ERROR watcher: not retrying the job due to its wall clock limit (it was killed on its node)"
    assert diagnosis(said).failure_class == "time_limit"
    assert diagnosis(said.replace("not retrying", "retrying")).failure_class == "not_a_failure"


def test_where_threads_stand_tells_of_a_hang_where_nothing_else_explains_the_end():
    stack = 'Thread 512 (idle): "MainThread"\n    wait (acme/queue.py:7)\n    <module> (train.py:9)\n'
    assert (diagnosis(f"step 7 loss 2.0\n{stack}").failure_class) == "hang"
    assert diagnosis(f"{stack}Connection closed by localRank 2\n").failure_class == "peer_failure"
