"""Components: the names that share out a job's wall time, with their groups, areas and words.

Every second of a job belongs to exactly one component. Groups are the three parts of the
published formula, ETT% = 100 % - Idleness% - Failure%, and what nobody observed. Areas cut the
same seconds as the published training cycle does.
Source: Meta, "Effective Training Time" (PyTorch blog, 2026-04-17; arXiv 2610.02057).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

EFFECTIVE, IDLENESS, FAILURE, UNKNOWN = "effective", "idleness", "failure", "unknown"
GROUPS = (EFFECTIVE, IDLENESS, FAILURE, UNKNOWN)

TRAINING = "training"
DATA_WAIT = "data_wait"
RECOMPILE = "recompile"
CHECKPOINT_BLOCKING = "checkpoint_blocking"
EVALUATION = "evaluation"
PUBLISH = "publish"
SHUTDOWN = "shutdown"
OTHER = "other"
UNSAVED_TRAINING = "unsaved_training"
STALLED = "stalled"
START_ALLOCATION = "start.allocation"
RECOVER_TEARDOWN = "recover.teardown"
RECOVER_QUEUE = "recover.queue"
RECOVER_ALLOCATION = "recover.allocation"
RECOVER_RESTART = "recover.restart"
UNOBSERVED = "unobserved"

BETWEEN_ATTEMPTS = frozenset(
    {START_ALLOCATION, RECOVER_TEARDOWN, RECOVER_QUEUE, RECOVER_ALLOCATION, RECOVER_RESTART, OTHER}
)
"""Components that time before, between and after attempts can have."""

INIT_PHASES = (
    "device_init",
    "process_group",
    "preproc_creation",
    "model_init",
    "sharding_plan",
    "data_warmup",
    "compile",
    "cache_load",
    "checkpoint_load",
)
"""Initialisation phases that have a component of their own, in their usual order."""

IMPORTS = "imports"
"""A phase of processes that say when they import; in others it is a part of their `process_start`."""

LOOP_COMPONENT_OF_PHASE: Mapping[str, str] = {
    "checkpoint": CHECKPOINT_BLOCKING,
    "compile": RECOMPILE,
    "evaluation": EVALUATION,
    "publish": PUBLISH,
    "shutdown": SHUTDOWN,
}

_INIT_PARTS = ("process_start", *INIT_PHASES, OTHER)

COMPONENTS: tuple[str, ...] = (
    TRAINING,
    START_ALLOCATION,
    *(f"start.{part}" for part in _INIT_PARTS),
    DATA_WAIT,
    RECOMPILE,
    CHECKPOINT_BLOCKING,
    EVALUATION,
    PUBLISH,
    SHUTDOWN,
    OTHER,
    UNSAVED_TRAINING,
    STALLED,
    RECOVER_TEARDOWN,
    RECOVER_QUEUE,
    RECOVER_ALLOCATION,
    RECOVER_RESTART,
    *(f"recover.{part}" for part in _INIT_PARTS),
    UNOBSERVED,
)
"""Every component, in the order in which reports and charts show them."""

GROUP_COLOURS: Mapping[str, str] = {
    EFFECTIVE: "#1b7f79",
    IDLENESS: "#e0a100",
    FAILURE: "#b3386e",
    UNKNOWN: "#8a8f98",
}
"""One colour a group in every view, told apart with any colour vision."""


def init_component(prefix: str, phase: str) -> str:
    """The component of an initialisation phase; `prefix` is `start` or `recover`.

    >>> init_component("start", "model_init"), init_component("recover", "my_plugin")
    ('start.model_init', 'recover.other')
    >>> init_component("start", "imports")
    'start.process_start'
    """
    if phase == IMPORTS:
        return f"{prefix}.process_start"
    return f"{prefix}.{phase}" if phase in INIT_PHASES else f"{prefix}.{OTHER}"


IN_LOOP = (TRAINING, UNSAVED_TRAINING, DATA_WAIT, RECOMPILE, CHECKPOINT_BLOCKING, EVALUATION, PUBLISH)
"""Components that only the loop has, stalls aside; `shutdown` comes after its last step."""


def loop_seconds(components: Mapping[str, float]) -> float:
    """Seconds in which a loop went on, stalls and shutdown aside: what an interval between saves runs over.

    The way to the loop, the queue, the way back from failures and silence add nothing, so a job that hangs
    or is dead has no more of it by waiting.

    >>> loop_seconds({"training": 60.0, "data_wait": 5.0, "unsaved_training": 10.0, "stalled": 900.0,
    ...               "start.compile": 30.0, "recover.queue": 600.0, "checkpoint_blocking": 2.0})
    77.0
    """
    return math.fsum(components.get(name, 0.0) for name in IN_LOOP)


def group_of(component: str) -> str:
    """The group that a component counts towards.

    >>> group_of("training"), group_of("start.compile"), group_of("recover.queue")
    ('effective', 'idleness', 'failure')
    """
    if component == TRAINING:
        return EFFECTIVE
    if component == UNOBSERVED:
        return UNKNOWN
    if component in (UNSAVED_TRAINING, STALLED) or component.startswith("recover."):
        return FAILURE
    return IDLENESS


def area_of(component: str) -> str:
    """The part of the training cycle, by the published cut, that a component belongs to.

    >>> area_of("recover.queue"), area_of("recompile"), area_of("start.model_init")
    ('scheduling', 'PT2 compilation', 'trainer initialisation')
    """
    if component in _AREAS:
        return _AREAS[component]
    part = component.partition(".")[2]
    if part == "process_start":
        return "hardware setup"
    if part in ("compile", "cache_load"):
        return "PT2 compilation"
    return "trainer initialisation"


_AREAS: Mapping[str, str] = {
    START_ALLOCATION: "scheduling",
    RECOVER_QUEUE: "scheduling",
    RECOVER_ALLOCATION: "scheduling",
    RECOVER_RESTART: "hardware setup",
    RECOVER_TEARDOWN: "hardware setup",
    RECOMPILE: "PT2 compilation",
    TRAINING: "effective training",
    DATA_WAIT: "wasted training",
    CHECKPOINT_BLOCKING: "wasted training",
    EVALUATION: "wasted training",
    UNSAVED_TRAINING: "wasted training",
    STALLED: "wasted training",
    OTHER: "wasted training",
    PUBLISH: "shutdown",
    SHUTDOWN: "shutdown",
    UNOBSERVED: "unknown",
}

AREAS: tuple[str, ...] = (
    "scheduling",
    "hardware setup",
    "trainer initialisation",
    "PT2 compilation",
    "effective training",
    "wasted training",
    "shutdown",
    "unknown",
)

_AREA_MEANINGS: Mapping[str, str] = {
    "scheduling": "waiting for hardware: allocation and queue",
    "hardware setup": "starting processes, at first and again, and tearing down what failed",
    "trainer initialisation": "making ready between the first phase and the loop, compilation aside",
    "PT2 compilation": "compiling and loading compile caches, before the loop and in it",
    "effective training": "consuming data, with an effect that survives",
    "wasted training": "in the loop without effect: waits, saves, evaluation, stalls, training that was lost",
    "shutdown": "publishing, and shutting down after the last step",
    "unknown": "an attempt of which no rank told anything",
}

_INIT_MEANINGS: Mapping[str, str] = {
    "process_start": "from the start of the process to its first phase: imports, configuration",
    "device_init": "making the accelerators usable",
    "process_group": "forming process groups between the ranks",
    "preproc_creation": "creating the preprocessing of the data",
    "model_init": "building the model",
    "sharding_plan": "planning how tables and layers are spread over the ranks",
    "data_warmup": "waiting for the data pipeline to deliver its first batch",
    "compile": "compiling before the first step was through",
    "cache_load": "loading compile caches",
    "checkpoint_load": "loading the checkpoint",
    OTHER: "initialisation outside any phase that has a name here",
}

_MEANINGS: Mapping[str, str] = {
    TRAINING: "consuming data, with an effect that survives",
    START_ALLOCATION: "from the allocation of the hardware to the first process of the job",
    DATA_WAIT: "in the loop, waiting for the next batch",
    RECOMPILE: "in the loop, compiling on the main track",
    CHECKPOINT_BLOCKING: "in the loop, the trainer blocked by a checkpoint",
    EVALUATION: "evaluating in the loop",
    PUBLISH: "publishing the model",
    SHUTDOWN: "shutting down after the last step of a success",
    OTHER: "known not to be training, without a name here",
    UNSAVED_TRAINING: "training whose steps were lost when the job fell back to a checkpoint",
    STALLED: "no progress for far longer than a step takes",
    RECOVER_TEARDOWN: "from the failure to the end of the failed attempt",
    RECOVER_QUEUE: "waiting until hardware is allocated again",
    RECOVER_ALLOCATION: "from the new allocation to the first process of the next attempt",
    RECOVER_RESTART: "down, on kept hardware or with no allocation time known",
    UNOBSERVED: "an attempt of which no rank told anything",
}


def meaning_of(component: str) -> str:
    """One sentence that says which seconds a component holds.

    >>> meaning_of("recover.compile")
    'after a failure: compiling before the first step was through'
    """
    if component in _MEANINGS:
        return _MEANINGS[component]
    prefix, _, part = component.partition(".")
    when = "after a failure: " if prefix == "recover" else "before any failure: "
    return when + _INIT_MEANINGS[part]


def meaning_of_area(area: str) -> str:
    """Which seconds an area holds; of one that a later version may know, its name.

    >>> meaning_of_area("scheduling"), _AREA_MEANINGS.keys() == set(AREAS)
    ('waiting for hardware: allocation and queue', True)
    """
    return _AREA_MEANINGS.get(area, area)


def group_seconds(components: Mapping[str, float]) -> dict[str, float]:
    """Seconds by group, from seconds by component; every group is present."""
    totals = dict.fromkeys(GROUPS, 0.0)
    for component, seconds in components.items():
        totals[group_of(component)] += seconds
    return totals


def area_seconds(components: Mapping[str, float]) -> dict[str, float]:
    """Seconds by area of the training cycle, from seconds by component; every area is present.

    >>> {a: s for a, s in area_seconds({"training": 8.0, "data_wait": 1.0, "stalled": 1.0}).items() if s}
    {'effective training': 8.0, 'wasted training': 2.0}
    """
    totals = dict.fromkeys(AREAS, 0.0)
    for component, seconds in components.items():
        totals[area_of(component)] += seconds
    return totals
