"""Figures and states in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.urgency import in_trouble
from ett_dashboard.rows import Job
from ett_dashboard.states import sentence
from ett_dashboard.words import ago, duration, markdown_safe, plain, tenths

NOW = 10_000.0


def job(state: str, **fields) -> Job:
    common = {"job_id": "j", "start": 0.0, "end": NOW, "wall_s": NOW, "components": {"training": 7420.0}}
    return Job(**{**common, "state": state, "state_since": NOW - 42, **fields})


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "n/a"),
        (0.0, "0 s"),
        (0.04, "0.0 s"),
        (3.25, "3.2 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 m 0 s"),
        (200, "3 m 20 s"),
        (3599.7, "1 h 0 m"),
        (7500, "2 h 5 m"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_are_said_in_their_two_largest_units(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "never"), (0.2, "just now"), (3.9, "3 s ago"), (7300, "2 h ago")]
)
def test_ages_are_said_in_one_unit(seconds, said):
    assert ago(seconds) == said


@given(st.dictionaries(st.text(), st.floats(min_value=0, max_value=1e9), min_size=1))
def test_tenths_add_up_to_a_hundred_and_are_off_by_less_than_one_tenth(shares):
    total = sum(shares.values())
    points = tenths(shares)
    assert points.keys() == shares.keys()
    if total > 0:
        assert sum(round(10 * value) for value in points.values()) == 1000
        assert all(abs(points[name] - 100 * shares[name] / total) < 0.1 + 1e-9 for name in shares)


@pytest.mark.parametrize(
    ("row", "how", "do"),
    [
        (
            job("training", step=12400, last_progress_at=NOW - 3, unsaved_exposure_s=240.0),
            "training, step 12,400, last progress 3 s ago, 4 m 0 s unsaved",
            "",
        ),
        (
            job("training", step=5, last_progress_at=NOW - 1, unsaved_exposure_s=3600.0),
            "training, step 5, last progress 1 s ago, 1 h 0 m unsaved",
            "No checkpoint is durable so far: a failure now would lose all of it.",
        ),
        (job("checkpointing", step=7), "checkpointing for 42 s, step 7", ""),
        (job("starting"), "starting for 42 s, no step yet", ""),
        (
            job("recovering", step=900, failures=1, ttr_s=[None]),
            "recovering for 42 s after failure 1, at step 900",
            "Nothing to do unless it takes longer than the last time.",
        ),
        (
            job("recovering", failures=3, ttr_s=[20.0, None, None]),
            "recovering for 42 s after failure 3",
            "It fails again before it trains: stop it and read the evidence below.",
        ),
        (
            job("stalled", step=8, last_progress_at=NOW - 363),
            "no progress for 6 m 3 s, at step 8",
            "Look at what the ranks are doing: a stack of each one shows who waits for whom.",
        ),
        (
            job("lost", last_event_at=NOW - 720),
            "silent for 12 m 0 s; nobody said that it ended",
            "Look whether its processes still run and can reach the exporter.",
        ),
        (
            job("unobserved"),
            "running for 2 h 46 m, but no rank tells anything",
            "Only the launcher speaks. Let the trainer report, or its time stays unknown.",
        ),
        (
            job("succeeded", finished=True, step=99, ett_percent=74.2),
            "finished after 2 h 46 m, at step 99, 74.2 % of it effective",
            "",
        ),
        (
            job("failed", finished=True),
            "ended in failure after 2 h 46 m",
            "Read the evidence of its last failure.",
        ),
    ],
)
def test_a_sentence_says_how_a_job_is_and_what_to_do(row, how, do):
    assert (sentence(row, NOW).how, sentence(row, NOW).do) == (how, do)


def test_only_live_jobs_that_are_not_at_work_are_in_trouble():
    assert [in_trouble(job(state)) for state in ("lost", "stalled", "recovering", "unobserved")] == [True] * 4
    assert [in_trouble(job(state)) for state in ("training", "starting", "evaluating")] == [False] * 3
    assert not in_trouble(job("failed", finished=True))


def test_plain_drops_what_could_turn_or_break_a_line_and_keeps_scripts_and_emoji():
    assert plain("a\u202eb\u2066c\x00d\ne") == "abcd e"
    assert plain("שלום 👩\u200d🚀") == "שלום 👩\u200d🚀"
    assert len(plain("x" * 500, limit=80)) == 80


@given(st.text(alphabet="!*_`[]()#+-.:$<>&|~\\abc 1"))
def test_markdown_safe_leaves_no_punctuation_without_a_backslash(text):
    safe = markdown_safe(text)
    assert safe.replace("\\\\", "").replace("\\", "") == text.replace("\\", "")
    assert all(safe[place - 1] == "\\" for place, char in enumerate(safe) if char in "!*_`[]()#:$<>~")
