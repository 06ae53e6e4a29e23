"""Bearer tokens: who may send which jobs, who may read.

Pure but for reading the file. The file holds SHA-256 hashes, never a token: a token is 256
random bits, which no dictionary holds, so that one hash is enough. One line a token:

    NAME SCOPE[,SCOPE] sha256:HEX [jobs=PREFIX] [team=TEAM]

>>> line = "ads-train ingest sha256:" + hash_of("ett_secret") + " jobs=ads/ team=ads"
>>> tokens = parse(line)
>>> tokens.grant_of("Bearer ett_secret").name
'ads-train'
>>> tokens.grant_of("Bearer ett_other") is None
True
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from ett_core.events import AnyEvent, AttemptStart

INGEST, READ, ADMIN = "ingest", "read", "admin"
SCOPES = (INGEST, READ, ADMIN)
"""What a token may be good for; `admin` is good for everything."""
HASH = re.compile(r"sha256:([0-9a-f]{64})")
NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
PREFIX = re.compile(r"[A-Za-z0-9._:/@-]{1,128}")
TOKEN_BYTES = 32

Digest: TypeAlias = bytes


class TokensError(ValueError):
    """A file of tokens cannot be used; the message names the line."""


class Grant(msgspec.Struct, frozen=True):
    """What one token allows. `jobs` is the prefix of the ids of the jobs that it may send."""

    name: str
    scopes: frozenset[str]
    jobs: str = ""
    team: str = ""

    def allows(self, scope: str) -> bool:
        """Whether the token is good for a scope."""
        return scope in self.scopes or ADMIN in self.scopes

    def refusal(self, event: AnyEvent) -> str | None:
        """Why an event may not be sent with this token; None where it may.

        >>> from ett_core.events import Heartbeat
        >>> Grant("t", frozenset({"ingest"}), jobs="ads/").refusal(
        ...     Heartbeat(job_id="web/1", writer="w", seq=0, attempt=0, rank=0, time=1.0))
        "the token 't' is for jobs whose id begins with 'ads/'"
        """
        if not event.job_id.startswith(self.jobs):
            return f"the token {self.name!r} is for jobs whose id begins with {self.jobs!r}"
        if self.team and isinstance(event, AttemptStart) and event.labels.get("team", self.team) != self.team:
            return f"the token {self.name!r} is for jobs of the team {self.team!r}"
        return None


EVERYTHING = Grant("", frozenset(SCOPES))
"""What everybody may where no tokens are set."""


class Tokens:
    """The tokens of one exporter."""

    def __init__(self, grants: Sequence[tuple[Digest, Grant]]) -> None:
        self._grants = grants

    def grant_of(self, authorization: str) -> Grant | None:
        """What an `Authorization` header allows; None where its token is none of ours.

        Takes the same time whichever of the tokens it is, and for one that is unknown.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        presented = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        found = None
        for digest, grant in self._grants:
            if hmac.compare_digest(digest, presented):
                found = grant
        return found


def new_token() -> str:
    """A token that nobody can guess."""
    return f"ett_{secrets.token_urlsafe(TOKEN_BYTES)}"


def hash_of(token: str) -> str:
    """The hexadecimal SHA-256 of a token, as its file holds it."""
    return hashlib.sha256(token.encode()).hexdigest()


def line_of(token: str, grant: Grant) -> str:
    """The line of a token in the file."""
    scopes = ",".join(scope for scope in SCOPES if scope in grant.scopes)
    limits = [f"{name}={value}" for name, value in (("jobs", grant.jobs), ("team", grant.team)) if value]
    return " ".join([grant.name, scopes, f"sha256:{hash_of(token)}", *limits])


def read(path: Path) -> Tokens:
    """The tokens of a file.

    Raises:
        TokensError: it cannot be read, or a line of it is not of the form above.
    """
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise TokensError(f"{path}: {getattr(error, 'strerror', None) or 'that is no text'}") from error


def parse(text: str, source: str = "tokens") -> Tokens:
    """The tokens of the lines of `text`; empty lines and those that begin with # mean nothing.

    Raises:
        TokensError: a line is wrong, or there is none.
    """
    grants: list[tuple[Digest, Grant]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                grants.append(_token(line.split()))
            except ValueError as error:
                raise TokensError(f"{source}:{number}: {error}") from error
    if not grants:
        raise TokensError(f"{source}: no token in it; 'ett exporter token' makes one")
    names = [grant.name for _, grant in grants]
    if twice := [name for name in names if names.count(name) > 1]:
        raise TokensError(f"{source}: two tokens have the name {twice[0]!r}")
    return Tokens(grants)


def add(path: Path, line: str) -> None:
    """Add the line of a token to a file, which is made where it is not there.

    Raises:
        TokensError: the file would not be one of tokens then, or cannot be read or written.
    """
    try:
        with path.open("a+", encoding="utf-8") as file:
            file.seek(0)
            text = file.read()
            separator = "\n" if text and not text.endswith("\n") else ""
            parse(f"{text}{separator}{line}", str(path))
            file.write(f"{separator}{line}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TokensError(f"{path}: {getattr(error, 'strerror', None) or 'that is no text'}") from error


def grant(name: str, scopes: Sequence[str], jobs: str = "", team: str = "") -> Grant:
    """A grant of checked parts.

    Raises:
        ValueError: a part is not of its form; the message says which.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a token (letters, digits and . _ @ -)")
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"{scope!r} is none of the scopes {', '.join(SCOPES)}")
    if (jobs or team) and INGEST not in scopes:
        raise ValueError("jobs= and team= limit what may be sent: they need the scope ingest")
    if jobs and not PREFIX.fullmatch(jobs):
        raise ValueError(f"jobs={jobs!r} begins no id of a job")
    if team and (len(team.split()) > 1 or not team.isprintable()):
        raise ValueError(f"team={team!r} is not one word")
    return Grant(name, frozenset(scopes), jobs, team)


def _token(words: Sequence[str]) -> tuple[Digest, Grant]:
    if len(words) < 3:  # noqa: PLR2004 - name, scopes, hash
        raise ValueError("a line holds NAME SCOPES sha256:HEX and perhaps jobs=PREFIX team=TEAM")
    name, scopes, digest, *limits = words
    found = HASH.fullmatch(digest)
    if not found:
        raise ValueError("the third word is not sha256: and 64 hexadecimal digits")
    given: dict[str, str] = {}
    for limit in limits:
        key, _, value = limit.partition("=")
        if key not in ("jobs", "team") or not value or key in given:
            raise ValueError("after the hash comes nothing but jobs=PREFIX and team=TEAM")
        given[key] = value
    return bytes.fromhex(found[1]), grant(name, scopes.split(","), **given)
