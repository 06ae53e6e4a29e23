"""Marks on the time axis of boards: deploys and failures as annotations of Grafana, each once.

Boards show deploys by the tags `ettwatch` and `deploy`. Failures, which boards otherwise read from
Prometheus, come with their cause in words, for boards of your own, under `ettwatch` and `failure`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

from ett_core.boards import BOARD_TAG
from ett_grafana.publishing.connection import Grafana
from ett_grafana.publishing.steps import CREATE, KEEP, Step

DEPLOY, FAILURE = "deploy", "failure"
READ_AT_MOST = 5000
MS = 1000.0


def deploy_mark(grafana: Grafana, text: str, at: float, tags: Sequence[str] = ()) -> Step:
    """A deploy at a moment (Unix seconds); `text` is shown as it is, not as HTML."""
    shown, wanted = escape(text), [BOARD_TAG, DEPLOY, *tags]
    body = {"time": round(at * MS), "text": shown, "tags": wanted}
    there = _marks(grafana, DEPLOY, at, at)
    known = any(each["text"] == shown and set(wanted) <= set(each["tags"]) for each in there)
    return _step(grafana, f"deploy {text!r}", body, known=known)


def failure_marks(grafana: Grafana, failures: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
    """One mark a failure of `/api/v1/failures`, unless its id is among those that Grafana has."""
    if not failures:
        return
    times = [each["time"] for each in failures]
    there = {tag for mark in _marks(grafana, FAILURE, min(times), max(times)) for tag in mark["tags"]}
    for failure in failures:
        body = _of_failure(failure)
        known = f"id:{failure['id']}" in there
        yield _step(grafana, f"failure {failure['id']}", body, known=known)


def _of_failure(failure: Mapping[str, Any]) -> dict[str, Any]:
    why = failure["diagnosis"]["failure_class"]
    named = [BOARD_TAG, FAILURE, why, f"id:{failure['id']}", f"job:{failure['job_id']}"]
    named += [f"{name}:{failure[name]}" for name in ("team", "cluster", "node") if failure.get(name)]
    text = f"{failure['job_id']}: {why}. {failure.get('cause') or ''}".strip()
    return {"time": round(failure["time"] * MS), "text": escape(text), "tags": named}


def _marks(grafana: Grafana, kind: str, begin: float, end: float) -> Iterable[Mapping[str, Any]]:
    """Marks of ours between two moments, both included."""
    query = [("tags", BOARD_TAG), ("tags", kind), ("type", "annotation"), ("limit", READ_AT_MOST)]
    span = [("from", round(begin * MS) - 1), ("to", round(end * MS) + 1)]
    found: Iterable[Mapping[str, Any]] = grafana.get(f"/annotations?{urlencode([*query, *span])}")
    return found


def _step(grafana: Grafana, thing: str, body: Mapping[str, Any], *, known: bool) -> Step:
    if known:
        return Step(kind=KEEP, thing=thing)
    return Step(kind=CREATE, thing=thing, take=lambda: grafana.create("/annotations", body))
