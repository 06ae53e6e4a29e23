"""The one state that a job is in, by the first of the published states that applies."""

from __future__ import annotations

from ett_core.accounting.account import FAILED
from ett_core.accounting.attempt_state import BY_DECISION, SUCCEEDED
from ett_core.accounting.head import Head
from ett_core.accounting.layout import Layout
from ett_core.accounting.partition import Partition

STATES = (
    "succeeded",
    "failed",
    "cancelled",
    "timed_out",
    "preempted",
    "lost",
    "recovering",
    "stalled",
    "publishing",
    "checkpointing",
    "evaluating",
    "compiling",
    "training",
    "starting",
    "unobserved",
)

OVER = ("succeeded", "failed", "cancelled", "timed_out", "preempted")
"""States of jobs that have ended."""

_STATE_OF_PHASE = {
    "publish": "publishing",
    "checkpoint": "checkpointing",
    "evaluation": "evaluating",
    "compile": "compiling",
}


def state_of(layout: Layout, head: Head, last: Partition) -> tuple[str, int]:
    """The state of a job and since when it is in it (nanoseconds)."""
    if layout.finished:
        return _final_state(layout), layout.end_ns
    span = last.span
    if span.outcome == FAILED:
        return ("lost" if span.silent else "recovering"), span.end_ns
    if not span.observed:
        return "unobserved", span.start_ns
    if span.loop_ns is None:
        return _starting(layout, head)
    return _in_loop(last, span.loop_ns)


def _final_state(layout: Layout) -> str:
    outcome = layout.spans[-1].outcome
    if outcome == SUCCEEDED or outcome in BY_DECISION:
        return outcome
    said = layout.job_end.status if layout.job_end is not None else ""
    if said in (*BY_DECISION, "preempted"):
        return said
    ender = layout.spans[-1].attempt.ender
    preempted = ender is not None and getattr(ender.event, "status", "") == "preempted"
    return "preempted" if preempted else "failed"


def _starting(layout: Layout, head: Head) -> tuple[str, int]:
    """The last attempt has not failed, and begun no loop."""
    if head.recovering_since_ns is not None:
        return "recovering", head.recovering_since_ns
    return "starting", layout.start_ns


def _in_loop(last: Partition, loop_ns: int) -> tuple[str, int]:
    silence_ns = last.silence_ns()
    if silence_ns > last.stall_limit_ns():
        return "stalled", last.span.end_ns - silence_ns
    opened = last.span.attempt.open_phase()
    if opened is not None and opened[1] >= loop_ns and opened[0] in _STATE_OF_PHASE:
        return _STATE_OF_PHASE[opened[0]], opened[1]
    return "training", loop_ns
