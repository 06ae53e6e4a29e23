"""Which format and encoding a scraper asked for, and how long it waits: pure.

Formats and encodings are those of RFC 9110, sections 12.4 and 12.5.

Whoever asks in a way that is not understood gets plain text, not an error: a scrape that
fails tells less than one in the oldest format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LONGEST_PATIENCE_S = 86_400.0
_TEXT_VERSIONS = ("", "0.0.4")
_OPENMETRICS_VERSIONS = ("", "0.0.1", "1.0.0")


class Range(msgspec.Struct, frozen=True):
    """One element of an Accept header: what, how much wanted (0 to 1), with which parameters."""

    name: str
    quality: float
    parameters: dict[str, str]


def content_type(accept: str) -> str:
    """The content type that suits an Accept header best; on a tie the more telling one.

    >>> content_type("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
    'application/openmetrics-text; version=1.0.0; charset=utf-8'
    >>> content_type("application/openmetrics-text;q=0.2,text/plain;q=0.5") == TEXT == content_type("")
    True
    """
    text, openmetrics = 0.0, 0.0
    for wanted in _ranges(accept):
        version = wanted.parameters.get("version", "")
        if wanted.name == "application/openmetrics-text" and version in _OPENMETRICS_VERSIONS:
            openmetrics = max(openmetrics, wanted.quality)
        elif wanted.name in ("text/plain", "text/*", "*/*") and version in _TEXT_VERSIONS:
            text = max(text, wanted.quality)
    return OPENMETRICS if openmetrics > 0 and openmetrics >= text else TEXT


def wants_gzip(accept_encoding: str) -> bool:
    """Whether gzip is welcome, and no less so than sending the bytes as they are.

    >>> wants_gzip("gzip"), wants_gzip("gzip;q=0"), wants_gzip("identity;q=0, *"), wants_gzip("")
    (True, False, True, False)
    """
    qualities = {wanted.name: wanted.quality for wanted in _ranges(accept_encoding)}
    gzip = qualities.get("gzip", qualities.get("x-gzip", qualities.get("*", 0.0)))
    return gzip > 0 and gzip >= qualities.get("identity", 0.0)


def _ranges(header: str) -> Iterator[Range]:
    for element in header.split(","):
        name, *rest = (part.strip() for part in element.split(";"))
        if not name:
            continue
        parameters = {}
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"')
        yield Range(name.lower(), _quality(parameters.pop("q", "1")), parameters)


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0.0 <= quality <= 1.0 else 0.0


def patience_s(timeout: str) -> float:
    """Seconds that a scraper waits, by `X-Prometheus-Scrape-Timeout-Seconds`; infinite where it does not say.

    So is more than a day, which no clock of a lock may be able to hold.

    >>> patience_s("10.000000"), patience_s(""), patience_s("-1"), patience_s("nan"), patience_s("soon")
    (10.0, inf, inf, inf, inf)
    >>> patience_s("1e308")
    inf
    """
    try:
        seconds = float(timeout)
    except ValueError:
        return math.inf
    return seconds if 0 < seconds < LONGEST_PATIENCE_S else math.inf
