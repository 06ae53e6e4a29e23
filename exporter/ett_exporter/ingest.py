"""From the bytes of a request or a journal to events: pure, and at home with hostile input.

Good lines of a bad batch are kept; each bad one is reported with its number (from 1) and the
reason. A segment holds lines of one writer of one job, and each sequence number once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import msgspec

from ett_core.events import AnyEvent, AttemptStart, decode
from ett_core.lines import decode_all
from ett_exporter.discretion import WORDS_OF_PROGRAMS, discreet
from ett_exporter.settings import Limits
from ett_exporter.tokens import Grant

GZIP_WBITS = 31
ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
"""The largest window that a sender of `Content-Encoding: zstd` may ask for (RFC 9659)."""
ZSTD_PIECE_BYTES = 64
"""Of such a body at a time: four bytes may stand for 128 KiB, which nothing else bounds."""
MOST_STREAMS = 100
"""Compressed streams, one behind the other, that a body may be made of."""
REASON_CHARACTERS = 300
COPIES = 3
"""Of a text in memory at once: as it came, its lines, and what is kept of them."""
VALUE_BYTES = 100
"""What a name with its value takes once it is decoded."""


class RefusedError(ValueError):
    """The input is refused whole; the message says why, `status` is its HTTP status."""

    status = 400


class TooLargeError(RefusedError):
    """The input exceeds a limit."""

    status = 413


class UnknownEncodingError(RefusedError):
    """The Content-Encoding is not known here."""

    status = 415


class ForbiddenError(RefusedError):
    """The sender may send nothing of it."""

    status = 403


class Line(msgspec.Struct, frozen=True, gc=False):
    """One good line: its number, its bytes as they were sent but without secrets, and the event on it."""

    number: int
    raw: bytes
    event: AnyEvent


class Rejected(msgspec.Struct, frozen=True, gc=False):
    """One line that was not taken in, and why."""

    line: int
    reason: str


class Segment(msgspec.Struct, frozen=True):
    """Lines of one writer of one job: the unit of ingest, de-duplication and storage."""

    job_id: str
    writer: str
    lines: Sequence[Line]


def decompress(body: bytes, encoding: str, limit_bytes: int) -> bytes:
    """The body without its Content-Encoding (`gzip`, `zstd`, `identity` or none).

    Raises:
        TooLargeError: it is longer than `limit_bytes`, however small it was sent.
        RefusedError: it is no whole stream of its kind.
        UnknownEncodingError: the encoding is not known here.
    """
    if encoding in ("", "identity"):
        if len(body) > limit_bytes:
            raise TooLargeError(f"the body is larger than {limit_bytes} bytes")
        return body
    if encoding == "gzip":
        return _gunzip(body, limit_bytes)
    if encoding == "zstd":
        return _unzstd(body, limit_bytes)
    raise UnknownEncodingError(f"Content-Encoding {encoding[:40]!r} is not known; use gzip, zstd or none")


def memory_of(text: bytes) -> int:
    """About how many bytes of memory it takes to take in a text: itself, parts of it, and its values.

    >>> memory_of(b'{"a":1,"b":2}')
    139
    """
    return COPIES * len(text) + VALUE_BYTES * text.count(b",")


def _gunzip(body: bytes, limit_bytes: int) -> bytes:
    parts, left, streams = [], limit_bytes, 0
    while body:
        streams = _one_more(streams)
        stream = zlib.decompressobj(GZIP_WBITS)
        try:
            part = stream.decompress(body, left + 1)
        except zlib.error as error:
            raise RefusedError(f"the body is no gzip stream: {error}") from error
        left -= len(part)
        if left < 0:
            raise TooLargeError(f"the body is larger than {limit_bytes} bytes once decompressed")
        if not stream.eof:
            raise RefusedError("the body ends in the middle of its gzip stream")
        parts.append(part)
        body = stream.unused_data
    return b"".join(parts)


def _one_more(streams: int) -> int:
    """One more stream of a body, each of which costs a copy of what follows it.

    Raises:
        TooLargeError: it is one too many.
    """
    if streams >= MOST_STREAMS:
        raise TooLargeError(f"the body is made of more than {MOST_STREAMS} compressed streams")
    return streams + 1


def _unzstd(body: bytes, limit_bytes: int) -> bytes:
    """The content of Zstandard frames; they are fed in pieces whose output cannot exhaust memory."""
    try:
        import zstandard  # noqa: PLC0415 - not everywhere where exporters run
    except ModuleNotFoundError as error:
        raise UnknownEncodingError(
            "Content-Encoding zstd needs the package zstandard here; use gzip"
        ) from error
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    parts, left, streams = [], limit_bytes, 0
    while body:
        streams = _one_more(streams)
        stream = decompressor.decompressobj()
        try:
            for begin in range(0, len(body), ZSTD_PIECE_BYTES):
                part = stream.decompress(body[begin : begin + ZSTD_PIECE_BYTES])
                left -= len(part)
                if left < 0:
                    raise TooLargeError(f"the body is larger than {limit_bytes} bytes once decompressed")
                parts.append(part)
                if stream.eof:
                    break
        except zstandard.ZstdError as error:
            raise RefusedError(f"the body is no zstd stream: {error}") from error
        if not stream.eof:
            raise RefusedError("the body ends in the middle of its zstd stream")
        body = stream.unused_data + body[begin + ZSTD_PIECE_BYTES :]
    return b"".join(parts)


def read_permitted(text: bytes, limits: Limits, grant: Grant) -> tuple[list[Line], list[Rejected]]:
    """As `read_lines`, without the lines that the sender may not send.

    Raises:
        TooLargeError: there are too many lines.
        ForbiddenError: the sender may send none of them.
    """
    lines, rejected = read_lines(text, limits)
    if not (grant.jobs or grant.team):
        return lines, rejected
    refused = {line.number: reason for line in lines if (reason := grant.refusal(line.event))}
    permitted = [line for line in lines if line.number not in refused]
    if refused and not permitted:
        raise ForbiddenError(next(iter(refused.values())))
    return permitted, [*rejected, *(Rejected(number, reason) for number, reason in refused.items())]


def read_lines(text: bytes, limits: Limits, first_line: int = 1) -> tuple[list[Line], list[Rejected]]:
    """The events of NDJSON `text`, and the lines that are none; blank lines mean nothing.

    Raises:
        TooLargeError: there are more than `limits.segment_lines` lines.
    """
    if text.count(b"\n") > limits.segment_lines:
        raise TooLargeError(f"a segment holds at most {limits.segment_lines} lines")
    raws = text.removesuffix(b"\n").split(b"\n")
    events = _plain_events(raws, limits)
    if events is not None:
        plain = list(map(Line, count(first_line), raws, events))
        for place, event in enumerate(events):
            if type(event) in WORDS_OF_PROGRAMS:
                plain[place] = Line(first_line + place, *discreet(raws[place], event))
        return plain, []
    lines: list[Line] = []
    rejected: list[Rejected] = []
    for number, raw in enumerate(raws, first_line):
        if raw.strip():
            outcome = _read_line(number, raw, limits)
            (lines if isinstance(outcome, Line) else rejected).append(outcome)  # type: ignore[arg-type]
    return lines, rejected


def _plain_events(raws: Sequence[bytes], limits: Limits) -> Sequence[AnyEvent] | None:
    """The events of lines that are all good, as is usual, decoded at once; None where one is not."""
    if max(map(len, raws)) > limits.line_bytes or not all(raws):
        return None
    events = decode_all(raws)
    if events is None or any("\0" in writer for writer in {event.writer for event in events}):
        return None
    starts = (event for event in events if type(event) is AttemptStart)
    return None if any(_labels_refusal(start.labels, limits) for start in starts) else events


def _read_line(number: int, raw: bytes, limits: Limits) -> Line | Rejected:
    if len(raw) > limits.line_bytes:
        return Rejected(number, f"longer than {limits.line_bytes} bytes")
    try:
        event = decode(raw)
    except ValueError as error:
        return Rejected(number, str(error)[:REASON_CHARACTERS])
    if isinstance(event, AttemptStart) and (reason := _labels_refusal(event.labels, limits)):
        return Rejected(number, reason)
    if "\0" in event.writer:
        return Rejected(number, "writer holds a NUL character, which not every database can keep")
    return Line(number, *discreet(raw, event))


def _labels_refusal(labels: Mapping[str, str], limits: Limits) -> str | None:
    """Why labels are not taken in; None where they are."""
    if len(labels) > limits.labels:
        return f"{len(labels)} labels, more than {limits.labels}"
    longest = max((len(text) for label in labels.items() for text in label), default=0)
    if longest > limits.label_characters:
        return f"a label of {longest} characters, more than {limits.label_characters}"
    return None


def one_segment(lines: Sequence[Line]) -> tuple[Segment | None, list[Rejected]]:
    """The segment of the first line's job and writer; lines of others are rejected."""
    if not lines:
        return None, []
    segments = by_writer(lines)
    rejected = [
        Rejected(
            line.number,
            f"of another {'job' if other.job_id != segments[0].job_id else 'writer'} than the first line;"
            " a segment holds lines of one writer of one job",
        )
        for other in segments[1:]
        for line in other.lines
    ]
    return segments[0], sorted(rejected, key=lambda r: r.line)


def by_writer(lines: Iterable[Line]) -> list[Segment]:
    """One segment for each writer of each job, in order of appearance."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.event.job_id, line.event.writer), []).append(line)
    return [Segment(job_id, writer, group) for (job_id, writer), group in groups.items()]
