"""PromQL that chooses and orders jobs, so that a server hands out a few of ten thousand. Pure.

Every expression has one value a job, with the label `job_id` alone. What each reads is one series a
job or a few, never all the series of all jobs.
"""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.accounting import STATES
from ett_core.accounting.state import OVER
from ett_core.components import CHECKPOINT_BLOCKING, TRAINING
from ett_core.urgency import severity
from ett_dashboard.prometheus.promql import Series, among, containing, equals

LABELS = ("cluster", "team", "model", "scheduler", "purpose")
WORDS = ("job_id", "job_name", *LABELS)
"""Labels in which a part of a name is looked for."""
STATE_WEIGHT = 1e9
"""More than the seconds that any job can lose."""
OVER_BELOW = 100
LAST = 1e18
"""Beyond any value: what stands in for one that is not known."""
BY_NAME = "job_name"


def chosen(series: Series, asked: Mapping[str, str]) -> str | None:
    """1 for each job that is asked for; None where all are."""
    matchers = [among(name, words.split(",")) for name in LABELS if (words := asked.get(name))]
    states = asked.get("state")
    text = asked.get("text")
    if not matchers and not states and not text:
        return None
    looked_in = [[containing(word, text)] for word in WORDS] if text else [[]]
    found = " or ".join(series.a_job("ett_job_info", *matchers, *one) for one in looked_in)
    if not states:
        return f"({found})"
    return f"(({found}) and on (job_id) {series.a_job('ett_job_state', among('state', states.split(',')))})"


def of(expr: str, members: str | None) -> str:
    """An expression of the jobs that were chosen."""
    return expr if members is None else f"({expr} and on (job_id) {members})"


def first(series: Series, asked: Mapping[str, str], most: int) -> str:
    """So many jobs that come first in the order of `sort`, each with what it is ordered by.

    Those of unknown value come last. Names are no values: for their order the most urgent jobs come.
    """
    sort = asked.get("sort") or "urgency"
    falling = sort.startswith("-") or sort == "urgency"
    value = _value(series, sort.removeprefix("-"))
    unknown = f"{series.a_job('ett_job_wall_seconds')} * 0 {'-' if falling else '+'} {LAST:g}"
    every = value if sort == "urgency" else f"({value} or on (job_id) {unknown})"
    return f"{'topk' if falling else 'bottomk'}({most}, {of(every, chosen(series, asked))})"


def is_falling(sort: str) -> bool:
    """Whether the largest comes first in an order."""
    return not sort or sort == "urgency" or sort.startswith("-")


def urgency(series: Series) -> str:
    """The order of `ett_core.urgency`: by state, those that are over last, then by the seconds lost."""
    weights: dict[int, list[str]] = {}
    for state in STATES:
        weights.setdefault(severity(state) - (OVER_BELOW if state in OVER else 0), []).append(state)
    by_state = " or ".join(
        f"{series.a_job('ett_job_state', among('state', states))} * {weight * STATE_WEIGHT:g}"
        for weight, states in weights.items()
    )
    wall = series.a_job("ett_job_wall_seconds")
    training = series.a_job("ett_job_component_seconds", equals("component", TRAINING))
    return f"(({by_state}) + on (job_id) ({wall} - on (job_id) ({training} or on (job_id) {wall} * 0)))"


def dearest_savers(series: Series, asked: Mapping[str, str], most: int) -> str:
    """Jobs that save, those first that spent most accelerator time blocked by it."""
    blocked = series.a_job("ett_job_component_seconds", equals("component", CHECKPOINT_BLOCKING))
    weighed = f"{blocked} * on (job_id) {series.a_job('ett_job_accelerators')}"
    return f"topk({most}, {of(f'({weighed})', chosen(series, asked))})"


def _value(series: Series, name: str) -> str:
    simple = {
        "ett_percent": ("ett_job_effective_ratio", equals("window", "all")),
        "tts_s": ("ett_job_time_to_start_seconds",),
        "unsaved_exposure_s": ("ett_job_unsaved_exposure_seconds",),
        "last_progress_at": ("ett_job_last_progress_timestamp_seconds",),
        "wall_s": ("ett_job_wall_seconds",),
    }
    if name in simple:
        return series.a_job(*simple[name])
    if name == "failures":
        return f"sum by (job_id) (max by (job_id, domain) ({series.of('ett_job_failures_total')}))"
    if name == "state":
        return " or ".join(
            f"{series.a_job('ett_job_state', equals('state', state))} * {place}"
            for place, state in enumerate(sorted(STATES), 1)
        )
    return urgency(series)
