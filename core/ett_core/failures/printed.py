r"""What was said in a log, from how it was kept: without colours, records of JSON and of logfmt opened.

Pure, linear. Each line of the log stays one between two line feeds, so that its number holds; where a
terminal or a record breaks what stands between them, a carriage return does.
"""

from __future__ import annotations

import re

import msgspec

RECORD_BYTES = 65_536
"""Of a longer record nothing is opened."""
END_BYTES = 3_000_000
"""Of a longer log the records in this much of either end are opened; the others are read as they are."""
_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,20}[A-Za-z]")
_JSON = re.compile(rb'^\{[ ]?"[^\n]*\}(?=[ \t\r]{0,4}$)', re.MULTILINE)
_LOGFMT = re.compile(rb'^(?:time|ts|level)=[^\n]{1,400}?\bmsg="[^\n]*', re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)")
_FIELD = re.compile(r'(?:^| )(\w{1,40})=(?:"((?:[^"\\]|\\.)*)"|(\S*))')


class _Record(msgspec.Struct):
    """The fields of a record that say something, by the names that they are known under."""

    log: object = None
    message: object = None
    msg: object = None
    text: object = msgspec.field(default=None, name="textPayload")
    time: object = None
    timestamp: object = None
    at: object = msgspec.field(default=None, name="@timestamp")
    ts: object = None
    asctime: object = None
    severity: object = None
    level: object = None
    levelname: object = None
    error: object = None
    err: object = None
    exception: object = None
    exc_info: object = None
    stack: object = None
    stack_trace: object = None
    stacktrace: object = None

    def opened(self) -> bytes:
        """When it was said, that it is a warning where it is, and what; empty where nothing was said."""
        said = self.log or self.message or self.msg or self.text
        if not isinstance(said, str):
            return b""
        when = self.time or self.timestamp or self.at or self.ts or self.asctime
        level = self.severity or self.level or self.levelname
        warned = isinstance(level, str) and level[:4].upper() == "WARN"
        beside = (
            self.error or self.err,
            self.exception or self.exc_info,
            self.stack or self.stack_trace or self.stacktrace,
        )
        text = ": ".join((said.rstrip("\n"), *(each for each in beside if isinstance(each, str) and each)))
        before = f"{when} " if isinstance(when, str) else ""
        return f"{before}{'WARNING ' if warned else ''}{text}".replace("\n", "\r").encode("utf-8", "replace")


_DECODER = msgspec.json.Decoder(_Record)


def as_said(data: bytes) -> bytes:
    r"""The log with what its lines say in the place of how they were kept.

    >>> as_said(b'{"log":"step 3\\n","stream":"stderr","time":"2026-11-29T10:00:00.1Z"}\n')
    b'2026-11-29T10:00:00.1Z step 3\n'
    >>> as_said(b'\x1b[31mlevel=warning\x1b[0m msg="disk \\"a\\" is slow" pod=x\n')
    b'WARNING disk "a" is slow\n'
    >>> as_said(b'{"step": 3, "loss": 2.1}\n')
    b'{"step": 3, "loss": 2.1}\n'
    """
    data = _COLOUR.sub(b"", data) if b"\x1b[" in data else data
    if len(data) <= 2 * END_BYTES:
        return _without_records(data)
    head, tail = data.rfind(b"\n", 0, END_BYTES) + 1, data.find(b"\n", len(data) - END_BYTES) + 1
    if not (head and tail):
        return data
    return _without_records(data[:head]) + data[head:tail] + _without_records(data[tail:])


def _without_records(data: bytes) -> bytes:
    return _LOGFMT.sub(_of_logfmt, _JSON.sub(_of_json, data))


def _of_json(found: re.Match[bytes]) -> bytes:
    line = found[0]
    if len(line) > RECORD_BYTES:
        return line
    try:
        return _DECODER.decode(line).opened() or line
    except (msgspec.DecodeError, RecursionError):
        return line


def _of_logfmt(found: re.Match[bytes]) -> bytes:
    if len(found[0]) > RECORD_BYTES:
        return found[0]
    fields = _FIELD.findall(found[0].decode("utf-8", "replace"))
    plain = {key: _ESCAPED.sub(_unescaped, quoted) if quoted else bare for key, quoted, bare in fields}
    return msgspec.convert(plain, _Record).opened() or found[0]


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1])
