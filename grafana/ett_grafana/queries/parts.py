"""Parts that queries of several boards share: selectors, groups of components, shares. Pure."""

from __future__ import annotations

from ett_core.components import BETWEEN_ATTEMPTS, COMPONENTS, TRAINING, UNOBSERVED, group_of

CLUSTER = 'cluster=~"$cluster"'
TEAM = f'{CLUSTER}, team=~"$team"'
MODEL = f'{CLUSTER}, model=~"$model"'
JOB = 'job_id=~"$job_id"'
RATE = "$__rate_interval"
"""The window of `rate`: Grafana makes it long enough for the scrape interval and the zoom."""
RANGE = "$__range"
"""The time range that the board shows."""


def any_of(names: tuple[str, ...]) -> str:
    r"""A regular expression of some names, as it stands in a query.

    >>> any_of(("training", "recover.queue"))
    'training|recover\\\\.queue'
    """
    return "|".join(name.replace(".", r"\\.") for name in names)


def of_group(group: str) -> str:
    """The selector of the components of a group."""
    return f'component=~"{any_of(tuple(c for c in COMPONENTS if group_of(c) == group))}"'


TRAINED = f'component="{TRAINING}"'
OBSERVED = f'component!~"{any_of(tuple(c for c in COMPONENTS if c in {*BETWEEN_ATTEMPTS, UNOBSERVED}))}"'
"""Components that only a job of which something was observed has."""


def effective_share(series: str, selector: str, by: str = "") -> str:
    """Training over everything; nothing, and not 0, where nothing was observed.

    `series` has seconds by component; `by` is empty or a list of labels.
    """
    total = f"sum{by} ({_of(series, selector)})"
    training = f"sum{by} ({_of(series, selector, TRAINED)})"
    observed = f"sum{by} ({_of(series, selector, OBSERVED)})"
    return f"({training} or 0 * {observed}) / {total}"


def group_share(series: str, selector: str, group: str) -> str:
    """The share of one group; 0 where it has no second."""
    total = f"sum ({_of(series, selector)})"
    return f"(sum ({_of(series, selector, of_group(group))}) or 0 * {total}) / {total}"


def latest(series: str) -> str:
    """What a job last showed in the time range, of jobs that have left since, too.

    Of a job that is there, only what it shows now: a component can go when more becomes known. `or on` would
    say so in Prometheus; VictoriaMetrics 1.79 then adds what it should leave out.
    """
    return f"({series} or (last_over_time({series}[{RANGE}]) unless on (job_id) {series}))"


def grown(counter: str, window: str = RANGE, now: str = "") -> str:
    """By how much a counter of jobs grew in a window, exactly, what a new series begins with included.

    `now` is its value at the end, where that is not the counter itself. A job's counters are computed anew
    from all that was stored of it, so they never start again at 0, not even with the exporter; and much of
    what a job counts (compiling, above all) is there at its first scrape, which `increase` would not see.

    >>> grown("c", "1h")
    '(c - c offset 1h or c)'
    """
    now = now or counter
    return f"({now} - {counter} offset {window} or {now})"


def grown_in_range(counter: str) -> str:
    """By how much a counter of jobs grew in the time range, of jobs that have ended since, too."""
    return grown(counter, now=f"last_over_time({counter}[{RANGE}])")


def _of(series: str, *selectors: str) -> str:
    chosen = ", ".join(part for part in selectors if part)
    return f"{series}{{{chosen}}}" if chosen else series
