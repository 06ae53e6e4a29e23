"""What the records of torchtitan's structured logger mean here.

Pure; shared by the adapter that listens to the logger inside a trainer and by the import of the
JSONL files that it leaves behind. A record has a `log_type` and a `log_type_name`, such as
`event` and `fwd_bwd_end`; spans come as `_start`, then maybe `_error`, then `_end`. Names are those
of torchtitan 0.3.0, of its trainer and of its experiment with reinforcement learning.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

BEGIN, END, ERROR, MARK = "begin", "end", "error", "mark"
"""What a record is of its span: its begin, its end, what it raised; a mark is a moment, no span."""

PHASE, STEP, DATA_WAIT, PART, UNNAMED = "phase", "step", "data_wait", "part", "unnamed"
"""What a span is: a phase, a training step, waiting for data, a part of a step, or unknown here."""


class Meaning(msgspec.Struct, frozen=True):
    """What a span is (`role`), and the name of its phase where it is one."""

    role: str
    phase: str = ""


_EDGE_OF_SUFFIX: Mapping[str, str] = {"_start": BEGIN, "_end": END, "_error": ERROR}

_PHASES: Mapping[str, str] = {
    "torch_distributed_init": "process_group",
    "model_parallelism_init": "model_init",
    "build_model": "model_init",
    "checkpoint_load": "checkpoint_load",
    "checkpoint_save": "checkpoint",
    "eval": "evaluation",
    "validate": "evaluation",
    "torch_distributed_teardown": "shutdown",
}

_STEPS = frozenset({"step", "train_step"})

_WAITS = frozenset({"fetching_batch", "wait_for_training_batch"})

_PARTS = frozenset(
    {
        "fwd_bwd",
        "post_dataloading_process",
        "optim",
        "collect_dist_metrics",
        "gc_collect",
        "kineto_profiler_step_call",
        "memory_profiler_step_call",
    }
)

_PREPROCESSING = re.compile("Tokenizer|DataLoader|Dataset")
_PLUGINS = re.compile("Metrics|Checkpoint|Profiler|Validator|Debug")

_TAG_OF_SPAN: Mapping[str, str] = {"checkpoint_save": "checkpoint_save"}
"""Spans that torchtitan opens at every step, and the step tag it sets where there was work to do."""

_ERROR_TEXT = re.compile(r"(?s).*?_error: (?P<name>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?")


def edge_of(log_type_name: str, log_type: str = "event") -> tuple[str, str]:
    """The name of the span and what the record is of it.

    >>> edge_of("fwd_bwd_start"), edge_of("fwd_bwd_error"), edge_of("training_start", "instant")
    (('fwd_bwd', 'begin'), ('fwd_bwd', 'error'), ('training_start', 'mark'))
    """
    if log_type != "instant":
        for suffix, edge in _EDGE_OF_SUFFIX.items():
            if log_type_name.endswith(suffix):
                return log_type_name.removesuffix(suffix), edge
    return log_type_name, MARK


def meaning_of(span: str) -> Meaning:
    """What a span means.

    >>> meaning_of("torch_distributed_init").phase, meaning_of("Trainer.Config.build").phase
    ('process_group', 'model_init')
    >>> meaning_of("fetching_batch").role, meaning_of("optim").role, meaning_of("mesh_spawn").role
    ('data_wait', 'part', 'unnamed')
    """
    if span in _PHASES:
        return Meaning(PHASE, _PHASES[span])
    if span in _STEPS:
        return Meaning(STEP)
    if span in _WAITS:
        return Meaning(DATA_WAIT)
    if span in _PARTS:
        return Meaning(PART)
    if span.endswith(".build"):
        return Meaning(PHASE, _phase_of_build(span.removesuffix(".build")))
    return Meaning(UNNAMED)


def phase_of(span: str, *, in_step: bool) -> str | None:
    """The phase that a span is, None where its time belongs to whatever is around it.

    Outside a step a span that is unknown here keeps its own name (and is counted as `other`); inside
    one it is a part of the step, and so is the building of any object.

    >>> phase_of("eval", in_step=True), phase_of("my_span", in_step=True), phase_of("my_span", in_step=False)
    ('evaluation', None, 'my_span')
    """
    meaning = meaning_of(span)
    if meaning.role == PHASE:
        return None if in_step and span.endswith(".build") else meaning.phase
    return span if meaning.role == UNNAMED and not in_step else None


def did_work(span: str, step_tags: Collection[str]) -> bool:
    """Whether a span did what its name says, by the tags that its step has when the span ends.

    torchtitan opens `checkpoint_save` at every step and tags those at which it saved.

    >>> did_work("checkpoint_save", []), did_work("checkpoint_save", ["gc", "checkpoint_save"])
    (False, True)
    """
    return span not in _TAG_OF_SPAN or _TAG_OF_SPAN[span] in step_tags


def resumed_step(step: int | None, relative_step: int | None) -> int | None:
    """The step that the process continued from; 0 is from scratch, None where nobody knows.

    >>> resumed_step(101, 1), resumed_step(3, 3), resumed_step(7, None)
    (100, 0, None)
    """
    if step is None or relative_step is None or relative_step > step:
        return None
    return step - relative_step


def error_of(message: str) -> tuple[str, str] | None:
    """Name and text of the exception in the message of an error record, None where there is none.

    >>> error_of("[step 5] fwd_bwd_error: RuntimeError: CUDA out of memory")
    ('RuntimeError', 'CUDA out of memory')
    >>> error_of("[step 5] step_error: DataloaderExhaustedError: ")
    ('DataloaderExhaustedError', '')
    """
    match = _ERROR_TEXT.fullmatch(message)
    return (match["name"], match["text"] or "") if match else None


def _phase_of_build(kind: str) -> str:
    """The phase in which an object of torchtitan is built, by the name of its configuration class."""
    if _PREPROCESSING.search(kind):
        return "preproc_creation"
    return "init_plugins" if _PLUGINS.search(kind) else "model_init"
