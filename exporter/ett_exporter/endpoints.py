"""The addresses of the HTTP interface: one table, from which routes and description are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ett_exporter import answer_types as answers
from ett_exporter import cache_types as caches
from ett_exporter import failure_types as failures
from ett_exporter import job_types as job
from ett_exporter import lever_types as levers
from ett_exporter import queries
from ett_exporter.service import Accepted
from ett_exporter.tokens import INGEST, READ

NDJSON = "application/x-ndjson"
JSON = "application/json"
TEXT = "text/plain"

OK = "what was asked for"
NOT_MODIFIED = "it has not changed since the answer with the ETag in If-None-Match"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One address: who may use it, what it takes and gives.

    `name` is that of its handler; `scope` what a token must be good for (empty: anybody may). `query`
    holds its parameters. `answer` is the type of its JSON; None: it answers `media`.
    """

    name: str
    path: str
    summary: str
    method: str = "GET"
    scope: str = READ
    query: type[msgspec.Struct] = queries.Nothing
    answer: type[msgspec.Struct] | None = None
    media: str = JSON
    errors: Mapping[int, str] = {}


BAD_QUERY = {400: "a parameter is unknown or not understood"}
NOT_THERE = {404: "there is nothing of this name"}
NO_STORE = {503: "the database cannot be read; wait Retry-After seconds"}
INTAKE = {
    400: "the body is no whole stream of its encoding, or broke off",
    403: "the token may send none of these lines",
    408: "the body did not come in time",
    413: "a limit of size is exceeded: send less at once",
    415: "the Content-Encoding is unknown: gzip, zstd or none",
    429: "too many requests of this sender wait already; wait Retry-After seconds",
    503: "there is no room now, or the database cannot be written; wait Retry-After seconds",
}


def _read(name: str, path: str, summary: str, answer: type, query: type = queries.Nothing) -> Endpoint:
    named = "{" in path or query is queries.ComparisonQuery
    errors = {**BAD_QUERY, **(NOT_THERE if named else {}), **NO_STORE}
    return Endpoint(name=name, path=path, summary=summary, query=query, answer=answer, errors=errors)


ENDPOINTS: Sequence[Endpoint] = (
    Endpoint(
        name="segment",
        method="POST",
        path="/api/v1/segments",
        summary="take in events of one writer of one job, one JSON object a line",
        scope=INGEST,
        answer=Accepted,
        errors=INTAKE,
    ),
    Endpoint(
        name="events",
        method="POST",
        path="/api/v1/events",
        summary="take in events of any jobs and writers, one JSON object a line",
        scope=INGEST,
        answer=Accepted,
        errors={**INTAKE, 422: "no line of the body is an event; the answer lists why"},
    ),
    _read("jobs", "/api/v1/jobs", "jobs in rows", answers.Jobs, queries.JobsQuery),
    _read(
        "timeline",
        "/api/v1/jobs/{job_id}/timeline",
        "where the time of a job went",
        job.Timeline,
        queries.TimelineQuery,
    ),
    _read("attempts", "/api/v1/jobs/{job_id}/attempts", "the attempts of a job", job.Attempts),
    _read("ranks", "/api/v1/jobs/{job_id}/ranks", "the ranks of a job's latest attempt", job.Ranks),
    _read(
        "job_failures", "/api/v1/jobs/{job_id}/failures", "why a job failed", job.JobFailures
    ),
    _read(
        "checkpoints", "/api/v1/jobs/{job_id}/checkpoints", "the checkpoints of a job", job.Checkpoints
    ),
    _read("job_caches", "/api/v1/jobs/{job_id}/caches", "the compile caches of a job", caches.JobCaches),
    _read(
        "compilations",
        "/api/v1/jobs/{job_id}/compilations",
        "what a job compiled, and why again",
        job.Compilations,
        queries.RowsQuery,
    ),
    _read(
        "decisions",
        "/api/v1/jobs/{job_id}/decisions",
        "what the pipeline of a job decided, and why",
        job.Decisions,
        queries.RowsQuery,
    ),
    _read("job", "/api/v1/jobs/{job_id}", "one job in full", job.Job, queries.SpanQuery),
    _read(
        "failure",
        "/api/v1/failures/{failure_id}",
        "one failure with the lines that tell of it",
        failures.FailureDetail,
    ),
    _read(
        "failures",
        "/api/v1/failures",
        "failures of many jobs, the latest first, and by group",
        failures.Failures,
        queries.FailuresQuery,
    ),
    _read(
        "nodes", "/api/v1/nodes", "nodes at which failures point", failures.Nodes, queries.NodesQuery
    ),
    _read(
        "regressions",
        "/api/v1/regressions",
        "components and failures that became worse",
        failures.Regressions,
        queries.WindowQuery,
    ),
    _read("runs", "/api/v1/runs", "attempts with their figures", failures.Runs, queries.RunsQuery),
    _read("families", "/api/v1/families", "families of jobs and their usual figures", failures.Families,
          queries.WindowQuery),
    _read("caches", "/api/v1/caches", "the compile caches of many jobs", caches.Caches, queries.Page),
    _read(
        "cache_runs",
        "/api/v1/caches/runs",
        "compile caches by run, cold or warm, the latest first",
        levers.CacheRuns,
        queries.CacheRunsQuery,
    ),
    _read(
        "cache_comparison",
        "/api/v1/caches/comparison",
        "two runs side by side, and why the colder one was cold",
        levers.CacheComparison,
        queries.ComparisonQuery,
    ),
    _read(
        "intervals",
        "/api/v1/intervals",
        "checkpoint intervals of jobs beside their best, the dearest first",
        levers.Intervals,
        queries.Page,
    ),
    _read(
        "what_if",
        "/api/v1/what-if",
        "the time of all jobs without some of its losses",
        levers.WhatIf,
        queries.WhatIfQuery,
    ),
    _read("fleet", "/api/v1/fleet", "where the time of all jobs went", answers.Fleet, queries.FleetQuery),
    _read(
        "changes",
        "/api/v1/changes",
        "jobs that changed since a cursor",
        answers.Changes,
        queries.ChangesQuery,
    ),
    _read("health", "/api/v1/health", "how the exporter is", answers.Health),
    Endpoint(
        name="openapi", path="/api/v1/openapi.json", summary="this description", scope="", errors=BAD_QUERY
    ),
    Endpoint(
        name="docs",
        path="/api/v1/docs",
        summary="this description for people",
        scope="",
        media="text/html",
        errors=BAD_QUERY,
    ),
    Endpoint(
        name="metrics",
        path="/metrics",
        summary="every figure for Prometheus, as text or OpenMetrics",
        media=TEXT,
        errors=NO_STORE,
    ),
    Endpoint(name="healthz", path="/healthz", summary="`ok` while it answers", scope="", media=TEXT),
    Endpoint(
        name="readyz",
        path="/readyz",
        summary="`ready` once every job that it knows is folded",
        scope="",
        media=TEXT,
        errors={503: "it is still folding jobs after its start"},
    ),
    Endpoint(name="front", path="/", summary="the addresses in a few lines", scope="", media=TEXT),
)  # fmt: skip
