"""The log of the exporter: sentences for people, or one JSON object a line for machines."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable

import msgspec

from ett_exporter.recent import Recent

TEXT_FORMAT = "ett exporter: %(message)s"
SERVER = "uvicorn.error"
"""Who warns of each request that is none: anybody can send thousands a second."""
AGAIN_S = 60.0
SENTENCES = 100


class JsonLines(logging.Formatter):
    """A record as one JSON object: `time` (Unix seconds), `level`, `logger`, `message`, `trace`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line.

        >>> record = logging.LogRecord("ett", logging.WARNING, "", 0, "%s is full", ("disk",), None)
        >>> record.created = 1.5
        >>> JsonLines().format(record)
        '{"time":1.5,"level":"warning","logger":"ett","message":"disk is full"}'
        """
        fields: dict[str, object] = {
            "time": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _sayable(record.getMessage()),
        }
        if record.exc_info:
            fields["trace"] = _sayable("".join(traceback.format_exception(*record.exc_info)))
        return msgspec.json.encode(fields).decode()


class Seldom(logging.Filter):
    """Lets a warning pass once in `AGAIN_S` seconds, and all errors.

    >>> now_s = [0.0]
    >>> seldom = Seldom(lambda: now_s[0])
    >>> said = logging.LogRecord(SERVER, logging.WARNING, "", 0, "no request", None, None)
    >>> seldom.filter(said), seldom.filter(said), now_s.append(now_s.pop() + 61.0), seldom.filter(said)
    (True, False, None, True)
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said_s: Recent[str, float] = Recent(SENTENCES)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        if record.levelno > logging.WARNING:
            return True
        sentence, now_s = record.getMessage(), self._monotonic()
        said_s = self._said_s.get(sentence)
        if said_s is not None and now_s - said_s < AGAIN_S:
            return False
        self._said_s.put(sentence, now_s)
        return True


def _sayable(text: str) -> str:
    """The text with escapes for bytes that are none, as paths may hold them."""
    return text.encode("utf-8", "backslashreplace").decode()


def log_as(kind: str) -> None:
    """Write warnings and errors of this process to standard error, as `text` or `json`."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if kind == "json" else logging.Formatter(TEXT_FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(SERVER).addFilter(Seldom())
