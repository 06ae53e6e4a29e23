"""The token with which a service is asked, an exporter or another: from a file, or from the environment.

A file is read anew for each request, so that a token can be replaced under a running program. The
token is in no message and no representation of anything here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from ett_core.reasons import reason_of

TOKEN_VARIABLE = "ETT_EXPORTER_TOKEN"  # noqa: S105 - a name
TOKEN_FILE_VARIABLE = "ETT_EXPORTER_TOKEN_FILE"  # noqa: S105 - a name

TokenSource: TypeAlias = Callable[[], str]
"""Gives the token, empty where none is set; raises OSError where its file cannot be read."""


def token_source(
    file: Path | None = None, environ: Mapping[str, str] = os.environ, variable: str = TOKEN_VARIABLE
) -> TokenSource:
    """The token of `file`, else that of the environment, else none.

    The environment names a file in `<variable>_FILE`, or holds the token in `variable`.

    Raises:
        ValueError: the file cannot be read now, or what is set is no token.

    >>> token_source(environ={"ETT_EXPORTER_TOKEN": "ett_x"})(), token_source(environ={})()
    ('ett_x', '')
    """
    in_file = environ.get(f"{variable}_FILE")
    named = file or (Path(in_file) if in_file else None)
    if named is None:
        token = environ.get(variable, "").strip()
        if not is_sendable(token):
            raise ValueError(f"{variable} holds characters that no token has")
        return lambda: token
    path = named
    try:
        _read(path)
    except OSError as error:
        raise ValueError(f"token file {path}: {reason_of(error)}") from error
    return lambda: _read(path)


def bearer(token: str) -> dict[str, str]:
    """The header of a request with a token; none without.

    >>> bearer("ett_x"), bearer("")
    ({'Authorization': 'Bearer ett_x'}, {})
    """
    return {"Authorization": f"Bearer {token}"} if token else {}


def is_sendable(token: str) -> bool:
    r"""Whether a token can stand in a header.

    >>> is_sendable("ett_x"), is_sendable("a b"), is_sendable("x\r\nHost: y")
    (True, False, False)
    """
    return all("!" <= character <= "~" for character in token)


def _read(path: Path) -> str:
    token = path.read_text(encoding="utf-8", errors="replace").strip()
    if not token or not is_sendable(token):
        raise OSError(0, "it holds no token", str(path))
    return token
