"""A pretended Grafana that remembers what it is told, for the length of a test.

Each request, and each of its own answers, is held against the description of the real one's HTTP
API (tests/data/grafana/http_api.json); what does not fit is listed in `violations`, which the
fixture wants empty. It behaves like the real one where that matters to whoever publishes: tokens
with roles, versions of boards and their messages, conflicts, boards from files, defaults that it
adds to what it is given, answers without a body.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from openapi_core import OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse

DESCRIPTION = Path(__file__).parents[1] / "data" / "grafana" / "http_api.json"
CLOSED = (
    "AddDataSourceCommand", "AlertQuery", "AlertRuleGroup", "CreateFolderCommand", "PostAnnotationsCmd",
    "ProvisionedAlertRule", "SaveDashboardCommand", "UpdateDataSourceCommand",
)  # fmt: skip
"""Bodies in which a field that nobody knows would be a mistake of ours."""
ROLES = {"viewer-token": 0, "editor-token": 1, "admin-token": 2}
VIEWER, EDITOR, ADMIN = ROLES.values()
UNSAVED = ("id", "version")


class Answer(NamedTuple):
    """What is answered: the body as JSON, nothing for None."""

    status: int
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012 - a constant


def said(code: int, message: str, **more: str) -> Answer:
    """An error as Grafana words it."""
    return Answer(code, {"message": message, **more})


@cache
def described() -> OpenAPI:
    """The description of the API; bodies that we send may hold nothing that it does not name."""
    description = json.loads(DESCRIPTION.read_text())
    for name in CLOSED:
        description["components"]["schemas"][name]["additionalProperties"] = False
    return OpenAPI.from_dict(description)


class FakeGrafana:
    """The state, and an answer for each request."""

    def __init__(self) -> None:
        self.folders: dict[str, dict[str, Any]] = {}
        self.boards: dict[str, dict[str, Any]] = {}
        """By uid: `dashboard`, `meta`, and `versions`, the latest first."""
        self.sources: dict[str, dict[str, Any]] = {}
        self.groups: dict[tuple[str, str], dict[str, Any]] = {}
        self.marks: list[dict[str, Any]] = []
        self.asked: list[str] = []
        """Method and path of every request."""
        self.headers: list[dict[str, str]] = []
        self.violations: list[str] = []
        self.next_answers: list[Answer | None] = []
        """Answers to give instead of the true ones; None: hang up."""
        self.answer_to_changes: Answer | None = None
        """The answer to everything that is not only reading, where set."""
        self.before_saving: Callable[[], object] = lambda: None
        self.has_enveloped_versions = False
        self.has_empty_deletions = False
        self._ids = iter(range(1, 1_000_000))
        self._api = described()

    @property
    def changes(self) -> list[str]:
        """The requests that were not only reading."""
        return [line for line in self.asked if not line.startswith("GET ")]

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer | None:
        """The answer to one request, checked on both sides; None: hang up."""
        parts = urlsplit(target)
        self.asked.append(f"{method} {parts.path}")
        self.headers.append(headers)
        if self.next_answers:
            return self.next_answers.pop(0)
        if self.answer_to_changes and method != "GET":
            return self.answer_to_changes
        kind = headers.get("content-type", "")
        request = MockRequest(
            "http://localhost",
            method.lower(),
            parts.path,
            args=parse_qs(parts.query),
            data=body,
            content_type=kind,
        )
        fits = self._fits(lambda: self._api.validate_request(request), target)
        answer = self._authorised(method, parts.path.removeprefix("/api"), parts.query, headers, body)
        is_described = not (self.has_enveloped_versions and parts.path.endswith("/versions"))
        if fits and is_described and answer.body is not None:
            content = json.dumps(answer.body).encode()
            response = MockResponse(content, answer.status, content_type="application/json")
            self._fits(lambda: self._api.validate_response(request, response), f"answer to {target}")
        return answer

    def _fits(self, validate: Callable[[], object], what: str) -> bool:
        try:
            validate()
        except OpenAPIError as error:
            self.violations.append(f"{what}: {error} {error.__cause__ or ''}")
            return False
        return True

    def _authorised(self, method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> Answer:
        role = ROLES.get(headers.get("authorization", "").removeprefix("Bearer "))
        if role is None:
            return said(401, "Invalid API key")
        needed = VIEWER if method == "GET" and not path.endswith("/versions") else EDITOR
        if path.startswith("/datasources"):
            needed = ADMIN
        if role < needed:
            return said(403, "You'll need additional permissions to perform this action.")
        for pattern, of_method, handle in ROUTES:
            found = re.fullmatch(pattern, path)
            if found and of_method == method:
                names = [unquote(name) for name in found.groups()]
                return handle(self, *names, json.loads(body) if body else parse_qs(query))
        return said(404, "Not found")

    # Folders

    def _folder(self, uid: str, _: object) -> Answer:
        folder = self.folders.get(uid)
        return Answer(200, folder) if folder else said(404, "folder not found")

    def _new_folder(self, body: dict[str, Any]) -> Answer:
        if body["uid"] in self.folders or body["title"] in {each["title"] for each in self.folders.values()}:
            return said(409, "a folder with the same name already exists")
        self.folders[body["uid"]] = {**body, "id": next(self._ids), "version": 1}
        return Answer(200, self.folders[body["uid"]])

    # Boards

    def _board(self, uid: str, _: object) -> Answer:
        board = self.boards.get(uid)
        if board is None:
            return said(404, "Dashboard not found")
        return Answer(200, {"dashboard": board["dashboard"], "meta": board["meta"]})

    def _save(self, body: dict[str, Any]) -> Answer:
        self.before_saving()
        wanted, folder = body["dashboard"], body.get("folderUid", "")
        there = self.boards.get(wanted["uid"])
        if folder and folder not in self.folders:
            return said(404, "folder not found")
        if there and there["meta"].get("provisioned"):
            return said(400, "Cannot save provisioned dashboard")
        if there and not body.get("overwrite") and wanted.get("version") != there["dashboard"]["version"]:
            text = "The dashboard has been changed by someone else"
            return said(412, text, status="version-mismatch")
        self.save(wanted, folder, body.get("message", ""))
        saved = self.boards[wanted["uid"]]["dashboard"]
        url = f"/d/{wanted['uid']}/x"
        told = {"status": "success", "title": "x", "uid": wanted["uid"], "url": url}
        return Answer(200, {**told, "id": saved["id"], "version": saved["version"]})

    def save(self, board: dict[str, Any], folder: str, message: str, **meta: object) -> None:
        """What a save leaves behind; also that of a person in the browser, who leaves no message of ours."""
        there = self.boards.get(board["uid"])
        version = there["dashboard"]["version"] + 1 if there else 1
        number = there["dashboard"]["id"] if there else next(self._ids)
        kept = {name: value for name, value in board.items() if name not in UNSAVED}
        written = {"liveNow": False, "weekStart": "", **kept, "id": number, "version": version}
        versions = [{"id": next(self._ids), "version": version, "message": message, "uid": board["uid"]}]
        title = self.folders.get(folder, {}).get("title", "General")
        self.boards[board["uid"]] = {
            "dashboard": written,
            "meta": {"folderUid": folder, "folderTitle": title, "version": version, **meta},
            "versions": [*versions, *(there["versions"] if there else [])],
        }

    def _versions(self, uid: str, query: dict[str, list[str]]) -> Answer:
        versions = self.boards[uid]["versions"][: int(query["limit"][0])]
        return Answer(
            200, {"continueToken": "", "versions": versions} if self.has_enveloped_versions else versions
        )

    def _remove(self, uid: str, _: object) -> Answer:
        if self.boards.pop(uid, None) is None:
            return said(404, "Dashboard not found")
        if self.has_empty_deletions:
            return Answer(204)
        return Answer(200, {"uid": uid, "title": uid, "message": "Dashboard deleted"})

    def _search(self, query: dict[str, list[str]]) -> Answer:
        hits = [
            {"uid": uid, "type": "dash-db", "folderUid": board["meta"]["folderUid"], "tags": tags}
            for uid, board in self.boards.items()
            if set(query.get("tag", ())) <= set(tags := board["dashboard"].get("tags", []))
            and board["meta"]["folderUid"] in query["folderUIDs"]
        ]
        return Answer(200, hits)

    # Data sources

    def _source(self, uid: str, _: object) -> Answer:
        source = self.sources.get(uid)
        return Answer(200, source) if source else said(404, "Data source not found")

    def _new_source(self, body: dict[str, Any]) -> Answer:
        if body["name"] in {each["name"] for each in self.sources.values()}:
            return said(409, "data source with the same name already exists")
        return self._kept_source(body["uid"], body)

    def _changed_source(self, uid: str, body: dict[str, Any]) -> Answer:
        return self._kept_source(uid, {"secureJsonFields": self.sources[uid]["secureJsonFields"], **body})

    def _kept_source(self, uid: str, body: dict[str, Any]) -> Answer:
        added = {"id": next(self._ids), "orgId": 1, "readOnly": False, "secureJsonFields": {}}
        self.sources[uid] = {**added, **body, "version": body.get("version", 0) + 1}
        named = {"id": self.sources[uid]["id"], "name": body["name"], "message": "Datasource added"}
        return Answer(200, {**named, "datasource": self.sources[uid]})

    # Alert rules

    def _group(self, folder: str, name: str, _: object) -> Answer:
        group = self.groups.get((folder, name))
        return Answer(200, group) if group else said(404, "rule group not found")

    def _new_group(self, folder: str, name: str, body: dict[str, Any]) -> Answer:
        if folder not in self.folders:
            return said(400, "folder does not exist")
        rules = [
            {
                **rule,
                "id": next(self._ids),
                "orgID": 7,
                "provenance": "api",
                "data": list(map(_preset, rule["data"])),
            }
            for rule in body["rules"]
        ]
        self.groups[folder, name] = {**body, "rules": rules}
        return Answer(200, self.groups[folder, name])

    # Annotations

    def _marks(self, query: dict[str, list[str]]) -> Answer:
        begin, end = int(query["from"][0]), int(query["to"][0])
        found = [
            mark
            for mark in self.marks
            if set(query["tags"]) <= set(mark["tags"]) and begin <= mark["time"] <= end
        ]
        return Answer(200, found)

    def _new_mark(self, body: dict[str, Any]) -> Answer:
        self.marks.append({**body, "id": next(self._ids)})
        return Answer(200, {"id": self.marks[-1]["id"], "message": "Annotation added"})


def _preset(query: dict[str, Any]) -> dict[str, Any]:
    """A query of a rule with what Grafana adds to it."""
    return {**query, "model": {"intervalMs": 1000, "maxDataPoints": 43200, **query["model"]}}


_NAME = "([^/]+)"
ROUTES: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
    ("/folders", "POST", FakeGrafana._new_folder),
    (f"/folders/{_NAME}", "GET", FakeGrafana._folder),
    ("/dashboards/db", "POST", FakeGrafana._save),
    (f"/dashboards/uid/{_NAME}", "GET", FakeGrafana._board),
    (f"/dashboards/uid/{_NAME}", "DELETE", FakeGrafana._remove),
    (f"/dashboards/uid/{_NAME}/versions", "GET", FakeGrafana._versions),
    ("/search", "GET", FakeGrafana._search),
    ("/datasources", "POST", FakeGrafana._new_source),
    (f"/datasources/uid/{_NAME}", "GET", FakeGrafana._source),
    (f"/datasources/uid/{_NAME}", "PUT", FakeGrafana._changed_source),
    (f"/v1/provisioning/folder/{_NAME}/rule-groups/{_NAME}", "GET", FakeGrafana._group),
    (f"/v1/provisioning/folder/{_NAME}/rule-groups/{_NAME}", "PUT", FakeGrafana._new_group),
    ("/annotations", "GET", FakeGrafana._marks),
    ("/annotations", "POST", FakeGrafana._new_mark),
)


class _Handler(BaseHTTPRequestHandler):
    grafana: FakeGrafana
    prefix = ""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.grafana.answer(self.command, self.path.removeprefix(self.prefix), headers, body)
        if answer is None:
            self.close_connection = True
            return
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        content = b"" if answer.body is None else content
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - as http.server names them

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(
    grafana: FakeGrafana, *, prefix: str = "", certificate: tuple[Path, Path] | None = None
) -> Iterator[str]:
    """The address at which it answers; over TLS with a certificate and its key."""
    handler = type("Handler", (_Handler,), {"grafana": grafana, "prefix": prefix})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        scheme = "http" if certificate is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_port}{prefix}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
