"""The fold against a slow accounting that was written from the rules alone."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plausible import EPOCH, plausible

from ett_core import events as ev
from ett_core.accounting import JobFold
from ett_core.events import AnyEvent


def beside(name: str) -> ModuleType:
    """A module that lies beside this one; the folders of tests are no packages."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


oracle = beside("oracle")

SETTINGS = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.large_base_example, HealthCheck.data_too_large, HealthCheck.too_slow],
)


def soup(source: random.Random) -> tuple[list[AnyEvent], float]:
    """Anything at all, on few moments, by few writers, some of it under one key."""
    grid = source.choice((8, 30, 300))
    events = [anything(source, grid) for _ in range(source.randint(1, 16))]
    return events, EPOCH + source.choice((0, 10, 100, 1000, 30_000))


def anything(source: random.Random, grid: int) -> AnyEvent:
    def moment() -> float:
        return EPOCH + source.randint(0, grid)

    def perhaps(value: object) -> object:
        return value if source.random() < 0.3 else None

    step = source.randint(0, 8)
    phase = {
        "phase": source.choice(("model_init", "compile", "checkpoint", "mine")),
        "track": source.choice(("main", "main", "side")),
    }
    longest = float(source.choice((1, 30, 100)))
    timed = ev.StepSeconds(count=source.randint(1, 3), sum=longest + source.randint(0, 60), max=longest)
    kind, fields = source.choice(
        (
            (
                ev.AttemptStart,
                {
                    "process_started_at": perhaps(moment()),
                    "allocated_at": perhaps(moment()),
                    "resumed_step": perhaps(step),
                },
            ),
            (ev.PhaseBegin, phase),
            (ev.PhaseBegin, phase),
            (ev.PhaseEnd, phase),
            (ev.PhaseEnd, phase | {"resumed_step": perhaps(step)}),
            (ev.FirstBatch, {"step": perhaps(step)}),
            (ev.FirstBatch, {}),
            (ev.Progress, {"step": step, "steps": source.randint(0, 3)}),
            (ev.Progress, {"step": step, "steps": 1, "data_wait_s": 2.0, "step_seconds": perhaps(timed)}),
            (ev.CheckpointDurable, {"step": step}),
            (ev.CheckpointFailed, {"step": step}),
            (ev.Checkpoint, {"step": step}),
            (ev.Failure, {}),
            (ev.Heartbeat, {}),
            (ev.AttemptEnd, {"status": source.choice(("succeeded", "failed", "cancelled", "preempted"))}),
            (ev.JobEnd, {"status": source.choice(("succeeded", "failed", "cancelled"))}),
            (
                ev.Clock,
                {"of_writer": source.choice(("w0", "w1")), "offset_s": source.choice((1.0, 7.0, -9.0))},
            ),
        )
    )
    rank = source.choice((-1, 0, 0, 0, 1, 2))
    writer = source.choice((f"w{rank}", f"w{rank}", "x"))
    return kind(
        job_id="job",
        writer=writer,
        seq=source.randint(0, 30),
        attempt=source.choice((0, 0, 1, 2)),
        rank=rank,
        time=moment(),
        **fields,
    )


def difference(events: list[AnyEvent], now: float) -> dict[str, tuple]:
    """What the oracle and the fold say differently, by name."""
    fold = JobFold("job")
    fold.add(events)
    fast, slow = fold.account(now), oracle.account(events, now)
    if fast is None or slow is None:
        return {} if fast is slow else {"account": (slow, fast)}
    found = {}
    for name in sorted({*slow.components, *fast.components}):
        told, got = slow.components.get(name, 0.0), fast.components.get(name, 0.0)
        if told != pytest.approx(got, abs=2e-6):
            found[name] = (told, got)
    for name in ("wall_s", "tts_s", "ttr_s", "resume_evidence"):
        told, got = getattr(slow, name), getattr(fast, name)
        if told is None or got is None or isinstance(told, str):
            same = told == got
        elif isinstance(told, list):
            same = len(told) == len(got) and all(
                a == b or (None not in (a, b) and abs(a - b) < 2e-6) for a, b in zip(told, got, strict=True)
            )
        else:
            same = told == pytest.approx(got, abs=2e-6)
        if not same:
            found[name] = (told, got)
    if slow.failures != len(fast.failures):
        found["failures"] = (slow.failures, len(fast.failures))
    return found


# Where the two may differ: where the rules leave more than one reading, and hand-worked histories do
# not tread. An attempt that speaks before any of its processes had started; one that speaks after a
# `job_end`; an end before a lower rank's first report, or before a process
# says that it starts or compiles; and a phase that ends at the very moment of the first report.


def disputed(job: oracle.Job) -> bool:
    return any(disputed_attempt(attempt, job) for attempt in job.attempts)


def disputed_attempt(attempt: oracle.Attempt, job: oracle.Job) -> bool:
    return (
        any(s.at < attempt.start for s in attempt.said)
        or speaks_after_the_job(attempt, job)
        or another_leads_after_an_end(attempt)
        or starts_after_an_end(attempt)
        or a_phase_ends_with_the_first_report(attempt)
    )


def speaks_after_the_job(attempt: oracle.Attempt, job: oracle.Job) -> bool:
    return any(attempt.start <= end.at < said.at for end in job.ends for said in attempt.said)


def first_end(attempt: oracle.Attempt) -> int:
    ends = [s.at for s in attempt.said if s.kind in ("failure", "attempt_end")]
    return min(ends, default=oracle.NEVER)


def starts_after_an_end(attempt: oracle.Attempt) -> bool:
    return any(
        s.at > first_end(attempt)
        and (s.kind == "attempt_start" or (s.kind == "phase_begin" and s.event.phase == "compile"))
        for s in attempt.said
    )


def another_leads_after_an_end(attempt: oracle.Attempt) -> bool:
    reports = [s for s in attempt.said if s.kind == "progress" and s.rank >= 0]
    return any(
        report.at > first_end(attempt) and report.rank < min(r.rank for r in reports[:index])
        for index, report in enumerate(reports)
        if index
    )


def a_phase_ends_with_the_first_report(attempt: oracle.Attempt) -> bool:
    first = next((s.at for s in attempt.reports), None)
    return any(s.kind == "phase_end" and s.at == first == attempt.loop for s in attempt.said)


def check(events: list[AnyEvent], now: float) -> None:
    found = difference(events, now)
    assert not found or disputed(oracle.work_out(events, now)), found


@given(st.randoms(use_true_random=False))
@SETTINGS
def test_plausible_histories(source):
    """Of histories that a real job could write, both tell the same."""
    check(*plausible(source))


@given(st.randoms(use_true_random=False))
@SETTINGS
def test_soups(source):
    """Of any events at all, both tell the same."""
    check(*soup(source))


def test_many_plausible_histories():
    """The same for many, drawn evenly: hypothesis prefers the small and simple."""
    for seed in range(1500):
        check(*plausible(random.Random(seed)))
