"""What the table of a job's attempts says: one description for columns, order and CSV. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ett_core.components import EFFECTIVE, FAILURE, GROUP_COLOURS, IDLENESS, TRAINING
from ett_dashboard.addresses import changed
from ett_dashboard.job.waterfall import Start
from ett_dashboard.listing import Field
from ett_dashboard.words import compact, duration, whole

OUTCOME_HUES = {"failed": GROUP_COLOURS[FAILURE], "succeeded": GROUP_COLOURS[EFFECTIVE]}
OTHER_HUE = GROUP_COLOURS[IDLENESS]


def attempts(asked: Mapping[str, str]) -> list[Field[Start]]:
    """The columns of the table of attempts; a row leads to the same page with its start."""
    return [
        Field(
            name="attempt",
            title="Attempt",
            help="Choose one to see what its start was made of.",
            value=lambda start: float(start.attempt.attempt),
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
        _seconds("start_s", "Start took", "To its loop; of the first attempt with the allocation.", _took),
        Field(
            name="critical_rank",
            title="Held up by",
            help="The rank that was last to begin training.",
            value=lambda start: start.attempt.critical_rank,
            show=lambda value: "" if value is None else f"rank {value:.0f}",
        ),
        _seconds("behind_s", "First batches apart", "From the first rank to the last one.", _behind),
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


def _took(start: Start) -> float | None:
    return start.took_s


def _behind(start: Start) -> float | None:
    return start.behind_s


def _hidden(start: Start) -> float | None:
    return sum(start.attempt.hidden.values())


def _trained(start: Start) -> float | None:
    return start.attempt.components.get(TRAINING, 0.0)


def _seconds(name: str, title: str, meaning: str, value: Callable[[Start], float | None]) -> Field[Start]:
    return Field(
        name=name,
        title=title,
        help=meaning,
        value=value,
        show=lambda seconds: duration(None if seconds is None else float(seconds)),
    )
