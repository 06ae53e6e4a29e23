"""Asks the query API of an exporter, with the standard library only. One bounded request a call."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from ett_core.credentials import TokenSource, bearer

TIMEOUT_S = 60.0
ANSWER_BYTES = 256 << 20
START_ONE = "'ett exporter' starts an exporter, --exporter names one"


class AskError(Exception):
    """The exporter gave no usable answer; the message says why in a sentence."""


def getter(
    exporter_url: str, token: TokenSource, timeout_s: float = TIMEOUT_S
) -> Callable[[str, Mapping[str, str]], Any]:
    """A function that asks the exporter for a path with parameters and returns the decoded answer.

    Raises:
        ValueError: the address is none of HTTP.
    """
    parts = urlsplit(exporter_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{exporter_url!r} is no address of an exporter, such as http://127.0.0.1:9410")
    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    kind, host, port = kinds[parts.scheme], parts.hostname, parts.port
    base = parts.path.rstrip("/")

    def get(path: str, parameters: Mapping[str, str]) -> Any:  # noqa: ANN401 - whatever the JSON says
        connection = kind(host, port, timeout=timeout_s)
        try:
            connection.request("GET", f"{base}{path}?{urlencode(parameters)}", headers=bearer(token()))
            answer = connection.getresponse()
            body = answer.read(ANSWER_BYTES)
        except ConnectionRefusedError as error:
            raise AskError(f"nothing answers at {exporter_url}; {START_ONE}") from error
        except (OSError, http.client.HTTPException) as error:
            raise AskError(f"{exporter_url} does not answer: {_reason(error)}") from error
        finally:
            connection.close()
        return _decoded(exporter_url, answer.status, body)

    return get


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _decoded(exporter_url: str, status: int, body: bytes) -> Any:  # noqa: ANN401 - whatever the JSON says
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise AskError(f"{exporter_url} answered with something else than JSON ({status})") from error
    if status != http.client.OK:
        said = decoded.get("error") if isinstance(decoded, dict) else None
        raise AskError(f"{exporter_url} refused: {said or status}")
    return decoded
