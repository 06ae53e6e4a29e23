"""The description of the HTTP interface (OpenAPI 3.1), generated from its table and its types: pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from importlib.metadata import version
from typing import Any, TypeAlias

import msgspec

from ett_exporter.answer_types import Problem
from ett_exporter.endpoints import ENDPOINTS, JSON, NDJSON, NOT_MODIFIED, OK, Endpoint
from ett_exporter.intake import CLOCK_OFFSET_HEADER, SENT_AT_HEADER

Json: TypeAlias = dict[str, Any]

ABOUT = (
    "Times are Unix seconds, names that end in _s hold seconds, in _ratio 0 to 1, in _percent 0 to 100. "
    "Where the exporter has tokens, each request carries Authorization: Bearer TOKEN."
)
REF = "#/components/schemas/{name}"
TOKEN_ERRORS: Mapping[int, str] = {
    401: "the token is missing or unknown",
    403: "the token is not good for this",
}


@cache
def description() -> Json:
    """The whole description."""
    kinds = [endpoint.answer for endpoint in ENDPOINTS if endpoint.answer] + [Problem]
    _, schemas = msgspec.json.schema_components(kinds, ref_template=REF)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ettwatch exporter", "version": version("ettwatch"), "description": ABOUT},
        "paths": {e.path: {e.method.lower(): _operation(e)} for e in ENDPOINTS},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> Json:
    operation: Json = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint), *_headers(endpoint)],
        "responses": {str(status): answer for status, answer in _responses(endpoint)},
        "security": [{}, {"token": []}] if endpoint.scope else [],
    }
    if endpoint.method == "POST":
        lines = {
            "type": "string",
            "description": "one JSON object a line; Content-Encoding: gzip or zstd is understood",
        }
        operation["requestBody"] = {"required": True, "content": {NDJSON: {"schema": lines}}}
    return operation


def _path_parameters(endpoint: Endpoint) -> Iterator[Json]:
    for name in re.findall(r"{(\w+)}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query_parameters(endpoint: Endpoint) -> Iterator[Json]:
    """The fields of the query's type; `null` stands for leaving one out."""
    schema = msgspec.json.schema_components([endpoint.query], ref_template=REF)[1][endpoint.query.__name__]
    for name, given in schema["properties"].items():
        kinds = [kind for kind in given.get("anyOf", ()) if kind != {"type": "null"}]
        value = {key: part for key, part in given.items() if key != "anyOf"} | (kinds[0] if kinds else {})
        if value.get("default", 0) is None:
            del value["default"]
        must = name in schema.get("required", ())
        yield {"name": name, "in": "query", "schema": value} | ({"required": True} if must else {})


def _headers(endpoint: Endpoint) -> Iterator[Json]:
    if endpoint.method == "POST":
        sent = "the sender's clock at sending, in Unix seconds"
        measured = "how far the sender's clock was ahead at the last answer, as OFFSET;within=SECONDS"
        for name, meaning in ((SENT_AT_HEADER, sent), (CLOCK_OFFSET_HEADER, measured)):
            yield {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}
    elif _is_tagged(endpoint):
        yield {"name": "if-none-match", "in": "header", "schema": {"type": "string"}}


def _is_tagged(endpoint: Endpoint) -> bool:
    return endpoint.method == "GET" and endpoint.answer is not None and endpoint.name != "changes"


def _responses(endpoint: Endpoint) -> Iterator[tuple[int, Json]]:
    yield 200, {"description": OK, "content": _content(endpoint)}
    if _is_tagged(endpoint):
        yield 304, {"description": NOT_MODIFIED}
    tokens = TOKEN_ERRORS if endpoint.scope else {}
    for status, meaning in sorted({**tokens, **endpoint.errors}.items()):
        if status == 422:  # noqa: PLR2004 - the one error with the body of a success
            content = _content(endpoint)
        elif endpoint.media == "text/plain" and endpoint.name == "readyz":
            content = {"text/plain": {"schema": {"type": "string"}}}
        else:
            content = {JSON: {"schema": {"$ref": REF.format(name=Problem.__name__)}}}
        yield status, {"description": meaning, "content": content}


def _content(endpoint: Endpoint) -> Json:
    if endpoint.answer is not None:
        return {JSON: {"schema": {"$ref": REF.format(name=endpoint.answer.__name__)}}}
    if endpoint.name == "metrics":
        openmetrics = "application/openmetrics-text"
        return {media: {"schema": {"type": "string"}} for media in (endpoint.media, openmetrics)}
    kind = "object" if endpoint.media == JSON else "string"
    return {endpoint.media: {"schema": {"type": kind}}}


def page(described: Json) -> str:
    """The description for people: one page that asks for nothing else."""
    parts = [_operation_html(path, method, operation) for path, method, operation in _operations(described)]
    types = [_type_html(name, schema) for name, schema in sorted(described["components"]["schemas"].items())]
    title = f"{described['info']['title']} {described['info']['version']}"
    return PAGE.format(
        title=escape(title),
        about=escape(described["info"]["description"]),
        operations="\n".join(parts),
        types="\n".join(types),
    )


def _operations(described: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _operation_html(path: str, method: str, operation: Json) -> str:
    parameters = "".join(_row(p["name"], _kind(p["schema"]), _meaning(p)) for p in operation["parameters"])
    answers = "".join(
        _row(status, _kind_of_content(answer), escape(answer["description"]))
        for status, answer in operation["responses"].items()
    )
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['summary'])}</p>"
        f"{'<h3>Parameters</h3><table>' + parameters + '</table>' if parameters else ''}"
        f"<h3>Answers</h3><table>{answers}</table>"
    )


def _type_html(name: str, schema: Json) -> str:
    rows = "".join(
        _row(field, _kind(kind), escape(kind.get("description", "")))
        for field, kind in schema.get("properties", {}).items()
    )
    about = escape(schema.get("description", ""))
    return f'<h2 id="{escape(name)}"><code>{escape(name)}</code></h2><p>{about}</p><table>{rows}</table>'


def _row(name: str, kind: str, meaning: str) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{meaning}</td></tr>"


def _meaning(parameter: Json) -> str:
    default = parameter["schema"].get("default")
    said = parameter.get("description") or parameter["schema"].get("description", "")
    return escape(f"{said} (default: {default})" if default not in (None, "") else said)


def _kind_of_content(answer: Json) -> str:
    return ", ".join(_kind(media["schema"]) for media in answer.get("content", {}).values())


def _kind(schema: Json) -> str:
    """A schema in a few words.

    >>> _kind({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}})
    'array of number or null'
    """
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema:
        return escape(", ".join(map(str, schema["enum"])))
    if schema.get("type") == "array":
        return f"array of {_kind(schema.get('items') or {})}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    return escape(str(schema.get("type", "any")))


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h2 {{ margin-top: 2.5rem; border-top: 1px solid #8886; padding-top: 1rem; font-size: 1.1rem; }}
h3 {{ font-size: 0.9rem; margin-bottom: 0.2rem; }}
td {{ padding: 0.15rem 1rem 0.15rem 0; vertical-align: top; }}
</style></head><body>
<h1>{title}</h1><p>{about}</p><p>As JSON: <a href="openapi.json">openapi.json</a></p>
{operations}
<h1>Types</h1>
{types}
</body></html>
"""
