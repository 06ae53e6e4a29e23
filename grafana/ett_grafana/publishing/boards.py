"""Boards: saved under what they hold, so that the last save tells whether somebody edited them since.

Grafana may write a board back in its own form; comparing it would find a difference each time. So
each save of ours carries the fingerprint of the board in its message:

    last message                      means
    ett grafana push 3f1a... (same)   nothing to do
    ett grafana push 77b0... (other)  ours, an older one: save the new one
    anything else                     edited by hand: only with --force
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ett_core.boards import BOARD_TAG, board_uid
from ett_grafana.managed import FOLDER_TITLE, FOLDER_UID
from ett_grafana.publishing.connection import Grafana
from ett_grafana.publishing.steps import (
    CHANGE,
    CREATE,
    DELETE,
    KEEP,
    REFUSE,
    Step,
    differences,
    wanted_part,
)

MESSAGE = "ett grafana push"
FOUND_AT_MOST = 1000
_EDITED = "somebody saved it since the last push; --force overwrites it"


def folder_step(grafana: Grafana) -> Step:
    """The folder of the boards and rules; how somebody calls it is left to them."""
    thing = f"folder {FOLDER_UID}"
    if grafana.find(f"/folders/{FOLDER_UID}") is not None:
        return Step(kind=KEEP, thing=thing)
    body = {"uid": FOLDER_UID, "title": FOLDER_TITLE}
    return Step(kind=CREATE, thing=thing, take=lambda: grafana.create("/folders", body))


def board_steps(grafana: Grafana, boards: Sequence[Mapping[str, Any]], *, force: bool) -> Iterator[Step]:
    """What to do to each board, and to those of ours that there are no more."""
    for board in boards:
        yield _step(grafana, board, force=force)
    yield from _pruned(grafana, {board["uid"] for board in boards}, force=force)


def message_of(board: Mapping[str, Any]) -> str:
    """What a save of a board is called.

    >>> message_of({"uid": "x"})
    'ett grafana push 23199e718d9c3d61'
    """
    text = json.dumps(board, sort_keys=True).encode()
    return f"{MESSAGE} {hashlib.sha256(text).hexdigest()[:16]}"


def _step(grafana: Grafana, board: Mapping[str, Any], *, force: bool) -> Step:
    thing = f"board {board['uid']}"
    there = grafana.find(_path(board["uid"]))
    if there is None:
        return Step(kind=CREATE, thing=thing, take=lambda: _save(grafana, board, {}, force=False))
    meta, current = there.get("meta", {}), there["dashboard"]
    if meta.get("provisioned"):
        return Step(kind=REFUSE, thing=thing, why="Grafana reads it from a file; change that file instead")
    last = _last_message(grafana, board["uid"])
    moved = meta.get("folderUid", "") != FOLDER_UID
    if last == message_of(board) and not moved:
        return Step(kind=KEEP, thing=thing)
    changed = differences(wanted_part(current, board), board)
    if not last.startswith(MESSAGE) and not force:
        return Step(kind=REFUSE, thing=thing, why=_EDITED, differences=changed)
    return Step(
        kind=CHANGE,
        thing=thing,
        why=f"moved here from folder {meta.get('folderTitle') or 'General'}" if moved else "",
        differences=changed,
        take=lambda: _save(grafana, board, current, force=force),
    )


def _save(grafana: Grafana, board: Mapping[str, Any], current: Mapping[str, Any], *, force: bool) -> None:
    known = {name: current[name] for name in ("id", "version") if name in current}
    body = {
        "dashboard": {**board, **known},
        "folderUid": FOLDER_UID,
        "message": message_of(board),
        "overwrite": force,
    }
    grafana.create("/dashboards/db", body)


def _pruned(grafana: Grafana, wanted: set[str], *, force: bool) -> Iterator[Step]:
    """Boards in our folder, with our tag and a uid of ours, that nobody makes any more."""
    query = f"/search?type=dash-db&tag={BOARD_TAG}&folderUIDs={FOLDER_UID}&limit={FOUND_AT_MOST}"
    for hit in grafana.get(query):
        uid = hit["uid"]
        if uid in wanted or not uid.startswith(board_uid("")) or hit.get("folderUid") != FOLDER_UID:
            continue
        yield _deletion(grafana, uid, is_ours=force or _last_message(grafana, uid).startswith(MESSAGE))


def _deletion(grafana: Grafana, uid: str, *, is_ours: bool) -> Step:
    thing, why = f"board {uid}", "it is made no more"
    if not is_ours:
        return Step(kind=REFUSE, thing=thing, why=f"{why}, but {_EDITED}")
    return Step(kind=DELETE, thing=thing, why=why, take=lambda: grafana.delete(_path(uid)))


def _last_message(grafana: Grafana, uid: str) -> str:
    found = grafana.get(f"{_path(uid)}/versions?limit=1")
    versions = found.get("versions", []) if isinstance(found, dict) else found or []
    return str(max(versions, key=lambda each: each["version"]).get("message", "")) if versions else ""


def _path(uid: str) -> str:
    return f"/dashboards/uid/{quote(uid, safe='')}"
