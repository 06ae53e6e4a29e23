"""Addresses of the app's pages, relative to the app. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode


def to_job(job_id: str) -> str:
    """The address of a job's page.

    >>> to_job("team/run 1")
    'job?id=team%2Frun%201'
    """
    return f"job?id={quote(job_id, safe='')}"


def to_csv(name: str, **asked: str) -> str:
    """The address of a table as a file.

    >>> to_csv("jobs", sort="-ett_percent", team="")
    'csv/jobs?sort=-ett_percent'
    """
    return _asking(f"csv/{name}", asked)


def to_failure(failure_id: str) -> str:
    """The address of a failure's page.

    >>> to_failure("a/b~0")
    'failures?id=a%2Fb~0'
    """
    return f"failures?id={quote(failure_id, safe='')}"


def to_failures(asked: Mapping[str, str]) -> str:
    """The address of the failures that are asked for.

    >>> to_failures({"window": "7d", "domain": ""}), to_failures({})
    ('failures?window=7d', 'failures')
    """
    return _asking("failures", asked)


def to_regressions(asked: Mapping[str, str]) -> str:
    """The address of what became slower, of the jobs and the time that are asked for."""
    return _asking("regressions", asked)


def to_family(asked: Mapping[str, str], family: str) -> str:
    """The address of the history of a family of jobs; of all together where it is empty.

    >>> to_family({"window": "7d"}, "dlrm / wide"), to_family({"family": "dlrm"}, "")
    ('regressions?window=7d&family=dlrm+%2F+wide', 'regressions?scope=all')
    """
    return to_regressions({**asked, "family": family, "scope": "" if family else "all"})


def _asking(path: str, asked: Mapping[str, str]) -> str:
    query = urlencode({key: value for key, value in asked.items() if value})
    return f"{path}?{query}" if query else path
