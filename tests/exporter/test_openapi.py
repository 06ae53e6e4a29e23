"""The description of the API: complete, true, and enough to find a fault with."""

from __future__ import annotations

import asyncio
import re

import httpx
import jsonschema
import pytest
from starlette.routing import Route

from ett_exporter.api import make_app
from ett_exporter.endpoints import ENDPOINTS
from ett_exporter.openapi import description, page

NOW = 1_764_000_200.0
READS = [e for e in ENDPOINTS if e.method == "GET" and e.answer is not None]


ASKED = {"cache_comparison": "?one={0}~0&two={0}~1"}
"""What is asked where an address answers nothing without parameters."""


def path_of(endpoint, job_id):
    """The path of an endpoint about a job, about the first failure of it, or about its two runs."""
    path = endpoint.path.replace("{job_id}", job_id).replace("{failure_id}", f"{job_id}~0")
    return path + ASKED.get(endpoint.name, "").format(job_id)


def schema_of(endpoint):
    """The JSON Schema of an endpoint's success, with everything that it refers to."""
    described = description()
    operation = described["paths"][endpoint.path][endpoint.method.lower()]
    content = operation["responses"]["200"]["content"]["application/json"]["schema"]
    return {**content, "components": described["components"]}


def test_every_route_is_described_and_nothing_else(service):
    """The paths of the description are the routes of the application, with the same methods."""
    routes = {
        (route.path.replace(":path}", "}"), method)
        for route in make_app(service()).routes
        if isinstance(route, Route)
        for method in route.methods - {"HEAD"}
    }
    described = {
        (path, method.upper()) for path, methods in description()["paths"].items() for method in methods
    }
    assert routes == described


@pytest.mark.parametrize("endpoint", READS, ids=lambda e: e.name)
def test_real_answers_are_as_described(service, story, endpoint):
    """The answers over a job that ended and one that runs fit their schemas, field by field."""
    opened = service(now=NOW)
    for name, ended in (("ads/1", True), ("b", False)):
        for body in story(name, ended=ended).bodies().values():
            opened.ingest(body)

    async def ask():
        transport = httpx.ASGITransport(make_app(opened))
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
            return [await client.get(path_of(endpoint, name)) for name in ("ads/1", "b")]

    for answer in asyncio.run(ask()):
        assert answer.status_code == 200
        schema = schema_of(endpoint)
        jsonschema.validate(answer.json(), schema, cls=jsonschema.Draft202012Validator)
        known = description()["components"]["schemas"][endpoint.answer.__name__]["properties"]
        assert set(answer.json()) == set(known)


def test_each_parameter_and_answer_of_the_description_has_a_meaning():
    """Every operation has a summary, every answer a sentence, every reference a target."""
    described = description()
    schemas = described["components"]["schemas"]
    for methods in described["paths"].values():
        for operation in methods.values():
            assert operation["summary"]
            assert all(answer["description"] for answer in operation["responses"].values())
    for name in re.findall(r"'#/components/schemas/(\w+)'", str(described)):
        assert name in schemas
    assert all(schema.get("description") for schema in schemas.values() if "properties" in schema)


def test_the_page_for_people_asks_for_nothing_else():
    """It names every path and loads no script, image, font or style from anywhere."""
    text = page(description())
    assert all(f"{e.method} {e.path}" in text for e in ENDPOINTS)
    assert re.findall(r"<(script|img|link|iframe)\b|@import|url\(|https?://", text) == []


def test_no_type_shows_a_hook_of_python():
    """Types are named as in the description; nothing of Python's modules is shown."""
    assert "ett_exporter" not in str(description())
