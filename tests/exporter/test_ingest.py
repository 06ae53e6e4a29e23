"""Reading segments from bytes, the hostile ones included."""

from __future__ import annotations

import contextlib
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.events import (
    Compile,
    CompileInput,
    Failure,
    Heartbeat,
    Progress,
    StepSeconds,
    encode,
)
from ett_exporter.ingest import (
    RefusedError,
    TooLargeError,
    UnknownEncodingError,
    by_writer,
    decompress,
    one_segment,
    read_lines,
)
from ett_exporter.settings import Limits

LIMITS = Limits(segment_bytes=10_000, segment_lines=50, line_bytes=300)


ENVELOPE = {"job_id": "j", "writer": "w", "seq": 0, "attempt": 0, "rank": 0, "time": 1e9}


def line(seq=0, writer="w", job_id="j"):
    return encode(Heartbeat(**ENVELOPE | {"job_id": job_id, "writer": writer, "seq": seq}))


BAD_LINES = {
    "no JSON": b"hello",
    "not UTF-8": b"\xff\xfe\x00",
    "no event": b"[]",
    "unknown kind": line().replace(b"heartbeat", b"sneeze"),
    "later protocol": line().replace(b'"v":1', b'"v":2'),
    "job_id with a space": line(job_id="a b"),
    "too long": line(job_id="x" * 400),
    "deep": b'{"x":' + b"[" * 280,
    "huge integer": line().replace(b'"seq":0', b'"seq":' + b"9" * 100),
    "not a number": line().replace(b"1000000000.0", b"NaN"),
    "infinite": line().replace(b"1000000000.0", b"1e999"),
    "exit code beyond 64 bits": encode(Failure(**ENVELOPE, exit_code=10**30)),
    "signal beyond 64 bits": encode(Failure(**ENVELOPE, signal=-(2**64))),
    "size beyond 64 bits": encode(Compile(**ENVELOPE, inputs=(CompileInput(source="x", size=(2**64,)),))),
    "endless steps": encode(
        Progress(**ENVELOPE, step=1, steps=1, step_seconds=StepSeconds(count=2**40, sum=1.0, max=1.0))
    ),
    "lone surrogate": line(writer="WW").replace(b"WW", b"\\ud800"),
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_is_named_and_the_others_are_kept(bad):
    """Good lines around a bad one are read; the bad one is reported with its number and a reason."""
    lines, rejected = read_lines(b"\n".join([line(0), bad, b"", line(1)]), LIMITS)
    assert [good.event.seq for good in lines] == [0, 1]
    assert [r.line for r in rejected] == [2]
    assert rejected[0].reason


def test_deep_nesting_is_a_bad_line_and_no_crash():
    """A line nested beyond any parser's depth is rejected like another bad line."""
    deep = b'{"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}"
    lines, rejected = read_lines(deep + b"\n" + line(), Limits())
    assert (len(lines), len(rejected)) == (1, 1)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(garbage):
    """No bytes make reading raise; a good line after them is found."""
    lines, _ = read_lines(garbage + b"\n" + line(7), LIMITS)
    assert lines[-1].event.seq == 7


@given(st.binary(max_size=200), st.sampled_from(["gzip", "identity", ""]))
def test_any_body_is_decompressed_or_refused(body, encoding):
    """A body is given as it was or, where it is no gzip stream, refused; nothing else is raised."""
    with contextlib.suppress(RefusedError):
        text = decompress(body, encoding, LIMITS.segment_bytes)
        assert text == (gzip.decompress(body) if encoding == "gzip" and body else body)


def test_gzip_of_several_members_is_one_text():
    """Members that follow each other are read one after the other."""
    assert (
        decompress(gzip.compress(b"a\n") + gzip.compress(b"b\n"), "gzip", LIMITS.segment_bytes) == b"a\nb\n"
    )


@pytest.mark.parametrize(
    "bomb", [gzip.compress(b" " * 10_001), gzip.compress(b" " * 6_000) * 2], ids=["one member", "two members"]
)
def test_a_gzip_bomb_is_refused_at_the_limit(bomb):
    """A small body that grows beyond the limit is refused, in one member or in several."""
    with pytest.raises(TooLargeError, match="10000 bytes"):
        decompress(bomb, "gzip", LIMITS.segment_bytes)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_of_very_many_streams_is_refused(encoding):
    """Each costs a copy of what follows it: eight megabytes of empty ones would take hours."""
    empty = {"gzip": gzip, "zstd": pytest.importorskip("zstandard")}[encoding].compress(b"")
    assert decompress(empty * 100, encoding, LIMITS.segment_bytes) == b""
    with pytest.raises(TooLargeError, match="more than 100 compressed streams"):
        decompress(empty * 300_000, encoding, LIMITS.segment_bytes)


def test_half_a_gzip_stream_is_refused():
    """A truncated body is not taken for a short one."""
    with pytest.raises(RefusedError, match="middle"):
        decompress(gzip.compress(b"a\nb\n")[:-9], "gzip", LIMITS.segment_bytes)


def test_another_encoding_is_refused():
    """Encodings that are not spoken here are named in the refusal."""
    with pytest.raises(UnknownEncodingError, match="br"):
        decompress(b"", "br", LIMITS.segment_bytes)


def test_too_many_lines_are_refused():
    """A segment with more lines than the limit is refused whole."""
    with pytest.raises(TooLargeError, match="50 lines"):
        read_lines(b"\n" * 51, LIMITS)


def test_a_segment_is_of_one_writer_of_one_job():
    """Lines of others than the first line's job and writer are rejected, each with the reason."""
    text = b"\n".join([line(0), line(0, writer="x"), line(1), line(2, job_id="k")])
    segment, rejected = one_segment(read_lines(text, LIMITS)[0])
    assert [good.event.seq for good in segment.lines] == [0, 1]
    assert [(r.line, "another writer" in r.reason) for r in rejected] == [(2, True), (4, False)]


def test_a_journal_of_several_writers_is_several_segments():
    """Grouping by writer loses no line."""
    lines, _ = read_lines(b"\n".join([line(0), line(0, writer="x"), line(1)]), LIMITS)
    assert [(s.writer, len(s.lines)) for s in by_writer(lines)] == [("w", 2), ("x", 1)]
