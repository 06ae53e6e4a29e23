"""A job whose saves go on in the background and slow the steps beside them, in known seconds."""

from __future__ import annotations

from typing import Any

from ett_core import events as ev


def beside_steps(story: Any, slow_s: float = 3.0) -> Any:
    """Steps of half a second; ten of them beside each of two saves take longer by `slow_s`."""
    story.tell(0, ev.AttemptStart, world_size=4, accelerators=4)
    story.tell(1, ev.FirstBatch, step=0)
    at, step = 1.0, 0
    for _ in range(2):
        for took_s in (5.0, 5.0, 5.0, 5.0, 5.0 + slow_s):
            at, step = at + took_s, step + 10
            seconds = ev.StepSeconds(10, took_s, took_s / 10)
            story.tell(at, ev.Progress, step=step, steps=10, samples=10, step_seconds=seconds)
            if step % 50 == 40:
                story.tell(at, ev.PhaseBegin, phase="checkpoint")
                story.tell(at + 1, ev.PhaseEnd, phase="checkpoint")
                at += 1
                story.tell(at, ev.Checkpoint, step=step, mode="async", blocking_s=1.0)
        story.tell(at, ev.CheckpointDurable, step=step - 10, mode="async")
    story.tell(at + 5, ev.Failure, exit_code=1, exception="ValueError", message="bad")
    story.tell(at + 6, ev.AttemptEnd, status="failed", exit_code=1)
    return story
