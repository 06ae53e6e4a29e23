"""Failures that come again: rows, crash loops, and advice that changes with them."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from ett_core import events as ev
from ett_core.accounting import JobFold
from ett_core.details import JobDetails
from ett_core.failures import diagnose
from ett_core.fleet.attempts import evidence_of_failures
from ett_core.fleet.recurrence import LatestRow, latest_row, recurrences
from ett_core.fleet.rows import rows_of

BEGIN = 1_764_000_000.0


class Job:
    """Attempts of one rank, 100 s apart, each of which ends by what it is told."""

    def __init__(self):
        self.events = []
        self._seq = count()
        self._attempts = count()

    def say(self, kind, at, **fields):
        envelope = {"job_id": "j", "writer": "w", "seq": next(self._seq), "rank": 0, "node": "n0"}
        self.events.append(kind(**{**envelope, "time": BEGIN + at, **fields}))

    def fail(self, *, resumed=0, steps=0, saved=0, node="n0", number=None, **how):
        attempt = next(self._attempts)
        at, place = 100.0 * attempt, {"attempt": attempt if number is None else number, "node": node}
        place["writer"] = f"w{attempt}"
        self.say(ev.AttemptStart, at, world_size=1, resumed_step=resumed, **place)
        if steps:
            self.say(ev.FirstBatch, at + 5, step=resumed, **place)
            self.say(
                ev.Progress, at + 20, step=resumed + steps, steps=steps, samples=1, data_wait_s=0, **place
            )
        if saved:
            self.say(ev.CheckpointDurable, at + 21, step=saved, mode="sync", **place)
        if "status" in how:
            self.say(ev.AttemptEnd, at + 50, **how, **place)
        else:
            self.say(ev.Failure, at + 50, **how, **place)
        return self

    def account(self):
        fold, details = JobFold("j"), JobDetails()
        fold.add(self.events)
        details.add(self.events)
        account = fold.account(self.events[-1].time + 10)
        return account, list(map(diagnose, account.failures, evidence_of_failures(account, details.evidence)))

    def rows(self):
        return recurrences(*self.account())


OOM = {
    "exception": "torch.OutOfMemoryError",
    "message": "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
}
ECC = {"message": "NVRM: Xid (PCI:0000:1b:00): 94, Contained ECC error."}


def test_a_deterministic_failure_that_repeats_is_a_crash_loop_and_not_to_be_tried_again():
    job = Job().fail(steps=5, **OOM).fail(steps=5, **OOM).fail(steps=5, **OOM)
    first, _, last = job.rows()
    assert (first.count, first.crash_loop, first.retry) == (1, False, "with_change")
    assert (last.count, last.crash_loop, last.retry) == (3, True, "stop")
    assert (last.since, last.same_node, last.same_rank) == (BEGIN + 50, True, True)


def test_progress_that_was_kept_in_between_makes_no_crash_loop():
    """The same failure again, but from a later checkpoint each time: a recurrence, no loop."""
    job = (
        Job().fail(steps=5, saved=5, **OOM).fail(resumed=5, steps=5, saved=10, **OOM).fail(resumed=10, **OOM)
    )
    assert [(row.count, row.crash_loop) for row in job.rows()] == [(1, False), (2, False), (3, True)]
    assert (
        Job().fail(steps=5, saved=5, **OOM).fail(resumed=5, steps=5, saved=10, **OOM).rows()[1].retry
        == "with_change"
    )


def test_a_fault_of_the_hardware_on_one_node_asks_for_another_node():
    same = Job().fail(steps=5, **ECC).fail(steps=5, **ECC).rows()[-1]
    other = Job().fail(steps=5, **ECC).fail(steps=5, node="n1", **ECC).rows()[-1]
    assert (same.same_node, same.retry) == (True, "exclude_node")
    assert (other.same_node, other.retry, other.count) == (False, "after_remediation", 2)


def test_what_differs_begins_a_new_row():
    """Another class, or another exception where the class is as wide as `user_code`."""
    job = Job().fail(**OOM).fail(**ECC).fail(**ECC).fail(exception="ValueError", message="a")
    job.fail(exception="KeyError", message="b").fail(exception="KeyError", message="c")
    assert [row.count for row in job.rows()] == [1, 1, 2, 1, 1, 2]


def test_taken_hardware_is_no_crash_loop():
    rows = Job().fail(status="preempted").fail(status="preempted").fail(status="preempted").rows()
    assert [(row.count, row.crash_loop, row.retry) for row in rows] == [
        (n, False, "likely") for n in (1, 2, 3)
    ]


def test_an_unknown_cause_gets_one_try_more():
    rows = Job().fail(signal=11).fail(signal=11).fail(signal=11).rows()
    assert [row.retry for row in rows] == ["unknown", "unknown", "stop"]


@pytest.mark.parametrize(
    ("how", "ending"),
    [
        ({"status": "preempted"}, "preempted"),
        ({"status": "timed_out"}, "timed_out"),
        ({"status": "cancelled"}, "cancelled"),
        (OOM, "failed"),
    ],
)
def test_preempted_cancelled_timed_out_and_failed_are_told_apart(how, ending):
    account, diagnoses = Job().fail(steps=5, **how).fail(steps=5, **OOM).account()
    rows = rows_of(account, diagnoses, {}, {}, "")
    assert [failure.ending for failure in rows.failures] == [ending, "failed"]


def test_failures_have_names_that_fit_an_address():
    """Job and attempt; attempts that say one number are told apart."""
    job = Job().fail(steps=5, number=0, **OOM).fail(steps=5, number=0, **OOM).fail(number=2, **OOM)
    rows = rows_of(*job.account(), {}, {}, "")
    assert [failure.id for failure in rows.failures] == ["j~0", "j~0.2", "j~2"]


def test_an_attempt_that_did_not_fail_counts_in_the_names_of_those_that_did():
    """A failure is named as its run: the second attempt of a number, although the first went well."""
    job = Job().fail(steps=5, number=0, status="succeeded").fail(steps=5, number=0, **OOM)
    account, diagnoses = job.account()
    assert [attempt.outcome for attempt in account.attempts] == ["succeeded", "failed"]
    assert [failure.id for failure in rows_of(account, diagnoses, {}, {}, "").failures] == ["j~0.2"]


def test_attempts_that_say_one_number_are_judged_each_by_its_own_evidence():
    """What an earlier attempt of the same number left behind explains no later one."""
    job = Job()
    for text in (
        "CUDA error: uncorrectable ECC error encountered",
        "OSError: [Errno 28] No space left on device",
    ):
        job.fail(steps=5, number=0, exit_code=1)
        ended = job.events[-1]
        at = ended.time - BEGIN - 5
        job.say(ev.Evidence, at, attempt=0, writer=ended.writer, source="log", text=text)
    _, diagnoses = job.account()
    assert [found.failure_class for found in diagnoses] == ["gpu_ecc", "storage_full"]


def test_rows_hold_no_evidence():
    """What is kept of a failure is a line: it stays below 2 kB however much evidence there was."""
    job = Job().fail(exception="ValueError", message="x" * 8000)
    account, diagnoses = job.account()
    (failure,) = rows_of(account, diagnoses, {}, {}, "").failures
    assert len(msgspec.json.encode(failure)) < 2000


def test_the_latest_row_is_that_of_the_failures_that_have_settled():
    """The row counts what left the job where it was; training that was kept begins a new one."""
    stuck = Job().fail(exception="KeyError").fail(exception="KeyError").fail(exception="OSError")
    assert [latest_row(*stuck.account(), settled) for settled in range(4)] == [
        None, LatestRow("user_code", 1), LatestRow("user_code", 2), LatestRow("user_code", 1)
    ]  # fmt: skip
    kept = (
        Job()
        .fail(exception="KeyError", steps=10, saved=5)
        .fail(exception="KeyError", resumed=5, steps=10, saved=15)
    )
    assert latest_row(*kept.account(), 2) == LatestRow("user_code", 1)
