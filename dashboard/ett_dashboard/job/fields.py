"""What the tables of a job's attempts and ranks say: one description for columns, order and CSV. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ett_core.components import EFFECTIVE, FAILURE, GROUP_COLOURS, IDLENESS, TRAINING
from ett_dashboard.addresses import changed
from ett_dashboard.job.ranks import RankLine
from ett_dashboard.job.waterfall import Start
from ett_dashboard.listing import Field
from ett_dashboard.words import ago, compact, duration, whole

T = TypeVar("T")

OUTCOME_HUES = {"failed": GROUP_COLOURS[FAILURE], "succeeded": GROUP_COLOURS[EFFECTIVE]}
OTHER_HUE = GROUP_COLOURS[IDLENESS]


def attempts(asked: Mapping[str, str]) -> list[Field[Start]]:
    """The columns of the table of attempts; a row leads to the same page with its start."""
    return [
        Field(
            name="attempt",
            title="Attempt",
            help="Choose one to see what its start was made of.",
            value=lambda start: start.attempt.attempt,
            show=lambda value: f"attempt {value:.0f}",
            href=lambda start: changed("job", asked, attempt=str(start.attempt.attempt)),
            end=False,
        ),
        Field(
            name="outcome",
            title="Outcome",
            help="How the attempt ended, or that it runs.",
            value=lambda start: start.attempt.outcome,
            show=lambda value: str(value).replace("_", " "),
            hue=lambda start: OUTCOME_HUES.get(start.attempt.outcome, OTHER_HUE),
            end=False,
        ),
        _seconds(
            "start_s",
            "Start took",
            "To its loop; of the first attempt with the allocation.",
            lambda start: start.took_s,
        ),
        Field(
            name="critical_rank",
            title="Held up by",
            help="The rank that was last to begin training.",
            value=lambda start: start.attempt.critical_rank,
            show=lambda value: "" if value is None else f"rank {value:.0f}",
        ),
        _seconds(
            "behind_s",
            "First batches apart",
            "From the first rank to the last one.",
            lambda start: start.behind_s,
        ),
        _seconds("hidden_s", "Hidden", "Initialisation that other tracks did meanwhile.", _hidden),
        _seconds("loop_s", "In the loop", "From the beginning of its loop to its end.", loop_s),
        _seconds("training_s", "Trained", "Training of which the effect survives.", _trained),
        Field(
            name="steps",
            title="Steps",
            help="From the step it resumed at to its last one.",
            value=steps,
            show=lambda value: whole(None if value is None else float(value)),
        ),
        Field(
            name="steps_per_s",
            title="Steps a second",
            help="Of its time in the loop.",
            value=steps_per_s,
            show=lambda value: compact(None if value is None else float(value)),
        ),
    ]


def ranks() -> list[Field[RankLine]]:
    """The columns of the table of ranks."""
    return [
        Field(
            name="rank",
            title="Rank",
            help="Of the latest attempt.",
            value=lambda line: line.row.rank,
            show=lambda value: f"rank {value:.0f}",
            end=False,
        ),
        Field(
            name="node",
            title="Node",
            help="Where it runs.",
            value=lambda line: line.row.node,
            end=False,
        ),
        Field(
            name="part",
            title="Part",
            help="What is to be said of it.",
            value=lambda line: ", ".join(line.parts),
            hue=lambda line: (
                GROUP_COLOURS[FAILURE if line.row.is_straggler else IDLENESS] if line.parts else ""
            ),
            end=False,
        ),
        _seconds(
            "first_batch_s",
            "First batch after",
            "From the start of the attempt to its first batch.",
            lambda line: line.first_batch_s,
        ),
        _precise("step_s", "Step", "Mean time of a step in its latest minute.", lambda line: line.row.step_s),
        _precise(
            "data_wait_s",
            "Data wait",
            "Mean wait for data a step in its latest minute.",
            lambda line: line.row.data_wait_s,
        ),
        Field(
            name="age_s",
            title="Last heard",
            help="When it last told anything.",
            value=lambda line: line.age_s,
            show=lambda value: ago(None if value is None else float(value)),
        ),
    ]


def _precise(
    name: str, title: str, meaning: str, value: Callable[[RankLine], float | None]
) -> Field[RankLine]:
    """Seconds of a step, in milliseconds where they are few."""
    return Field(
        name=name,
        title=title,
        help=meaning,
        value=value,
        show=lambda seconds: short(None if seconds is None else float(seconds)),
    )


def short(seconds: float | None) -> str:
    """The time of a step.

    >>> short(0.2647), short(2.5), short(None)
    ('265 ms', '2.5 s', 'n/a')
    """
    return f"{1000 * seconds:.0f} ms" if seconds is not None and seconds < 1 else duration(seconds)


def loop_s(start: Start) -> float | None:
    """How long an attempt was in its loop, in seconds; None without one."""
    begin = start.attempt.loop_start
    return None if begin is None else max(start.attempt.end - begin, 0.0)


def steps(start: Start) -> float | None:
    """How many steps an attempt made; None where it told none."""
    last = start.attempt.last_step
    return None if last is None else float(max(last - (start.attempt.resumed_step or 0), 0))


def steps_per_s(start: Start) -> float | None:
    """Steps in a second of the loop; None where either is not known."""
    made, within_s = steps(start), loop_s(start)
    return made / within_s if made is not None and within_s else None


def _hidden(start: Start) -> float | None:
    return sum(start.attempt.hidden.values())


def _trained(start: Start) -> float | None:
    return start.attempt.components.get(TRAINING, 0.0)


def _seconds(name: str, title: str, meaning: str, value: Callable[[T], float | None]) -> Field[T]:
    return Field(
        name=name,
        title=title,
        help=meaning,
        value=value,
        show=lambda seconds: duration(None if seconds is None else float(seconds)),
    )
