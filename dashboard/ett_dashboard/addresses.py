"""Addresses of the app's pages, relative to the app. Pure."""

from __future__ import annotations

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
    query = urlencode({key: value for key, value in asked.items() if value})
    return f"csv/{name}?{query}" if query else f"csv/{name}"
