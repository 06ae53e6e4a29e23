"""What the table of intervals says of each job: one description for columns, order and CSV. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.components import EFFECTIVE, FAILURE, GROUP_COLOURS, UNKNOWN
from ett_dashboard.addresses import changed
from ett_dashboard.checkpoints.rows import IntervalRow
from ett_dashboard.checkpoints.words import is_far, verdict
from ett_dashboard.columns import accelerator_seconds, count, exact, percentage, seconds, text
from ett_dashboard.listing import Field


def fields(asked: Mapping[str, str]) -> list[Field[IntervalRow]]:
    """The columns of the table of intervals; a row leads to the same page with its job."""
    return [
        text(
            "job",
            "Job",
            "Choose one to see its curve.",
            lambda job: job.title,
            href=lambda job: changed("checkpoints", asked, job=job.job_id),
            hint=lambda job: job.job_id,
        ),
        text(
            "verdict",
            "Verdict",
            "Whether it saves as often as it should, as far as its failures tell.",
            verdict,
            hue=_hue,
        ),
        seconds("interval_s", "Interval", "Median time between its latest saves."),
        seconds(
            "best_s", "Best", "The interval that wastes least, from what its saves cost and its failures."
        ),
        seconds("shortest_s", "at least", "With 90 % confidence the best interval is no shorter."),
        seconds("longest_s", "at most", "With 90 % confidence the best interval is no longer."),
        percentage(
            "wasted_percent",
            "Wasted",
            "Of its time in the loop: what saves blocked and slowed, and failures took, as measured.",
        ),
        percentage("best_percent", "At best", "The same at the best interval, by the model."),
        accelerator_seconds(
            "excess_accelerator_s", "Could save", "The difference over its life, in accelerator-hours."
        ),
        seconds("blocking_s", "Blocking", "Seconds that one save blocks the trainer."),
        seconds(
            "slowed_s",
            "Slowing",
            "By how much one save in the background slows the steps beside it, median of the latest; "
            "where nobody can tell, the best interval knows of blocking alone.",
        ),
        seconds("upload_s", "Upload", "From a save to its durability, median of the latest."),
        count("saves", "Saves", "Checkpoints saved so far."),
        count("failures", "Failures", "Attempts that failed in their loop; before it no save is at stake."),
    ]


def taken_away() -> list[Field[IntervalRow]]:
    """The columns of the CSV: those of the table, and who the job is."""
    who = exact("job_id", "team", "cluster", "model", "accelerators")
    return [*who, *exact("wall_s", "loop_s", "blocked_s", "unsaved_s", "recovery_s"), *fields({})]


def _hue(job: IntervalRow) -> str:
    if job.best_s is None:
        return GROUP_COLOURS[UNKNOWN]
    return GROUP_COLOURS[FAILURE if is_far(job) else EFFECTIVE]
