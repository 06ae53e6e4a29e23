"""Decisions of a job: the same words of many ranks are one, the latest are kept, in any order of arrival."""

from hypothesis import given
from hypothesis import strategies as st

from ett_core import details
from ett_core.decision_log import DECISIONS_KEPT, VALUES_KEPT, WHY_CHARACTERS, DecisionLog
from ett_core.details import JobDetails
from ett_core.events import Decision


def told(seq, why="because", *, attempt=0, rank=0, at=None, **fields):
    time = 1e9 + (seq if at is None else at)
    head = {"job_id": "j", "writer": f"w{rank}", "seq": seq, "attempt": attempt, "rank": rank, "node": "n"}
    return Decision(**head, time=time, what="interval", why=why, **fields)


def logged(*events):
    log = DecisionLog()
    for event in events:
        log.add(event)
        log.settle()
    return log


def test_ranks_that_tell_the_same_are_one_decision_the_first_of_them():
    (line,) = logged(told(2, rank=1, values={"s": 2.0}), told(1, rank=0, values={"s": 1.0})).latest
    assert (line.ranks, line.rank, line.time, line.values) == (2, 0, 1e9 + 1, {"s": 1.0})


def test_another_attempt_or_another_reason_is_a_decision_of_its_own():
    lines = logged(told(3, attempt=1), told(1), told(2, "else")).latest
    assert [(line.attempt, line.why) for line in lines] == [(0, "because"), (0, "else"), (1, "because")]


def test_the_latest_are_kept_and_what_was_let_go_of_stays_away():
    many = [told(n, f"reason {n}") for n in range(DECISIONS_KEPT + 5)]
    log = logged(*many)
    assert [line.why for line in log.latest] == [event.why for event in many[5:]]
    log.add(told(999, "late", at=2))
    log.settle()
    assert len(log.latest) == DECISIONS_KEPT
    assert "late" not in {line.why for line in log.latest}
    assert DecisionLog.of_state(log.state()).latest == log.latest


def test_a_decision_is_bounded():
    (line,) = logged(told(1, "x" * 10_000, values={f"v{n}": 1.0 for n in range(99)})).latest
    assert (len(line.why), len(line.values)) == (WHY_CHARACTERS, VALUES_KEPT)


@given(st.permutations([told(n, f"reason {n % 3}", attempt=n % 2, rank=n % 4) for n in range(8)]))
def test_the_order_of_arrival_changes_nothing(shuffled):
    assert logged(*shuffled).latest == logged(*sorted(shuffled, key=lambda event: event.seq)).latest


def test_details_keep_decisions_over_a_dump():
    fold = JobDetails()
    fold.add([told(1), told(2, "else")])
    again = details.load(details.dump(fold))
    assert again.decisions.latest == fold.decisions.latest
    assert len(again.decisions.latest) == 2
