"""Hours of four ranks, one of them slow now and then, with asynchronous saves: what a backlog holds."""

from __future__ import annotations

import random

from ett_core.events import Checkpoint, CheckpointDurable, Progress, StepSeconds

T0 = 1_764_000_000.0
HOURS = 3
EVERY_S = 10
SAVE_EVERY_S = 600


def progress(rank, time, step_s, *, attempt=0):
    seconds = StepSeconds(10, 10 * step_s, step_s)
    return Progress(
        job_id="j", writer=f"w{rank}", seq=int(time * 10), attempt=attempt,
        rank=rank, time=T0 + time, step=0, steps=10, samples=1.0, step_seconds=seconds,
    )  # fmt: skip


def save(rank, time, *, attempt=0, until=None):
    """A save that is durable 80 s later."""
    at = {"job_id": "j", "writer": f"w{rank}", "attempt": attempt, "rank": rank, "step": int(time)}
    yield Checkpoint(**at, seq=int(time * 10) + 1, time=T0 + time, mode="async")
    end = time + 80 if until is None else until
    yield CheckpointDurable(**at, seq=int(end * 10) + 2, time=T0 + end, mode="async")


def story(rank, seed=1, attempts=2):
    """Hours of one rank, saves by rank 0; rank 2 is slow for ten minutes now and then."""
    rng = random.Random(f"{rank} {seed}")
    for attempt in range(attempts):
        begin = attempt * HOURS * 3600 + 17
        for at in range(begin, begin + HOURS * 3600 - 60, EVERY_S):
            beside = at % SAVE_EVERY_S < 80
            slow = rank == 2 and at % 5000 < 600
            yield progress(
                rank, at + rng.random(), (0.5 + 0.2 * beside) * (2 if slow else 1), attempt=attempt
            )
        if rank == 0:
            for at in range(
                begin - begin % SAVE_EVERY_S + SAVE_EVERY_S, begin + HOURS * 3600 - 200, SAVE_EVERY_S
            ):
                yield from save(rank, at, attempt=attempt)


RANKS = [sorted(story(rank), key=lambda event: event.time) for rank in range(4)]
IN_TIME = sorted((event for events in RANKS for event in events), key=lambda event: (event.time, event.rank))
