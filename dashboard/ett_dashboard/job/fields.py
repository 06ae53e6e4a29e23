"""What the tables of a job's attempts and ranks say: one description for columns, order and CSV. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import tzinfo

from ett_core.compile_log import CompileLine
from ett_core.components import EFFECTIVE, FAILURE, GROUP_COLOURS, IDLENESS, TRAINING, meaning_of
from ett_core.decision_log import DecisionLine
from ett_dashboard.addresses import changed
from ett_dashboard.columns import (
    Kind,
    age,
    amount,
    count,
    exact,
    exactly,
    numbered,
    percentage,
    seconds,
    step_seconds,
    text,
)
from ett_dashboard.frames import FirstBatch, fate
from ett_dashboard.job.ranks import RankLine
from ett_dashboard.job.waterfall import Span, Start
from ett_dashboard.listing import Field
from ett_dashboard.rows import CacheRow, CheckpointRow
from ett_dashboard.words import moment

OUTCOME_HUES = {"failed": GROUP_COLOURS[FAILURE], "succeeded": GROUP_COLOURS[EFFECTIVE]}
OTHER_HUE = GROUP_COLOURS[IDLENESS]
OUTCOME = Kind(lambda value: str(value).replace("_", " "), end=False)
RANK_AT_END = Kind(numbered("rank").show)


def attempts(asked: Mapping[str, str]) -> list[Field[Start]]:
    """The columns of the table of attempts; a row leads to the same page with its start."""
    return [
        numbered("attempt")(
            "attempt",
            "Attempt",
            "Choose one to see what its start was made of.",
            lambda start: start.attempt.attempt,
            href=lambda start: changed("job", asked, attempt=str(start.attempt.attempt)),
        ),
        OUTCOME(
            "outcome",
            "Outcome",
            "How the attempt ended, or that it runs.",
            lambda start: start.attempt.outcome,
            hue=lambda start: OUTCOME_HUES.get(start.attempt.outcome, OTHER_HUE),
        ),
        seconds(
            "start_s",
            "Start took",
            "To its loop; of the first attempt with the allocation.",
            lambda start: start.took_s,
        ),
        RANK_AT_END(
            "critical_rank",
            "Held up by",
            "The rank that was last to begin training.",
            lambda start: start.attempt.critical_rank,
        ),
        seconds("behind_s", "First batches apart", "From the first rank to the last one."),
        seconds("hidden_s", "Hidden", "Initialisation that other tracks did meanwhile.", _hidden),
        seconds("loop_s", "In the loop", "From the beginning of its loop to its end.", loop_s),
        seconds("training_s", "Trained", "Training of which the effect survives.", _trained),
        count("steps", "Steps", "From the step it resumed at to its last one.", steps),
        amount("steps_per_s", "Steps a second", "Of its time in the loop.", steps_per_s),
    ]


def ranks() -> list[Field[RankLine]]:
    """The columns of the table of ranks."""
    return [
        numbered("rank")("rank", "Rank", "Of the latest attempt.", lambda line: line.row.rank),
        text("node", "Node", "Where it runs.", lambda line: line.row.node),
        text("part", "Part", "What is to be said of it.", lambda line: ", ".join(line.parts), hue=_part_hue),
        seconds("first_batch_s", "First batch after", "From the start of the attempt to its first batch."),
        step_seconds(
            "step_s", "Step", "Mean time of a step in its latest minute.", lambda line: line.row.step_s
        ),
        step_seconds(
            "data_wait_s",
            "Data wait",
            "Mean wait for data a step in its latest minute.",
            lambda line: line.row.data_wait_s,
        ),
        age("age_s", "Last heard", "When it last told anything."),
    ]


def spans() -> list[Field[Span]]:
    """The columns of the files of a start and of a recovery: one row a bar, adding up to the whole."""
    return [*exact(*Span.__struct_fields__), exactly("meaning", lambda span: meaning_of(span.component))]


def decisions() -> list[Field[DecisionLine]]:
    """The columns of the file of decisions."""
    return [
        *exact("time", "attempt", "rank", "node", "ranks", "what", "why"),
        exactly("values", lambda line: json.dumps(line.values)),
    ]


def saves(zone: tzinfo) -> list[Field[CheckpointRow]]:
    """The columns of the table of saves."""
    return [
        Kind(lambda at: moment(float(at or 0.0), zone), end=False)(
            "time", "Time", "When the trainer went on after it, in your time zone."
        ),
        count("step", "Step", "The last step that it holds."),
        text("mode", "Mode", "sync: written while training waits; async: beside the steps that follow."),
        seconds("blocking_s", "Blocking", "How long it kept the trainer from training."),
        seconds("durable_after_s", "Durable after", "From then until it would survive a failure."),
        text("fate", "Fate", "Durable, on its way there, or failed: that one will never be durable.", fate),
    ]


def saves_taken_away() -> list[Field[CheckpointRow]]:
    """The columns of the file of saves."""
    return [*exact("time", "step", "mode", "blocking_s", "bytes", "durable_at"), exactly("fate", fate)]


def caches() -> list[Field[tuple[str, CacheRow]]]:
    """The columns of the table of compile caches by name."""
    return [
        text("cache", "Cache", "A kind of compile cache.", lambda named: named[0]),
        count("hits", "Hits", "Requests that it answered, of all ranks.", lambda named: named[1].hits),
        count("misses", "Misses", "Requests that it had no answer to.", lambda named: named[1].misses),
        count(
            "bypasses",
            "Bypasses",
            "What cannot be cached, and asked for nothing.",
            lambda named: named[1].bypasses,
        ),
        percentage(
            "hit_percent",
            "Hit rate",
            "Hits in hits and misses. A hit is no proof: look at what compiling took all the same.",
            lambda named: named[1].hit_percent,
        ),
    ]


def stages() -> list[Field[tuple[str, float]]]:
    """The columns of the table of stages of compilation."""
    return [
        text("stage", "Stage", "A stage of compilation.", lambda stage: stage[0]),
        seconds("seconds", "Took", "Of all ranks together, waited for or hidden.", lambda stage: stage[1]),
    ]


def first_batches() -> list[Field[FirstBatch]]:
    """The columns of the table of ranks of an attempt that is over."""
    return [
        numbered("rank")("rank", "Rank", "Of the last attempt that trained."),
        seconds("after_s", "First batch after", "From the start of the attempt to its first batch."),
        text("role", "Role", "What is to be said of it."),
    ]


def compilations() -> list[Field[CompileLine]]:
    """The columns of the file of compilations."""
    return exact("time", "attempt", "rank", "graph", "code", "seconds", "native_s", "recompile_reason")


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


def _part_hue(line: RankLine) -> str:
    if not line.parts:
        return ""
    return GROUP_COLOURS[FAILURE if line.row.is_straggler else IDLENESS]
