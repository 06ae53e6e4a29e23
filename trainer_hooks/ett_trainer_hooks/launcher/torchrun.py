"""What torchrun leaves behind of a failed rank: its error files, its log, its event log.

Pure functions of text, and one reader of a file. torchrun gives each rank a file for its error
(TORCHELASTIC_ERROR_FILE) that programs under `@record` write; a rank that is killed leaves none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
FILE_LIMIT = 1 << 20
_EVENT_MARK = '"torchelastic.'
_FIRST_FAILED = re.compile(r"failed \(exitcode: (-?\d{1,9})\) local_rank: (\d{1,9}) \(pid: (\d{1,9})\)")
_DEAD_RANK = re.compile(r"exitcode\s{0,9}:\s{0,9}(-?\d+)\)?.{0,60}?\(pid: (\d+)\)")


class WorkerError(msgspec.Struct, frozen=True):
    """The error that a process wrote before it ended, at Unix seconds `at`, to the second."""

    exception: str
    message: str
    traceback: str = ""
    at: float | None = None


class WorkerExit(NamedTuple):
    """A worker that torchrun's log calls failed; `status` is minus the signal where one ended it."""

    local_rank: int
    pid: int
    status: int


class AgentEvent(msgspec.Struct, frozen=True):
    """What torchrun's event log says of a worker; `exit_code` is minus the signal that ended it."""

    state: str
    rank: int | None
    pid: int | None
    exit_code: int | None = None
    error: str = ""


def read_error(path: Path) -> WorkerError | None:
    """The error in the file of a rank; None where there is none that can be understood."""
    try:
        with path.open("rb") as file:
            return worker_error(file.read(FILE_LIMIT))
    except OSError:
        return None


def worker_error(data: bytes) -> WorkerError | None:
    r"""The error in the text of an error file.

    >>> worker_error(b'{"message": {"message": "ValueError: bad", "extraInfo": '
    ...              b'{"py_callstack": "Traceback ...", "timestamp": "1764000000"}}}')
    WorkerError(exception='ValueError', message='bad', traceback='Traceback ...', at=1764000000.0)
    >>> worker_error(b'{"message": "it broke", "timestamp": 1764000000}').message
    'it broke'
    >>> worker_error(b'{"mess')
    """
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    told = content.get("message") if isinstance(content, dict) else None
    if isinstance(told, str):
        return WorkerError("", told, at=_seconds(content.get("timestamp")))
    if not isinstance(told, dict):
        return None
    extra = told.get("extraInfo")
    details: Mapping[str, Any] = extra if isinstance(extra, dict) else {}
    exception, message = parted(str(told.get("message", "")))
    traceback = str(details.get("py_callstack", "")).rstrip("\n")
    return WorkerError(exception, message, traceback, _seconds(details.get("timestamp")))


def parted(text: str) -> tuple[str, str]:
    """The name and the words of an exception that stand together.

    >>> parted("torch.OutOfMemoryError: CUDA out of memory"), parted("no name: here")
    (('torch.OutOfMemoryError', 'CUDA out of memory'), ('', 'no name: here'))
    """
    name, colon, rest = text.partition(":")
    if colon and all(part.isidentifier() for part in name.split(".")):
        return name, rest.strip()
    return "", text


def error_in_words(who: str, error: WorkerError) -> str:
    """The error of a process as evidence: its traceback, which ends in the exception, else its words."""
    told = error.traceback or ": ".join(part for part in (error.exception, error.message) if part)
    return f"{who} wrote to its error file:\n{told}"


def agent_event(line: str) -> AgentEvent | None:
    r"""What a line of torchrun's event log says (`--event-log-handler console`); None for other lines.

    >>> agent_event('{"name": "torchelastic.worker.status.FAILED", "source": "WORKER", "metadata": '
    ...             '{"global_rank": 1, "worker_id": "4711", "raw_error": "it broke", '
    ...             '"metadata": "{\\"exit_code\\": [-9]}"}}')
    AgentEvent(state='FAILED', rank=1, pid=4711, exit_code=-9, error='it broke')
    >>> agent_event("step 10")
    """
    if _EVENT_MARK not in line:
        return None
    try:
        content = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    name = content.get("name") if isinstance(content, dict) else None
    details = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(name, str) or ".status." not in name or not isinstance(details, dict):
        return None
    raw = details.get("raw_error")
    return AgentEvent(
        state=name.rpartition(".")[2],
        rank=_whole(details.get("global_rank")),
        pid=_whole(details.get("worker_id")),
        exit_code=_exit_code(details.get("metadata")),
        error=_words_of(raw) if isinstance(raw, str) else "",
    )


def exits_told(lines: Iterable[str]) -> Mapping[int, int]:
    """Exit code by process that torchrun's log tells of; minus a signal where one killed it.

    >>> exits_told(["E1129 api.py] failed (exitcode: -9) local_rank: 1 (pid: 4711) of binary: python"])
    {4711: -9}
    >>> exits_told(["  exitcode  : 1 (pid: 12)"])
    {12: 1}
    """
    found = (_DEAD_RANK.search(line) for line in lines)
    return {int(match[2]): int(match[1]) for match in found if match}


def first_failed(lines: Iterable[str]) -> list[WorkerExit]:
    """The workers that torchrun's log calls the first to fail, one for each start of its workers.

    >>> first_failed(["E1129 api.py] failed (exitcode: -9) local_rank: 1 (pid: 4711) of binary: python"])
    [WorkerExit(local_rank=1, pid=4711, status=-9)]
    """
    found = (_FIRST_FAILED.search(line) for line in lines)
    return [WorkerExit(int(match[2]), int(match[3]), int(match[1])) for match in found if match]


def _words_of(raw_error: str) -> str:
    """The words of an error, which torchrun gives as it stands or as the content of an error file."""
    error = worker_error(raw_error.encode())
    if error is None:
        return raw_error
    words = ": ".join(part for part in (error.exception, error.message) if part)
    return "" if words == "<NONE>" else words


def _exit_code(metadata: object) -> int | None:
    """The exit code in the metadata of an event, which is JSON once more: a list of one."""
    try:
        content = msgspec.json.decode(str(metadata))
    except (msgspec.DecodeError, RecursionError):
        return None
    codes = content.get("exit_code") if isinstance(content, dict) else None
    return codes[0] if isinstance(codes, list) and codes and isinstance(codes[0], int) else None


def _whole(value: object) -> int | None:
    """A number of zero or more, as it stands or in digits."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004 - pids are shorter


def _seconds(value: object) -> float | None:
    try:
        moment = float(str(value))
    except ValueError:
        return None
    return moment if 0 < moment < 4e9 else None  # noqa: PLR2004 - the range of UnixSeconds
