import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core import lines as lines_of
from ett_core.events import Heartbeat, encode
from ett_core.lines import BadLine, Decoded, decode_chunks, decode_text


def beat(seq: int, job_id: str = "j") -> Heartbeat:
    return Heartbeat(job_id=job_id, writer="w", seq=seq, attempt=0, rank=0, time=1.0 + seq)


def reports(decoded: Decoded) -> list[str]:
    return [str(bad) for bad in decoded.bad]


def test_good_lines_come_back_as_they_were_written():
    events = [beat(0), beat(1)]
    assert decode_text(b"".join(encode(e) + b"\n" for e in events), "f") == Decoded(events, [])


def test_a_bad_line_is_reported_by_source_number_and_reason_and_stops_nothing():
    text = b"\n".join(
        [encode(beat(0)), b"", b"oops", encode(beat(1)), b'{"kind":"nap"}', encode(beat(2)), b""]
    )
    decoded = decode_text(text, "a.jsonl")
    assert [event.seq for event in decoded.events] == [0, 1, 2]
    assert reports(decoded) == [
        "a.jsonl:3: JSON is malformed: invalid character (byte 0)",
        "a.jsonl:5: Invalid value 'nap' - at `$.kind`",
    ]


def test_blank_lines_and_carriage_returns_mean_nothing():
    text = b"\n  \n" + encode(beat(0)) + b"\r\n\r\n\t\n" + encode(beat(1)) + b"\r\n"
    assert decode_text(text, "f") == Decoded([beat(0), beat(1)], [])


def test_an_unterminated_last_line_that_is_cut_is_reported_as_torn():
    cut = encode(beat(1))[:-5]
    decoded = decode_text(encode(beat(0)) + b"\n" + cut, "f")
    assert decoded.events == [beat(0)]
    assert reports(decoded) == ["f:2: torn: the text ends inside this line (Input data was truncated)"]


def test_an_unterminated_last_line_that_is_whole_is_an_event():
    assert decode_text(encode(beat(0)) + b"\n" + encode(beat(1)), "f") == Decoded([beat(0), beat(1)], [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            encode(beat(1)).replace(b'"job_id":"j"', b'"job_id":"a b"'),
            "job_id 'a b' is not 1 to 128 characters",
        ),
        (
            encode(beat(1)).replace(b'"job_id":"j"', b'"job_id":"j","v":2'),
            "protocol version 2 is not known here",
        ),
        (
            encode(beat(1))[:-1] + b',"x":' + b"[" * 9999 + b"]" * 9999 + b"}",
            "nested too deeply to be an event",
        ),
        (b"\x00" * 32, "JSON is malformed"),
        (b'{"kind":"\xff"}', "Invalid UTF-8"),
        (encode(beat(1)) * 2, "JSON is malformed: trailing characters"),
    ],
)
def test_what_only_a_closer_look_shows_is_reported_too(line, reason):
    decoded = decode_text(encode(beat(0)) + b"\n" + line + b"\n" + encode(beat(2)) + b"\n", "f")
    assert [event.seq for event in decoded.events] == [0, 2]
    assert len(decoded.bad) == 1
    assert decoded.bad[0].line == 2
    assert reason in decoded.bad[0].reason


def test_one_json_array_of_events_is_understood():
    text = json.dumps([json.loads(encode(beat(seq))) for seq in range(3)], indent=1).encode()
    assert decode_text(text, "f") == Decoded([beat(0), beat(1), beat(2)], [])


def test_a_bad_element_of_an_array_is_reported_by_the_line_on_which_it_begins():
    text = b"[\n" + encode(beat(0)) + b',\n{"kind":\n"nap"},\n7, ' + encode(beat(1)) + b"]"
    decoded = decode_text(text, "f")
    assert decoded.events == [beat(0), beat(1)]
    assert [(bad.line, bad.source) for bad in decoded.bad] == [(3, "f"), (5, "f")]


def test_a_cut_array_is_one_report():
    decoded = decode_text(b"[" + encode(beat(0)) + b",", "f")
    assert not decoded.events
    assert reports(decoded) == ["f:1: neither lines of events nor a JSON array (Input data was truncated)"]


def test_a_first_line_that_begins_like_an_array_does_not_stop_the_other_lines():
    decoded = decode_text(b"[torn\n" + encode(beat(1)) + b"\n", "f")
    assert decoded.events == [beat(1)]
    assert [bad.line for bad in decoded.bad] == [1]


def test_a_byte_order_mark_is_passed_over():
    assert decode_text(b"\xef\xbb\xbf" + encode(beat(0)) + b"\n", "f") == Decoded([beat(0)], [])


def test_nothing_holds_nothing():
    assert decode_text(b"", "f") == decode_text(b" \n\n", "f") == Decoded([], [])


LINES = st.one_of(
    st.integers(0, 9).map(lambda seq: encode(beat(seq))),
    st.integers(0, 9).map(lambda seq: encode(beat(seq, "no job"))),
    st.sampled_from([b"", b"  ", b"{}", b"x", b'{"kind":', b"\xff", b"]"]),
)


@given(lines=st.lists(LINES), end=st.sampled_from([b"", b"\n"]), cuts=st.lists(st.integers(0, 2000)))
def test_the_pieces_in_which_a_text_comes_change_nothing(lines, end, cuts):
    text = b"\n".join(lines) + end
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    parts = list(decode_chunks(pieces, "f"))
    together = Decoded([e for p in parts for e in p.events], [b for p in parts for b in p.bad])
    assert together == decode_text(text, "f")


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n" + encode(beat(1))])
def test_a_line_without_an_end_is_told_once_and_hides_no_other(end, monkeypatch):
    """Of a file of zeros, as a disk leaves it, one line tells; what follows has its number."""
    monkeypatch.setattr(lines_of, "LONGEST_LINE_BYTES", 100)
    zeros = itertools.repeat(bytes(40), 50)
    parts = list(decode_chunks([encode(beat(0)) + b"\n", *zeros, bytes(7) + end], "f"))
    events = [event for part in parts for event in part.events]
    assert events == [beat(0), beat(1)][: 1 + end.endswith(b"}")]
    assert [str(bad) for part in parts for bad in part.bad] == ["f:2: longer than 100 bytes"]


@given(lines=st.lists(LINES))
def test_every_line_that_is_not_blank_is_an_event_or_a_report(lines):
    decoded = decode_text(b"\n".join(lines) + b"\n", "f")
    full = {number for number, line in enumerate(lines, 1) if line.strip()}
    assert {bad.line for bad in decoded.bad} <= full
    assert len(decoded.events) + len(decoded.bad) == len(full)


def test_a_report_reads_as_compilers_write_theirs():
    assert str(BadLine("a/b.jsonl", 7, "why")) == "a/b.jsonl:7: why"
