r"""Tolerant decoding of lines: what is good becomes events, what is bad becomes a report.

Pure functions over bytes that the caller has read; no I/O. A bad line never stops the rest: it
is reported with its source, its number (from 1) and the reason. Blank lines mean nothing. A
process that is killed may leave its last line without an end: if that line is no whole event
it is reported as torn. A text that is one JSON array of events is understood as well.

>>> whole = (b'{"v":1,"job_id":"j","writer":"w","seq":0,"attempt":0,"rank":0,"time":1.0,'
...          b'"kind":"heartbeat"}')
>>> decoded = decode_text(whole + b"\n\n{}\n" + whole[:20], "w.jsonl")
>>> len(decoded.events)
1
>>> for bad in decoded.bad:
...     print(bad)
w.jsonl:3: Object missing required field `kind`
w.jsonl:4: torn: the text ends inside this line (Input data was truncated)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ett_core.events import JOB_ID_PATTERN, PROTOCOL_VERSION, AnyEvent, decode

LONGEST_LINE_BYTES = 16 << 20
"""A longer line in a text that comes in pieces is no event, and takes no memory."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_Undecodable = (ValueError, RecursionError)
_decode_unchecked = msgspec.json.Decoder(AnyEvent).decode


class BadLine(msgspec.Struct, frozen=True, gc=False):
    """A line that is no event; `line` counts from 1 in `source`."""

    source: str
    line: int
    reason: str

    def __str__(self) -> str:
        """The report as editors and compilers write it: source, line, reason."""
        return f"{self.source}:{self.line}: {self.reason}"


class Decoded(msgspec.Struct, frozen=True):
    """What some lines held: their events in order, and a report for each bad line."""

    events: Sequence[AnyEvent]
    bad: Sequence[BadLine]


def decode_lines(lines: Iterable[bytes], source: str, first_line: int = 1) -> Decoded:
    """The events on `lines`, which may carry their line ends; the first is number `first_line`."""
    held = list(lines)
    events = decode_all(held)
    if events is not None:
        return Decoded(events, ())
    return _sort_out(((number, line) for number, line in enumerate(held, first_line) if line.strip()), source)


def decode_all(lines: Iterable[bytes]) -> list[AnyEvent] | None:
    """The events on lines that are all good, as is usual, at once; None where one is not.

    Empty lines mean nothing.
    """
    try:
        events: list[AnyEvent] = list(map(_decode_unchecked, filter(None, lines)))
    except _Undecodable:
        return None
    return events if all(map(_known, {(event.v, event.job_id) for event in events})) else None


def decode_text(text: bytes, source: str) -> Decoded:
    """The events of a whole text: one a line, or one JSON array of them."""
    parts = list(decode_chunks([text], source))
    return Decoded([e for part in parts for e in part.events], [b for part in parts for b in part.bad])


def decode_chunks(chunks: Iterable[bytes], source: str) -> Iterator[Decoded]:
    """The events of a text that comes in pieces of any size, as one result a piece.

    Pieces of some hundred kilobytes are decoded fastest. A text that begins with `[` is collected
    whole before it is decoded.
    """
    pieces = iter(chunks)
    head = _first_words(pieces)
    if head.lstrip().startswith(b"["):
        yield _decode_array(b"".join([head, *pieces]), source)
        return
    line = 1
    begun = _Begun()
    for piece in _chain(head, pieces):
        whole, newline, rest = piece.rpartition(b"\n")
        if newline and begun.is_too_long:
            yield Decoded((), [begun.refused(source, line)])
            line += 1
            _, newline, whole = whole.partition(b"\n")
            begun = _Begun()
        if newline:
            lines = begun.with_end(whole).split(b"\n")
            yield decode_lines(lines, source, line)
            line += len(lines)
            begun = _Begun()
        begun.go_on(rest)
    if begun.is_too_long:
        yield Decoded((), [begun.refused(source, line)])
    elif (rest := begun.with_end(b"")).strip():
        yield _decode_last(rest, source, line)


class _Begun:
    """A line that has no end yet; of one that is too long nothing is kept."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_too_long(self) -> bool:
        return self._size > LONGEST_LINE_BYTES

    def go_on(self, part: bytes) -> None:
        self._size += len(part)
        if self.is_too_long:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def with_end(self, end: bytes) -> bytes:
        return b"".join([*self._parts, end])

    @staticmethod
    def refused(source: str, line: int) -> BadLine:
        return BadLine(source, line, f"longer than {LONGEST_LINE_BYTES} bytes")


def _first_words(pieces: Iterator[bytes]) -> bytes:
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= len(_BYTE_ORDER_MARK) and head.strip():
            break
    return head.removeprefix(_BYTE_ORDER_MARK)


def _chain(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from pieces


def _sort_out(numbered: Iterable[tuple[int, bytes]], source: str) -> Decoded:
    events: list[AnyEvent] = []
    bad: list[BadLine] = []
    for number, line in numbered:
        event = _judge(line, source, number)
        if isinstance(event, BadLine):
            bad.append(event)
        else:
            events.append(event)
    return Decoded(events, bad)


def _judge(line: bytes, source: str, number: int, hint: str = "{}") -> AnyEvent | BadLine:
    try:
        return decode(line)
    except _Undecodable as error:
        return BadLine(source, number, hint.format(error))


def _known(identity: tuple[int, str]) -> bool:
    """Whether `decode` would take events of this protocol version and job."""
    version, job_id = identity
    return version == PROTOCOL_VERSION and JOB_ID_PATTERN.fullmatch(job_id) is not None


def _decode_last(line: bytes, source: str, number: int) -> Decoded:
    """The line that no line end closes: an event that lacks only its line end, or torn."""
    event = _judge(line, source, number, "torn: the text ends inside this line ({})")
    return Decoded((), [event]) if isinstance(event, BadLine) else Decoded([event], ())


def _decode_array(text: bytes, source: str) -> Decoded:
    """The elements of one JSON array, each judged alone; lines after all if it is no array."""
    try:
        elements = msgspec.json.decode(text, type=list[msgspec.Raw])
    except _Undecodable as error:
        by_line = decode_lines(text.split(b"\n"), source)
        if by_line.events:
            return by_line
        return Decoded((), [BadLine(source, 1, f"neither lines of events nor a JSON array ({error})")])
    return _sort_out(_numbered(text, elements), source)


def _numbered(text: bytes, elements: Iterable[msgspec.Raw]) -> Iterator[tuple[int, bytes]]:
    """Each element with the number of the line on which it begins."""
    number, seen = 1, 0
    for raw in elements:
        element = bytes(raw)
        begin = text.index(element, seen)
        number += text.count(b"\n", seen, begin)
        yield number, element
        number += element.count(b"\n")
        seen = begin + len(element)
