"""The shipper against a real HTTP server that refuses, forgets and comes late."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ett_core.events import Progress, decode, encode
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.segments import acked_offset, acked_path, next_segment
from ett_trainer_hooks.shipper import Shipper
from ett_trainer_hooks.transport import Reply, poster

ETT = Path(sys.executable).with_name("ett")


def line(writer: str, seq: int) -> bytes:
    event = Progress(job_id="j", writer=writer, seq=seq, attempt=0, rank=0, time=1e9 + seq, step=seq, steps=1)
    return encode(event) + b"\n"


@pytest.fixture
def journals(tmp_path):
    """Two journals of 300 lines each."""
    directory = tmp_path / "journal"
    directory.mkdir()
    for writer in ("aa", "bb"):
        (directory / f"{writer}-1.jsonl").write_bytes(b"".join(line(writer, seq) for seq in range(300)))
    return directory


@pytest.fixture
def shipper(journals, exporter):
    warnings = []
    guard = Guard(warnings.append)
    made = Shipper(journals, poster(exporter.url), poll_s=0.01, chance=lambda: 0.0, guard=guard)
    made.warnings = warnings
    return made


def everything(directory):
    return sorted(
        (event.writer, event.seq)
        for path in directory.glob("*.jsonl")
        for event in map(decode, path.read_bytes().splitlines())
    )


def test_every_line_arrives_once_after_refusals(journals, exporter, shipper):
    """Refused segments are sent again, nothing is sent twice that was acknowledged."""
    exporter.answers = [(503, {"Retry-After": "0"}), (429, {"Retry-After": "0"}), (500, {}), (408, {})]
    for _ in range(10):
        shipper.ship()
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)
    assert len(exporter.lines) == 600
    assert shipper.unsent_bytes() == 0


def test_a_lost_answer_costs_a_second_sending_and_no_event(journals, exporter, shipper):
    """Lines whose acknowledgement was lost come again under the same numbers."""
    exporter.drop_replies = 1
    for _ in range(4):
        shipper.ship()
    assert len(exporter.lines) == 900
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)


def test_a_request_holds_whole_lines_of_one_writer_and_says_when_it_was_sent(exporter, shipper):
    """Compressed NDJSON to the path of the contract, with the clock of the sender."""
    shipper.ship()
    for path, headers, body in exporter.requests:
        assert path == "/api/v1/segments"
        assert float(headers["X-Ett-Sent-At"]) > 1e9
        assert headers["Content-Encoding"] == "gzip"
        assert body.endswith(b"\n")
        assert len({decode(each).writer for each in body.splitlines()}) == 1


def test_a_line_that_is_not_whole_waits(journals, exporter, shipper):
    """What a kill tore is never sent; once whole, it is."""
    path = journals / "cc-1.jsonl"
    whole = line("cc", 0)
    path.write_bytes(whole + line("cc", 1)[:-5])
    shipper.ship()
    assert acked_offset(path) == len(whole)
    assert shipper.unsent_bytes() == 0
    path.write_bytes(whole + line("cc", 1))
    shipper.ship()
    assert [event.seq for event in exporter.distinct() if event.writer == "cc"] == [0, 1]


def test_a_segment_that_is_too_large_is_sent_in_halves(journals, exporter, shipper):
    """413 makes requests smaller until they fit."""
    exporter.limit_bytes = 5000
    shipper.ship()
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)


def test_a_line_that_no_exporter_takes_is_passed_over_with_one_warning(journals, exporter, shipper):
    """One monster does not block the lines behind it."""
    exporter.limit_bytes = 5000
    with (journals / "aa-1.jsonl").open("ab") as file:
        file.write(b'"' + b"x" * 6000 + b'"\n' + b'"' + b"x" * 2_000_000 + b'"\n' + line("aa", 300))
    shipper.ship()
    assert [event.seq for event in exporter.distinct() if event.writer == "aa"] == list(range(301))
    assert len(shipper.warnings) == 1


def test_a_refusal_for_good_is_said_once_and_not_repeated_at_once(journals, exporter):
    """The refused journal rests for a minute and keeps its lines, the other goes on."""
    now_s = [0.0]
    warnings = []
    exporter.answers = [(403, {})]
    shipper = Shipper(
        journals, poster(exporter.url), monotonic=lambda: now_s[0], guard=Guard(warnings.append)
    )
    for _ in range(5):
        shipper.ship()
    assert len(exporter.requests) == 2
    assert len(warnings) == 1
    assert "403" in warnings[0]
    assert acked_offset(journals / "aa-1.jsonl") == 0
    now_s[0] = 61.0
    shipper.ship()
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)


def test_the_pause_grows_with_failures_and_is_as_long_as_the_exporter_asks(journals):
    """Back-off doubles to a bound; Retry-After is honoured."""
    replies = [Reply(503)] * 8 + [Reply(429, retry_after_s=120.0)]
    shipper = Shipper(journals, lambda _lines, _sent_at: replies.pop(0), chance=lambda: 1.0)
    assert [shipper.ship() for _ in range(9)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 120.0]
    assert not acked_path(journals / "aa-1.jsonl").exists()


def test_an_exporter_that_comes_late_gets_everything(journals, exporter):
    """While nobody listens the thread keeps trying; stopping drains what is left."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = poster(f"http://127.0.0.1:{unused.getsockname()[1]}")
        there = poster(exporter.url)
        tried = []

        def post(lines, sent_at):
            tried.append(1)
            return nobody(lines, sent_at) if len(tried) < 3 else there(lines, sent_at)

        warnings = []
        shipper = Shipper(journals, post, poll_s=0.01, chance=lambda: 0.0, guard=Guard(warnings.append))
        stop = threading.Event()
        stop.set()
        assert shipper.run(stop, drain_s=30.0)
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)
    assert len(warnings) == 1


def test_draining_ends_in_time_where_nobody_answers(journals):
    """The end of a job waits a bounded time for an exporter that is down."""
    now_s = [0.0]

    def sleep(seconds):
        now_s[0] += seconds

    def refuse(_lines, _sent_at):
        raise ConnectionRefusedError("nobody")

    guard = Guard(lambda _: None)
    shipper = Shipper(journals, refuse, monotonic=lambda: now_s[0], sleep=sleep, guard=guard)
    stop = threading.Event()
    stop.set()
    assert not shipper.run(stop, drain_s=5.0)
    assert now_s[0] == pytest.approx(5.0, abs=0.01)
    assert shipper.unsent_bytes() > 0


def test_segments_are_bounded_and_join_up(journals):
    """Small segments cover a journal without a gap."""
    path = journals / "aa-1.jsonl"
    segment = next_segment(path, limit=1000)
    assert segment.start == 0
    assert len(segment.data) <= 1000
    assert path.read_bytes().startswith(segment.data)
    assert segment.data.endswith(b"\n")


@pytest.mark.parametrize("address", ["localhost:9410", "ftp://host", "http://", ""])
def test_an_address_that_is_none_is_refused(address):
    """The message says what an address looks like."""
    with pytest.raises(ValueError, match=re.escape("http://host:port")):
        poster(address)


def test_ett_ship_once_sends_a_directory_and_says_so(journals, exporter):
    """The command ends with status 0 where all was acknowledged, and with 1 where not."""
    words = [ETT, "ship", journals, "--exporter", exporter.url, "--once"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ett ship: everything is acknowledged\n"), done.stderr
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)
    (journals / "dd-1.jsonl").write_bytes(line("dd", 0))
    exporter.answers = [(503, {})] * 50
    again = subprocess.run([*words, "--timeout-s", "0.2"], capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "not acknowledged" in again.stdout


def test_a_disk_that_takes_no_offset_stops_nothing(journals, exporter, shipper):
    """The acknowledged offset cannot be written: lines are sent again later, and the shipper lives on."""
    blocked = acked_path(journals / "aa-1.jsonl")
    blocked.mkdir()
    assert shipper.ship() > 0
    assert [text for text in shipper.warnings if "trying again" in text]
    blocked.rmdir()
    shipper.ship()
    assert shipper.unsent_bytes() == 0
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)
