"""What became slower, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from ett_core.components import CHECKPOINT_BLOCKING, DATA_WAIT, RECOMPILE, meaning_of
from ett_core.failures.words import chance_words
from ett_core.fleet.regressions import ALL_FAMILIES, SHARES, Change, Regression
from ett_core.fleet.rows import COMPILE_SECONDS, TIME_TO_RECOVER, TIME_TO_START
from ett_dashboard.words import UNKNOWN_FIGURE, compact, duration, many, plain, ratio, when

START_COMPILE, RECOVER_COMPILE = f"start.{COMPILE_SECONDS}", f"recover.{COMPILE_SECONDS}"
MAIN_FIGURES = (
    TIME_TO_START,
    TIME_TO_RECOVER,
    START_COMPILE,
    RECOVER_COMPILE,
    CHECKPOINT_BLOCKING,
    DATA_WAIT,
    RECOMPILE,
)
"""Figures that a family always shows; parts of a start or a recovery only where they became larger."""
_NAMES = {
    TIME_TO_START: "Time to start",
    TIME_TO_RECOVER: "Time to recover",
    START_COMPILE: "Compile seconds of a start",
    RECOVER_COMPILE: "Compile seconds of a recovery",
    CHECKPOINT_BLOCKING: "Checkpoints blocking",
    DATA_WAIT: "Data wait",
    RECOMPILE: "Recompilation",
}
_MEANINGS = {
    TIME_TO_START: "From the beginning of the wall time to the first training loop.",
    TIME_TO_RECOVER: "From a failure to the next training loop.",
    START_COMPILE: "Compile seconds of the first start, also those that other work hid.",
    RECOVER_COMPILE: "Compile seconds of a start after a failure, also those that other work hid.",
}
VERSIONS_OF = {"config_hash": "configuration", "accelerator_type": "accelerator"}


def figure_name(figure: str) -> str:
    """A figure as people call it; a part of a start by its component.

    >>> figure_name("time_to_start"), figure_name("start.model_init")
    ('Time to start', 'start.model_init')
    """
    return _NAMES.get(figure, figure)


def figure_meaning(figure: str) -> str:
    """What a figure holds, in a sentence."""
    if figure in _MEANINGS:
        return _MEANINGS[figure]
    meaning = meaning_of(figure)
    return f"{meaning[:1].upper()}{meaning[1:]}{', as a share of the loop' if figure in SHARES else ''}."


def amount(figure: str, value: float | None) -> str:
    """A figure with its unit.

    >>> amount("data_wait", 0.034), amount("time_to_start", 75.0), amount("recompile", None)
    ('3.4 %', '1 m 15 s', 'n/a')
    """
    if value is None:
        return UNKNOWN_FIGURE
    return ratio(value) if figure in SHARES else duration(value)


def family_name(family: str) -> str:
    """The name of a family; the empty one stands for all.

    >>> family_name(""), family_name("dlrm / wide")
    ('all families', 'dlrm / wide')
    """
    return "all families" if family == ALL_FAMILIES else plain(family, 80)


def sentence(regression: Regression, zone: tzinfo) -> str:
    """What became slower, since when, by how much and how sure that is."""
    name = figure_name(regression.figure)
    before, after = (amount(regression.figure, value) for value in (regression.before, regression.after))
    of_loop = " of the loop" if regression.unit == "ratio" else ""
    jobs = f"{many(regression.jobs_after, 'job')} against {regression.jobs_before:,}"
    return (
        f"{name} of {family_name(regression.family)} is {compact(regression.factor)} times as long since "
        f"{when(regression.since, zone)}: {before}{of_loop} before, {after} since ({jobs}, "
        f"{chance_words(regression.probability)})"
    )


def beside(changes: Sequence[Change]) -> str:
    """What else is different since; empty where nothing is known to be.

    >>> beside([Change("torch", ["2.12.0"], ["2.13.0"])])
    'Changed beside it: torch from 2.12.0 to 2.13.0. That is no proof that it is the cause.'
    """
    if not changes:
        return ""
    told = "; ".join(
        f"{VERSIONS_OF.get(c.what, plain(c.what, 40))} from {_values(c.before)} to {_values(c.after)}"
        for c in changes
    )
    return f"Changed beside it: {told}. That is no proof that it is the cause."


def _values(values: Sequence[str]) -> str:
    return ", ".join(plain(value, 40) for value in values) or "nothing"
