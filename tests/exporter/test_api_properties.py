"""The whole interface under inputs that nobody wrote by hand: never a 5xx, every answer as described.

schemathesis makes requests from the description (with ETT_FULL=1 many more), hypothesis makes
bodies, headers and queries that follow no description at all.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import string
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ett_exporter.api import make_app
from ett_exporter.endpoints import ENDPOINTS
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store

FULL = os.environ.get("ETT_FULL") == "1"
NOW = 1_764_000_200.0


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """An application over two jobs, in this process."""
    store = Store(str(tmp_path_factory.mktemp("properties") / "ett.sqlite"))
    opened = Service(store, Settings(prices={"H200": 3.5}), clock=lambda: NOW)
    opened.upkeep.build()
    yield make_app(opened)
    store.close()


def ask(app, method, target, headers=(), content=b""):
    async def request():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
            return await client.request(method, target, headers=list(headers), content=content)

    return asyncio.run(request())


header_values = st.text(string.printable.replace("\r", "").replace("\n", "").strip(), max_size=40)
lines = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda **fields: json.dumps(fields).encode(),
        v=st.just(1),
        job_id=st.text(max_size=20) | st.just("j"),
        writer=st.text(max_size=10) | st.integers(),
        seq=st.integers() | st.floats(),
        attempt=st.integers(-5, 5),
        rank=st.integers(-5, 5),
        time=st.floats() | st.floats(1e9, 2e9),
        kind=st.sampled_from(["heartbeat", "progress", "attempt_start", "sneeze"]),
        step=st.integers(0, 5) | st.none(),
        steps=st.integers(0, 5),
        labels=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    ),
)


posts = st.fixed_dictionaries(
    {
        "path": st.sampled_from(["/api/v1/segments", "/api/v1/events"]),
        "body": st.lists(lines, max_size=5).map(b"\n".join),
        "content-encoding": st.sampled_from(["", "gzip", "zstd", "identity", "br"]) | header_values,
        "x-ett-sent-at": header_values,
        "x-ett-clock-offset": header_values,
    }
)
parameters = st.dictionaries(
    st.sampled_from(["begin", "end", "limit", "offset", "state", "since", "sort", "x"]),
    st.text(max_size=20) | st.floats().map(str) | st.integers().map(str),
    max_size=4,
)
gets = st.fixed_dictionaries(
    {
        "endpoint": st.sampled_from([e for e in ENDPOINTS if e.method == "GET"]),
        "job_id": st.text(min_size=1, max_size=20),
        "query": parameters,
        "if-none-match": header_values,
    }
)


@settings(max_examples=400 if FULL else 60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(posts)
def test_no_body_and_no_header_brings_it_down(app, post):
    """Whatever is posted is answered with a success or a client's error, and in JSON."""
    headers = [(name, post[name]) for name in ("content-encoding", "x-ett-sent-at", "x-ett-clock-offset")]
    answer = ask(app, "POST", post["path"], headers, post["body"])
    assert answer.status_code < 500
    assert answer.json()


@settings(max_examples=400 if FULL else 60, deadline=None)
@given(gets)
def test_no_query_brings_it_down(app, get):
    """Whatever is asked for is answered with a success or a client's error."""
    name = quote(get["job_id"], errors="replace")
    path = re.sub(r"{\w+}", lambda _: name, get["endpoint"].path)
    target = f"{path}?{urlencode(get['query'], errors='replace')}"
    answer = ask(app, "GET", target, [("if-none-match", get["if-none-match"])])
    assert answer.status_code < 500


def test_requests_made_from_the_description_are_answered_as_described(app):
    """No 5xx, no undescribed status, no answer that does not fit its schema.

    What a line of a body must be, no schema says: there a refusal of what fits the schema is no fault.
    """
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

    schemathesis.serializer.alias("application/x-ndjson", "text/plain")
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert {o.path for o in operations} == {e.path for e in ENDPOINTS} - {"/api/v1/openapi.json"}
    checks = [schemathesis.checks.positive_data_acceptance]
    for operation in operations:

        @settings(
            max_examples=100 if FULL else 8,
            deadline=None,
            database=None,
            derandomize=not FULL,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def conforms(case):
            unspoken = checks if case.method == "POST" else []
            case.call_and_validate(excluded_checks=unspoken)

        conforms()
