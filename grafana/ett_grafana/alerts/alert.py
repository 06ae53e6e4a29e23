"""What an alert is, and the expressions that several of them are built from."""

from __future__ import annotations

import msgspec

from ett_grafana.recording import WHO, of_job

CRITICAL, WARNING, INFO = "critical", "warning", "info"
"""Wake somebody up; look today; for the weekly round."""


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alerting rule. `summary` and `description` are templates of Prometheus."""

    name: str
    expr: str
    severity: str
    summary: str
    description: str
    after: str = "0s"
    """For how long `expr` holds before the alert fires: a duration of Prometheus."""
    page: str = ""
    """The page of the app to look at; may hold templates."""


def duration(seconds: float) -> str:
    """Whole seconds as Prometheus writes them.

    >>> duration(900), duration(5400), duration(0)
    ('15m', '1h30m', '0s')
    """
    left, parts = int(seconds), []
    for name, length in (("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        parts += [f"{count}{name}"] if count else []
    return "".join(parts) or "0s"


def of_one_job(expr: str, *labels: str) -> str:
    """An expression with one series a job (and for each value of `labels`) that says whose job it is.

    >>> print(of_one_job("x"))
    max by (job_id) (x) * on (job_id) group_left (job_name, team, model, cluster) ett:job_info:one
    """
    by = ", ".join(("job_id", *labels))
    return of_job(f"max by ({by}) ({expr})", *WHO)


def in_state(state: str) -> str:
    """One series for each job that is in a state."""
    return of_one_job(f'ett_job_state{{state="{state}"}}')


def risen(name: str, window: str) -> str:
    """By how much a counter rose, where its series may have begun within the window with more than 0."""
    return (
        f"increase({name}[{window}])"
        f" + (min_over_time({name}[{window}]) unless {name} offset {window})"
        f" or increase({name}[{window}])"
        f" or min_over_time({name}[{window}])"
    )
