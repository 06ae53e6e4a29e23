"""Figures of a job's throughput and checkpoints: label, value, definition. Pure."""

from __future__ import annotations

from ett_core.components import TRAINING, UNSAVED_TRAINING
from ett_dashboard.checkpoints.rows import IntervalRow
from ett_dashboard.job.fields import steps_per_s
from ett_dashboard.job.waterfall import starts
from ett_dashboard.rows import JobDetail, StepTimes
from ett_dashboard.tiles import Tile
from ett_dashboard.words import ago, compact, duration, step_time


def throughput_tiles(job: JobDetail) -> list[Tile]:
    """How fast a job trains."""
    trained_s = job.components.get(TRAINING, 0.0) + job.components.get(UNSAVED_TRAINING, 0.0)
    samples_per_s = job.samples / trained_s if job.samples and trained_s else None
    rates = [rate for start in starts(job) if (rate := steps_per_s(start)) is not None]
    times = job.step_times or StepTimes()
    return [
        (
            "Samples a second",
            compact(samples_per_s),
            "Of all ranks together, over the time of training, lost training included.",
        ),
        (
            "Steps a second",
            compact(rates[-1] if rates else None),
            "Of the latest attempt that trained, over its time in the loop, waits included.",
        ),
        ("A step takes", step_time(times.p50_s), "Median over all ranks and attempts, without data wait."),
        ("Of 100 steps 99 take", step_time(times.p99_s), "At most; over all ranks and attempts."),
    ]


def checkpoint_tiles(job: JobDetail, interval: IntervalRow | None) -> list[Tile]:
    """How a job saves, beside the interval that would waste least."""
    now = job.end if job.finished else job.known_at
    age_s = None if job.last_durable_at is None else max(now - job.last_durable_at, 0.0)
    return [
        (
            "Saves every",
            duration(interval.interval_s if interval else None),
            "Wall time a save so far.",
        ),
        ("Best", duration(interval.best_s if interval else None), _best_meaning(interval)),
        (
            "Blocks for",
            duration(interval.blocking_s if interval else None),
            f"Seconds that one save keeps the trainer from training.{_slowing(interval)}",
        ),
        (
            "Uploads for",
            duration(interval.upload_s if interval else None),
            "From a save to its durability, median of the latest.",
        ),
        ("Last durable", ago(age_s), "Age of the latest checkpoint that would survive a failure."),
    ]


def _best_meaning(interval: IntervalRow | None) -> str:
    if interval is None or interval.best_s is None:
        return "The interval that wastes least; not known before a save and a failure."
    to = "any longer one" if interval.longest_s is None else duration(interval.longest_s)
    span = f"between {duration(interval.shortest_s)} and {to}"
    return f"The interval that wastes least, by what its saves cost and its failures; 90 % sure: {span}."


def _slowing(interval: IntervalRow | None) -> str:
    """What one save in the background costs besides, as a sentence; empty of a job without any known."""
    if interval is None:
        return ""
    if interval.slowed_s is None:
        return (
            " Whether it slows steps beside it nobody can tell: blocking alone counts for the best interval."
        )
    return f" Steps beside one in the background take {duration(interval.slowed_s)} longer."
