"""What of a text may be kept: passwords, tokens and keys are taken out, and it is cut to a bound.

Pure functions. Whatever the hooks keep of a program's words passes here first.
"""

from __future__ import annotations

import re

TEXT_LIMIT = 8192
"""Bytes of UTF-8 that one text may have."""

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
