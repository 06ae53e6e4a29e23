"""Which lines of a job's output may explain a failure, and what of them may be kept.

Pure functions over text: redaction of secrets, choice of lines, and what torchrun's log says of
a dead rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

TEXT_LIMIT = 8192

_TELLING = re.compile(
    r"Error\b|Exception\b|Traceback|exitcode|[Ss]ignal \d|SIG(?:KILL|TERM|SEGV|ABRT|BUS|ILL)|OOM"
    r"|[Oo]ut of memory|Killed|[Ss]egmentation fault|[Aa]ssert|NCCL WARN|[Tt]imed? ?out|No space left",
)
_SECRETS = (
    (re.compile(r"(?i)\b(authorization\s{0,9}[:=]\s{0,9}(?:bearer\s{1,9}|basic\s{1,9})?)\S+"), r"\1***"),
    (re.compile(r"(?i)\b(bearer\s{1,9})[A-Za-z0-9._~+/=-]{8,}"), r"\1***"),
    (
        re.compile(
            r"(?i)((?:token|password|passwd|secret|(?:api|access|account|private)[_-]?key|credential)(?!s\b)"
            r"[\w-]{0,64}[\"']?\s{0,9}[:=]\s{0,9}[\"']?)[^\s\"',;&]+"
        ),
        r"\1***",
    ),
    (re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s:/@]{0,256}:)[^\s/@]{1,1024}@"), r"\1***@"),
    (
        re.compile(
            r"\b(?:hf_|ghp_|gho_|ghs_|github_pat_|glpat-|sk-|xox[abp]-|AKIA|ASIA|AIza)[A-Za-z0-9_-]{12,}"
        ),
        "***",
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?"), "***"),
    (re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[A-Za-z0-9+/=\s]*"), r"\1 *** "),
)
"""Every repetition is bounded or cannot begin twice in one place, so that hostile text takes linear time."""
_FIRST_FAILED = re.compile(r"failed \(exitcode: (-?\d{1,9})\) local_rank: (\d{1,9}) \(pid: (\d{1,9})\)")
_DEAD_RANK = re.compile(r"exitcode\s{0,9}:\s{0,9}(-?\d+)\)?.{0,60}?\(pid: (\d+)\)")


class WorkerExit(NamedTuple):
    """A worker that torchrun's log calls failed; `status` is minus the signal where one ended it."""

    local_rank: int
    pid: int
    status: int


def redacted(text: str) -> str:
    """The text without passwords, tokens and keys, at most 8 KiB of UTF-8.

    >>> redacted("wget https://me:hunter2@host/x?token=abc&n=1")
    'wget https://me:***@host/x?token=***&n=1'
    """
    return _without_secrets(text).encode()[:TEXT_LIMIT].decode("utf-8", "ignore")


def redacted_parts(text: str) -> list[str]:
    r"""The text without passwords, tokens and keys, in parts of whole lines that are at most 8 KiB each.

    Secrets are taken out before the text is parted, so none hides across two parts.

    >>> [len(part) for part in redacted_parts("x" * 99 + "\n" + "y" * 8190)]
    [99, 8190]
    """
    parts: list[list[str]] = []
    room = 0
    for line in _without_secrets(text).split("\n"):
        piece = line.encode()[:TEXT_LIMIT].decode("utf-8", "ignore")
        size = len(piece.encode()) + 1
        if size > room:
            parts.append([])
            room = TEXT_LIMIT + 1
        parts[-1].append(piece)
        room -= size
    return ["\n".join(part) for part in parts]


def _without_secrets(text: str) -> str:
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def is_telling(line: str) -> bool:
    """The line may explain a failure."""
    return _TELLING.search(line) is not None


def telling_lines(lines: Iterable[str]) -> list[str]:
    """The lines that may explain a failure.

    >>> telling_lines(["step 5 loss 0.3", "RuntimeError: Connection closed by peer"])
    ['RuntimeError: Connection closed by peer']
    """
    return [line for line in lines if is_telling(line)]


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
