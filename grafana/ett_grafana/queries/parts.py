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


def _of(series: str, *selectors: str) -> str:
    chosen = ", ".join(part for part in selectors if part)
    return f"{series}{{{chosen}}}" if chosen else series
