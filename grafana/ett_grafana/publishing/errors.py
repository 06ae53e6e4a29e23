"""What can go wrong while publishing, in sentences for whoever has to mend it. No token is in any."""

from __future__ import annotations

import json
from http import HTTPStatus

import requests

SHOWN = 300
_MEANING = {
    400: "does not take it",
    401: "does not know the token: make a service account in Grafana (Administration, Service accounts) with "
    "the role Editor, and put its token into ETT_GRAFANA_TOKEN or the file of --token-file",
    403: "does not let this token do it: its service account needs the role Editor, for data sources Admin, "
    "and permission for the folder",
    404: "has nothing there: is it the address of Grafana, with its sub-path, and is the folder still there?",
    409: "has another one of this name or uid already",
    412: "had it changed by somebody else at the same moment: run it again to see what is there now",
    422: "does not take it",
    429: "asks for fewer requests: try again in a minute",
}
_NEVER_ARRIVES = ("Connection refused", "Name or service not known", "No route to host")
_FAILING = "fails: try again later, and look into its log"


class PublishError(Exception):
    """Grafana did not do what was asked; the message says in a sentence why."""


class RefusedError(PublishError):
    """Grafana answered with a status that is an error."""

    def __init__(self, message: str, status: int) -> None:
        """`status` is that of HTTP."""
        super().__init__(message)
        self.status = status


class UnreachableError(PublishError):
    """Grafana gave no answer."""

    def __init__(self, message: str, *, may_have_arrived: bool = False) -> None:
        """`may_have_arrived`: whether Grafana may have done what was asked all the same."""
        super().__init__(message)
        self.may_have_arrived = may_have_arrived

    @classmethod
    def of(cls, url: str, error: Exception | None) -> UnreachableError:
        """What a failed request means."""
        if isinstance(error, requests.exceptions.SSLError):
            return cls(
                f"the certificate of {url} is not trusted here: name the file of its authority by --ca-file"
            )
        if isinstance(error, requests.Timeout):
            late = not isinstance(error, requests.ConnectTimeout)
            message = f"{url} does not answer in time: is it up, and can it be reached from here?"
            return cls(message, may_have_arrived=late)
        if isinstance(error, requests.ConnectionError):
            reason = _reason(error)
            return cls(f"{url} cannot be reached: {reason}", may_have_arrived=reason not in _NEVER_ARRIVES)
        return cls(f"{url} cannot be asked: {type(error).__name__}")


def refused(url: str, method: str, path: str, status: int, text: str) -> RefusedError:
    """What a status means for whoever asked.

    >>> print(refused("https://g.example", "POST", "/folders", 409, '{"message": "name exists"}'))
    https://g.example has another one of this name or uid already (POST /api/folders: 409, name exists)
    """
    meaning = _MEANING.get(status, _FAILING if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "refuses it")
    path = path.partition("?")[0]
    return RefusedError(f"{url} {meaning} ({method} /api{path}: {status}{_said(text)})", status)


def _said(text: str) -> str:
    try:
        decoded = json.loads(text)
    except ValueError:
        return ""
    message = decoded.get("message") if isinstance(decoded, dict) else None
    return f", {message[:SHOWN]}" if isinstance(message, str) and message else ""


def _reason(error: BaseException) -> str:
    """The innermost cause in words: `Connection refused`, `Name or service not known`."""
    inner: object = error
    while isinstance(inner, BaseException):
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = getattr(inner, "reason", None) or inner.__context__ or next(iter(inner.args), None)
    return "no connection"
