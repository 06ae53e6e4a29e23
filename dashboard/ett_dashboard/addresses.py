"""Addresses of the app's pages and files, relative to the app. Pure.

What a viewer chose stands in the address, so that it can be passed on and the way back leads to
what was seen. Choices of `SHARED` go along from page to page.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from ett_core.boards import BOARD_OF_PAGE, board_uid

SETTINGS = ("weight", "zone", "price")
"""Parameters that say how figures are shown, and choose nothing among jobs."""
SHARED = ("window", *SETTINGS, "team", "cluster", "model", "scheduler", "purpose", "text")
"""Parameters that mean the same on every page."""


def to_page(path: str, chosen: Mapping[str, str] | None = None, **own: str) -> str:
    """The address of a page with the shared choices, and parameters of its own.

    >>> to_page("failures", {"team": "a b", "sort": "x"}, id="j~0"), to_page("", {})
    ('failures?team=a+b&id=j~0', './')
    """
    shared = {name: value for name, value in (chosen or {}).items() if name in SHARED and value}
    return _with_query(path or "./", shared | own)


def settings_of(asked: Mapping[str, str]) -> dict[str, str]:
    """What an address says of how figures are shown.

    >>> settings_of({"zone": "Asia/Tokyo", "team": "a", "price": ""})
    {'zone': 'Asia/Tokyo'}
    """
    return {name: value for name in SETTINGS if (value := asked.get(name))}


def to_job(job_id: str, chosen: Mapping[str, str] | None = None) -> str:
    """The address of a job's page.

    >>> to_job("team/run 1")
    'job?id=team%2Frun+1'
    """
    return to_page("job", chosen, id=job_id)


def to_csv(name: str, **asked: str) -> str:
    """The address of a table as a file.

    >>> to_csv("jobs", sort="-ett_percent", team="")
    'csv/jobs?sort=-ett_percent'
    """
    return _with_query(f"csv/{name}", asked)


def to_report(**asked: str) -> str:
    """The address of a report as one file.

    >>> to_report(id="team/run 1", zone="")
    'report?id=team%2Frun+1'
    """
    return _with_query("report", asked)


def to_failure(failure_id: str, chosen: Mapping[str, str] | None = None) -> str:
    """The address of a failure's page.

    >>> to_failure("a/b~0")
    'failures?id=a%2Fb~0'
    """
    return to_page("failures", chosen, id=failure_id)


def to_failures(asked: Mapping[str, str]) -> str:
    """The address of the failures that are asked for.

    >>> to_failures({"window": "7d", "domain": ""}), to_failures({})
    ('failures?window=7d', 'failures')
    """
    return _with_query("failures", asked)


def to_regressions(asked: Mapping[str, str]) -> str:
    """The address of what became slower, of the jobs and the time that are asked for."""
    return _with_query("regressions", asked)


def to_family(asked: Mapping[str, str], family: str) -> str:
    """The address of the history of a family of jobs; of all together where it is empty.

    >>> to_family({"window": "7d"}, "dlrm / wide"), to_family({"family": "dlrm"}, "")
    ('regressions?window=7d&family=dlrm+%2F+wide', 'regressions?scope=all')
    """
    return to_regressions({**asked, "family": family, "scope": "" if family else "all"})


def changed(path: str, asked: Mapping[str, str], **changes: str) -> str:
    """The address of this page with some of its parameters changed; empty ones are left out.

    >>> changed("", {"team": "a", "sort": "x"}, sort="-y")
    './?team=a&sort=-y'
    """
    return _with_query(path or "./", {**asked, **changes})


def to_board(grafana_url: str, path: str, asked: Mapping[str, str]) -> str:
    """The address of the board that shows what a page shows, of the same job and clusters.

    >>> to_board("https://grafana.example/", "job", {"id": "team/run 1", "team": "ads"})
    'https://grafana.example/d/ettwatch-job?var-job_id=team%2Frun+1&var-team=ads'
    """
    board = board_uid(BOARD_OF_PAGE.get(path, "fleet"))
    job_id = {"var-job_id": asked.get("id", "")} if path == "job" else {}
    shared = {f"var-{name}": asked.get(name, "") for name in ("cluster", "team", "model")}
    return _with_query(f"{grafana_url.rstrip('/')}/d/{board}", job_id | shared)


def _with_query(path: str, parameters: Mapping[str, str]) -> str:
    query = urlencode({name: value for name, value in parameters.items() if value})
    return f"{path}?{query}" if query else path
