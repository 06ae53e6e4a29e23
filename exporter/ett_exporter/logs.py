"""The log of the exporter: sentences for people, or one JSON object a line for machines."""

from __future__ import annotations

import logging
import traceback

import msgspec

TEXT_FORMAT = "ett exporter: %(message)s"


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


def _sayable(text: str) -> str:
    """The text with escapes for bytes that are none, as paths may hold them."""
    return text.encode("utf-8", "backslashreplace").decode()


def log_as(kind: str) -> None:
    """Write warnings and errors of this process to standard error, as `text` or `json`."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if kind == "json" else logging.Formatter(TEXT_FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
