"""What the table of intervals says of each job: one description for columns, order and CSV. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from ett_core.components import EFFECTIVE, FAILURE, GROUP_COLOURS, UNKNOWN
from ett_dashboard.addresses import changed
from ett_dashboard.checkpoints.rows import IntervalRow
from ett_dashboard.checkpoints.words import is_far, verdict
from ett_dashboard.listing import Field
from ett_dashboard.words import compact, duration, percent, whole

HOUR_S = 3600.0


def fields(asked: Mapping[str, str]) -> list[Field[IntervalRow]]:
    """The columns of the table of intervals; a row leads to the same page with its job."""
    return [
        Field(
            name="job",
            title="Job",
            help="Choose one to see its curve.",
            value=lambda job: job.title,
            href=lambda job: changed("checkpoints", asked, job=job.job_id),
            hint=lambda job: job.job_id,
            end=False,
        ),
        Field(
            name="verdict",
            title="Verdict",
            help="Whether it saves as often as it should, as far as its failures tell.",
            value=verdict,
            hue=_hue,
            end=False,
        ),
        _seconds("interval_s", "Interval", "Median time between its latest saves."),
        _seconds("best_s", "Best", "The interval that wastes least, from its own blocking and failures."),
        _seconds("shortest_s", "at least", "With 90 % confidence the best interval is no shorter."),
        _seconds("longest_s", "at most", "With 90 % confidence the best interval is no longer."),
        _percent(
            "wasted_percent",
            "Wasted",
            "Of its time in the loop: what saves blocked and failures took, as measured.",
        ),
        _percent("best_percent", "At best", "The same at the best interval, by the model."),
        Field(
            name="excess_accelerator_s",
            title="Could save",
            help="The difference over its life, in accelerator-hours.",
            value=lambda job: job.excess_accelerator_s,
            show=lambda value: f"{compact(float(value or 0.0) / HOUR_S)} h",
        ),
        _seconds("blocking_s", "Blocking", "Seconds that one save blocks the trainer."),
        _seconds("upload_s", "Upload", "From a save to its durability, median of the latest."),
        _count("saves", "Saves", "Checkpoints saved so far."),
        _count("failures", "Failures", "Attempts that failed."),
    ]


def taken_away() -> list[Field[IntervalRow]]:
    """The columns of the CSV: those of the table, and who the job is."""
    names = (
        "job_id",
        "team",
        "cluster",
        "model",
        "accelerators",
        "wall_s",
        "loop_s",
        "blocked_s",
        "unsaved_s",
        "recovery_s",
    )
    facts = [Field[IntervalRow](name=name, title="", help="", value=attrgetter(name)) for name in names]
    return [*facts, *fields({})]


def _seconds(name: str, title: str, meaning: str) -> Field[IntervalRow]:
    return Field(
        name=name,
        title=title,
        help=meaning,
        value=attrgetter(name),
        show=lambda value: duration(None if value is None else float(value)),
    )


def _percent(name: str, title: str, meaning: str) -> Field[IntervalRow]:
    return Field(
        name=name,
        title=title,
        help=meaning,
        value=attrgetter(name),
        show=lambda value: percent(None if value is None else float(value)),
    )


def _count(name: str, title: str, meaning: str) -> Field[IntervalRow]:
    return Field(
        name=name,
        title=title,
        help=meaning,
        value=attrgetter(name),
        show=lambda value: whole(None if value is None else float(value)),
    )


def _hue(job: IntervalRow) -> str:
    if job.best_s is None:
        return GROUP_COLOURS[UNKNOWN]
    return GROUP_COLOURS[FAILURE if is_far(job) else EFFECTIVE]
