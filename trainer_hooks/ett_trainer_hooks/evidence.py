"""Which lines of a job's output may explain a failure, and what of them may be kept.

Pure functions over text: redaction of secrets, choice of lines, and what torchrun's log says of
a dead rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

TEXT_LIMIT = 8192
TAIL_LINES = 20

_TELLING = re.compile(
    r"Error\b|Exception\b|Traceback|exitcode|[Ss]ignal \d|SIG(?:KILL|TERM|SEGV|ABRT|BUS|ILL)|OOM"
    r"|[Oo]ut of memory|Killed|[Ss]egmentation fault|[Aa]ssert|NCCL WARN|[Tt]imed? ?out|No space left",
)
_SECRETS = (
    (re.compile(r"(?i)\b(authorization\s*[:=]\s*(?:bearer\s+|basic\s+)?)\S+"), r"\1***"),
    (re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"), r"\1***"),
    (
        re.compile(
            r"(?i)\b([\w-]*(?:token|password|passwd|secret|api[_-]?key|access[_-]?key|credential)(?!s\b)[\w-]*"
            r"[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&]+"
        ),
        r"\1***",
    ),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s/@]+@"), r"\1***@"),
    (re.compile(r"\b(?:hf_|ghp_|gho_|github_pat_|sk-|xox[abp]-|AKIA)[A-Za-z0-9_-]{12,}"), "***"),
)
_DEAD_RANK = re.compile(r"exitcode\s*:\s*(-?\d+)\)?.{0,60}?\(pid: (\d+)\)")


def redacted(text: str) -> str:
    """The text without passwords, tokens and keys, at most 8 KiB of UTF-8.

    >>> redacted("wget https://me:hunter2@host/x?token=abc&n=1")
    'wget https://me:***@host/x?token=***&n=1'
    """
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text.encode()[:TEXT_LIMIT].decode("utf-8", "ignore")


def telling_lines(lines: Iterable[str]) -> list[str]:
    """The lines that may explain a failure.

    >>> telling_lines(["step 5 loss 0.3", "RuntimeError: Connection closed by peer"])
    ['RuntimeError: Connection closed by peer']
    """
    return [line for line in lines if _TELLING.search(line)]


def exits_told(lines: Iterable[str]) -> Mapping[int, int]:
    """Exit code by process that torchrun's log tells of; minus a signal where one killed it.

    >>> exits_told(["E1129 api.py] failed (exitcode: -9) local_rank: 1 (pid: 4711) of binary: python"])
    {4711: -9}
    >>> exits_told(["  exitcode  : 1 (pid: 12)"])
    {12: 1}
    """
    found = (_DEAD_RANK.search(line) for line in lines)
    return {int(match[2]): int(match[1]) for match in found if match}
