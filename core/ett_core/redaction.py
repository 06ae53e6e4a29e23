"""What of a text may be kept: passwords, tokens and keys are taken out, and it is cut to a bound.

Pure functions. Whatever the hooks keep of a program's words passes here first, and again what an
exporter stores of them: not every sender looks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

TEXT_LIMIT = 8192
"""Bytes of UTF-8 that one text may have."""
MESSAGE_LIMIT = 4000
"""Characters kept of a message, so that no line is longer than an exporter takes."""
LEAST_SECRET = 8
"""Values of the environment that are shorter are no secrets that could be told from other words."""

_NAMES = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|token(?!iz)|secret|credential"
    r"|(?:api|access|account|private|signing|shared|encryption|storage)[ _-]?key|signature|x-auth)"
)
_REST = r"(?!s\b)[\w-]{0,64}"
_IS = r"[\"'\]]{0,3}\s{0,9}(?::=|=>|->|[:=>])\s{0,9}"
_QUOTED = r"(?:[bru]{0,2}\"(?:[^\"\\\n]|\\.){1,4096}\"?|[bru]{0,2}'(?:[^'\\\n]|\\.){1,4096}'?)"
_PLAIN = r"[^\s\"'&;<]+"
_PEM = r"[A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_UNSEEN = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]?|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?|.?)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""What a terminal obeys instead of showing it, and what shows nothing: a secret may hide among it."""

_STEMS = ("pa", "pwd", "token", "ecret", "credent", "key", "gnature", "x-auth")
"""One of these is in every one of `_NAMES`."""
_SECRETS = (
    (
        ("private key",),
        re.compile(rf"(-----BEGIN {_PEM})(?! \*\*\* ).*?(?:-----END {_PEM}|\Z)", re.DOTALL),
        r"\1 *** ",
    ),
    (("private key",), re.compile(rf"[^\n]{{0,200}}\n([^\n]{{0,60}}-----END {_PEM})"), r"***\n\1"),
    ((), re.compile(r"(?m)^((?:\[\w{1,40}\]:?\s?){0,3}[ \t]{0,40})[A-Za-z0-9+/]{60,76}={0,2}$"), r"\1***"),
    (("author",), re.compile(r"(?i)\b(authorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?)[^\n\"']+"), r"\1***"),
    (("cook",), re.compile(r"(?i)\b(cookie[\"']?\s{0,9}[:=]\s{0,9}[\"']?)[^\n\"']+"), r"\1***"),
    (("bearer",), re.compile(r"(?i)\b(bearer\s{1,9})[A-Za-z0-9._~+/=-]{8,}"), r"\1***"),
    (_STEMS, re.compile(rf"(?i)({_NAMES}{_REST}{_IS})(?:{_QUOTED}|{_PLAIN})"), r"\1***"),
    (("pa",), re.compile(rf"(?i)((?<![a-z])pass=)(?:{_QUOTED}|{_PLAIN})"), r"\1***"),
    (("=",), re.compile(r"(?i)([?&](?:sig|auth|key|code|awsaccesskeyid)=)[^\s\"'&]+"), r"\1***"),
    (
        ("key",),
        re.compile(rf"(?i)([_-]key{_IS}[\"']?)(?=[^\s\"']{{0,64}}\d)[^\s\"'&;<,]{{16,}}"),
        r"\1***",
    ),
    (
        ("--",),
        re.compile(rf"(?i)(--[\w-]{{0,40}}{_NAMES}{_REST}\s{{1,9}})(?:{_QUOTED}|[^\s-]\S*)"),
        r"\1***",
    ),
    (("word",), re.compile(r"(?i)\b(password\s{1,9})(?=\S{0,64}\d)\S{6,}"), r"\1***"),
    (
        ("token", "ecret", "key"),
        re.compile(
            r"(?i)((?:token|secret|(?:api|access)[ _-]?key)\s{1,9})"
            r"(?=[A-Za-z_+/=-]{0,64}\d)[A-Za-z0-9_+/=-]{16,}"
        ),
        r"\1***",
    ),
    (("-u",), re.compile(r"(\s(?:-u|--user)\s{1,9}[\"']?[^\s:\"']{1,256}:)[^\s\"']+"), r"\1***"),
    (("mysql",), re.compile(r"(\bmysql\w{0,20}\s(?:[^\n]{0,99}\s)?-p)\S+"), r"\1***"),
    (("://",), re.compile(r"(://[^\s:/?#@\"'<>]{0,256}:)[^\s/?#\"'<>]{1,1024}@"), r"\1***@"),
    (
        ("://",),
        re.compile(r"(://[^\s:/?#@\"'<>]{0,256}:)(?!\d{1,5}[/?#])[^\s?#@\"'<>]{1,1024}@"),
        r"\1***@",
    ),
    (("://",), re.compile(r"(://)[^\s:/?#@\"'<>]{12,1024}@"), r"\1***@"),
    (
        (".com/",),
        re.compile(
            r"(?i)(hooks\.slack\.com/\w{1,40}/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/)[^\s\"']+"
        ),
        r"\1***",
    ),
    (
        (),
        re.compile(
            r"\b(?:hf_|gh[a-z]_|github_pat_|gl[a-z]{2,6}-|[srp]k[-_]|whsec_|xox[a-z][-.]|xapp-|AKIA|ASIA|AIza"
            r"|ya29\.|GOCSPX-|npm_|pypi-|do[op]_v1_|SG\.|hvs\.|dckr_pat_|nvapi-|dapi|gsk_|AGE-SECRET-KEY-)"
            r"[A-Za-z0-9_.-]{12,}"
        ),
        "***",
    ),
    (("eyj",), re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?"), "***"),
)
"""What a text must hold one of for the pattern to be looked for (always where nothing stands), and the
pattern with what stands instead. The former have no `i` and no `s` where the pattern looks past case: other
letters count as those there.

Every repetition is bounded or cannot begin twice in one place, so that hostile text takes linear time."""
_SECRET_VARIABLE = re.compile(rf"(?i){_NAMES}{_REST}$|(?:^|[_-])(?:key|pass|auth|pat)$")
_PLAIN_VALUE = re.compile(r"[./~]|\d+$|(?i:true|false|none)$")
"""Values that are no secret whatever their name: a path, a number, a switch."""


def redacted(text: str) -> str:
    """The text without passwords, tokens and keys, at most 8 KiB of UTF-8.

    >>> redacted("wget https://me:hunter2@host/x?token=abc&n=1")
    'wget https://me:***@host/x?token=***&n=1'
    """
    return without_secrets(text).encode()[:TEXT_LIMIT].decode("utf-8", "ignore")


def redacted_parts(text: str) -> list[str]:
    r"""The text without passwords, tokens and keys, in parts of whole lines that are at most 8 KiB each.

    Secrets are taken out before the text is parted, so none hides across two parts.

    >>> [len(part) for part in redacted_parts("x" * 99 + "\n" + "y" * 8190)]
    [99, 8190]
    """
    parts: list[list[str]] = []
    room = 0
    for line in without_secrets(text).split("\n"):
        piece = line.encode()[:TEXT_LIMIT].decode("utf-8", "ignore")
        size = len(piece.encode()) + 1
        if size > room:
            parts.append([])
            room = TEXT_LIMIT + 1
        parts[-1].append(piece)
        room -= size
    return ["\n".join(part) for part in parts]


def without_secrets(text: str, environ: Mapping[str, str] = os.environ) -> str:
    r"""The text without passwords, tokens and keys, however long, and without what a terminal would obey.

    Secrets are known by their form, and by their value where a variable of the environment holds them.

    >>> without_secrets("login of \x1b[31mme\x1b[0m with opensesame9", {"DB_PASSWORD": "opensesame9"})
    'login of me with ***'
    """
    text = visible(text)
    for secret in secrets_in(environ):
        text = text.replace(secret, "***")
    folded = text.casefold()
    for stems, pattern, instead in _SECRETS:
        if not stems or any(stem in folded for stem in stems):
            text = pattern.sub(instead, text)
    return text


def visible(text: str) -> str:
    r"""The text without what a terminal would obey and what shows nothing.

    >>> visible("\x1b[31mred\x1b[0m")
    'red'
    """
    return _UNSEEN.sub("", text)


def secrets_in(environ: Mapping[str, str]) -> Iterable[str]:
    """Values of variables whose names speak of secrets, the longest first.

    >>> secrets_in({"WANDB_API_KEY": "0123456789abcdef", "SSH_AUTH_SOCK": "/tmp/s", "MAX_TOKENS": "10000000"})
    ['0123456789abcdef']
    """
    found = {
        value
        for name, value in environ.items()
        if len(value) >= LEAST_SECRET and _SECRET_VARIABLE.search(name) and not _PLAIN_VALUE.match(value)
    }
    return sorted(found, key=len, reverse=True)
