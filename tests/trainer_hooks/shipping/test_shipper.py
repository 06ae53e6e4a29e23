"""The shipper against a real HTTP server that refuses, forgets and comes late."""

from __future__ import annotations

import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ett_core.events import Decision, Progress, decode, encode
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.journal.parts import part_path
from ett_trainer_hooks.journal.segments import (
    acked_offset,
    acked_path,
    acknowledge,
    journals_in,
    next_segment,
)
from ett_trainer_hooks.shipping.shipper import Shipper
from ett_trainer_hooks.shipping.transport import Reply, answer_in_words, poster

ETT = Path(sys.executable).with_name("ett")
NOWHERE = "http://nowhere:9410"


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
    made = Shipper(journals, poster(exporter.url), exporter.url, poll_s=0.01, chance=lambda: 0.0, guard=guard)
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


def test_a_journal_that_is_removed_while_it_is_written_is_sent_to_its_end(tmp_path, exporter):
    """What was acknowledged of the file that is gone says nothing of the one that comes after it."""
    identity = Identity(job_id="j", writer="cc")
    journal = Journal(tmp_path / "cc-1.jsonl", identity, clock=Clock(), guard=Guard(lambda _: None))
    shipper = Shipper(tmp_path, poster(exporter.url), exporter.url, chance=lambda: 0.0)
    for told in (100, 3, 200):
        for number in range(told):
            journal.put(Decision, 1e9, what=f"number {number}")
        assert journal.flush(30.0)
        shipper.ship()
        for path in journals_in(tmp_path):
            path.unlink()
    journal.close()
    assert [event.seq for event in exporter.distinct()][:303] == list(range(303))


def test_a_journal_that_was_cut_is_sent_from_its_beginning(journals, exporter, shipper):
    """An offset behind its end is of what is gone, and nothing of it counts as sent."""
    shipper.ship()
    (journals / "aa-1.jsonl").write_bytes(line("aa", 300) + line("aa", 301))
    assert shipper.unsent_bytes() == len(line("aa", 300)) * 2
    shipper.ship()
    assert [event.seq for event in exporter.distinct() if event.writer == "aa"] == list(range(302))
    assert shipper.unsent_bytes() == 0


def test_a_line_that_is_not_whole_waits(journals, exporter, shipper):
    """What a kill tore is never sent; once whole, it is."""
    path = journals / "cc-1.jsonl"
    whole = line("cc", 0)
    path.write_bytes(whole + line("cc", 1)[:-5])
    shipper.ship()
    assert acked_offset(path, exporter.url) == len(whole)
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
        journals, poster(exporter.url), exporter.url, monotonic=lambda: now_s[0], guard=Guard(warnings.append)
    )
    for _ in range(5):
        shipper.ship()
    assert len(exporter.requests) == 2
    assert len(warnings) == 1
    assert "403" in warnings[0]
    assert acked_offset(journals / "aa-1.jsonl", exporter.url) == 0
    now_s[0] = 61.0
    shipper.ship()
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)


def test_the_pause_grows_with_failures_and_is_as_long_as_the_exporter_asks(journals):
    """Back-off doubles to a bound; Retry-After is honoured."""
    replies = [Reply(503)] * 8 + [Reply(429, retry_after_s=120.0)]
    shipper = Shipper(journals, lambda _lines, _sent_at: replies.pop(0), NOWHERE, chance=lambda: 1.0)
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
        shipper = Shipper(
            journals, post, exporter.url, poll_s=0.01, chance=lambda: 0.0, guard=Guard(warnings.append)
        )
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
    shipper = Shipper(journals, refuse, NOWHERE, monotonic=lambda: now_s[0], sleep=sleep, guard=guard)
    stop = threading.Event()
    stop.set()
    assert not shipper.run(stop, drain_s=5.0)
    assert now_s[0] == pytest.approx(5.0, abs=0.01)
    assert shipper.unsent_bytes() > 0


def test_segments_are_bounded_and_join_up(journals):
    """Small segments cover a journal without a gap."""
    path = journals / "aa-1.jsonl"
    segment = next_segment(path, NOWHERE, limit=1000)
    assert segment.start == 0
    assert len(segment.data) <= 1000
    assert path.read_bytes().startswith(segment.data)
    assert segment.data.endswith(b"\n")


@pytest.mark.parametrize(
    "address", ["localhost:9410", "ftp://host", "http://", "", "http://h:99999", "http://["]
)
def test_an_address_that_is_none_is_refused(address):
    """The message says what an address looks like."""
    with pytest.raises(ValueError, match=re.escape("http://host:port")):
        poster(address)


def ship(*words):
    command = [ETT, "ship", *map(str, words), "--once"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_ett_ship_once_sends_a_directory_and_says_how_much(journals, exporter):
    """Status 0 where all was acknowledged; the second time nothing is left to send."""
    to = f"sent to {exporter.url}\n"
    assert ship(journals, "--exporter", exporter.url) == (0, f"ett ship: 2 journals, 600 lines {to}", "")
    assert [(event.writer, event.seq) for event in exporter.distinct()] == everything(journals)
    assert ship(journals, "--exporter", exporter.url) == (0, f"ett ship: 2 journals, 0 lines {to}", "")


def test_ett_ship_finds_journals_at_any_depth(journals, exporter):
    """A directory of directories is sent as a whole, and each offset lies beside its journal."""
    status, out, _ = ship(journals.parent, "--exporter", exporter.url)
    assert (status, out) == (0, f"ett ship: 2 journals, 600 lines sent to {exporter.url}\n")
    assert acked_path(journals / "aa-1.jsonl").exists()


def test_ett_ship_says_where_there_is_no_journal(tmp_path, exporter):
    """A wrong directory is no success."""
    assert ship(tmp_path, "--exporter", exporter.url) == (1, "", f"ett ship: no journal in {tmp_path}\n")
    (tmp_path / "file").touch()
    status, _, err = ship(tmp_path / "file", "--exporter", exporter.url)
    assert (status, err) == (1, f"ett ship: {tmp_path}/file: Not a directory\n")


def test_ett_ship_tells_packed_journals_that_it_does_not_send(journals, exporter):
    """Not those that were sent before they were packed; unpacked, the others are sent."""
    first, second = sorted(journals.glob("*.jsonl"))
    subprocess.run(["gzip", str(first)], check=True)
    status, out, err = ship(journals, "--exporter", exporter.url)
    assert (status, out) == (1, f"ett ship: 1 journal, 300 lines sent to {exporter.url}\n")
    packed = f"1 packed journal not sent, the first: {first}.gz; unpack with gunzip, then send again"
    assert err == f"ett ship: {packed}\n"
    subprocess.run(["gzip", str(second)], check=True)
    status, out, err = ship(journals, "--exporter", exporter.url)
    assert (status, out) == (1, f"ett ship: 0 journals, 0 lines sent to {exporter.url}\n")
    assert err == f"ett ship: {packed}\n"
    subprocess.run(["gunzip", f"{first}.gz"], check=True)
    status, out, err = ship(journals, "--exporter", exporter.url)
    assert (status, out, err) == (0, f"ett ship: 1 journal, 300 lines sent to {exporter.url}\n", "")


def test_ett_ship_tells_lines_that_were_rejected(journals, exporter):
    """How many, and why the first of them was."""
    exporter.rejects = "rank is missing"
    status, out, err = ship(journals, "--exporter", exporter.url)
    assert status == 1
    assert out == f"ett ship: 2 journals, 600 lines sent to {exporter.url}\n"
    assert err == "ett ship: 2 lines rejected, the first: rank is missing\n"


def test_ett_ship_names_the_last_answer_where_something_is_left(journals, exporter):
    """An exporter that is busy to the end."""
    exporter.answers = [(503, {})] * 50
    status, _, err = ship(journals, "--exporter", exporter.url, "--timeout-s", "0.2")
    assert status == 1
    assert re.fullmatch(
        r"ett ship: [\d,]+ bytes not acknowledged; "
        r"the last answer: 503 Service Unavailable: status 503\n",
        err,
    )


def old(path):
    os.utime(path, (time.time() - 7200.0,) * 2)


def test_ett_ship_removes_what_is_over_and_nothing_else(journals, exporter):
    """Acknowledged everywhere, unwritten for an hour, its process gone: then all parts and offsets go."""
    kept = {
        "fresh": journals / f"fresh-{2**22 + 1}.jsonl",
        "alive": journals / f"alive-{os.getpid()}.jsonl",
        "of another exporter": journals / f"other-{2**22 + 1}.jsonl",
        "fresh in its last part": journals / f"parts-{2**22 + 1}.jsonl",
    }
    for number, path in enumerate(kept.values()):
        path.write_bytes(line(f"k{number}", 0))
        old(path)
    os.utime(kept["fresh"])
    acknowledge(kept["of another exporter"], NOWHERE, 1)
    part_path(kept["fresh in its last part"], 1).write_bytes(line("k3", 1))
    over = [journals / f"over-{2**22 + 1}.jsonl", journals / f"over-{2**22 + 1}.part000001.jsonl"]
    for number, path in enumerate(over):
        path.write_bytes(line("over", number) + b'{"torn')
        old(path)
    to = ("--exporter", exporter.url, "--prune-hours", "1")
    status, out, err = ship(journals, *to)
    assert (status, err) == (0, "")
    assert out.endswith("ett ship: 1 journal removed\n")
    assert not [path for path in journals.iterdir() if "over" in path.name]
    assert all(path.exists() for path in kept.values())
    assert {event.writer for event in exporter.distinct()} >= {"over", "k0", "k1", "k2", "k3"}


def test_ett_ship_removes_nothing_that_is_not_acknowledged(journals, exporter):
    """Whatever its age."""
    for path in journals.iterdir():
        old(path)
    exporter.answers = [(503, {})] * 50
    status, out, _ = ship(journals, "--exporter", exporter.url, "--timeout-s", "0.2", "--prune-hours", "1")
    assert status == 1
    assert out.endswith("ett ship: 0 journals removed\n")
    assert len(list(journals.glob("*.jsonl"))) == 2


def test_ett_ship_prunes_only_once_it_is_through(journals):
    """A wrong setting is told before anything is sent."""
    command = [ETT, "ship", str(journals), "--exporter", NOWHERE, "--prune-hours", "0", "--once"]
    for words in (command, [*command[:-2], "1"]):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "ett ship: --prune-hours needs a number above 0, and --once\n"


@pytest.mark.parametrize("answer", ["404 Not Found", "405 Method Not Allowed", "501 Not Implemented"])
def test_ett_ship_does_not_wait_for_a_server_of_another_kind(journals, exporter, answer):
    """That is not cured by waiting: it ends long before its time, and asks what that was."""
    exporter.answers = [(int(answer[:3]), {})] * 50
    began_s = time.monotonic()
    status, _, err = ship(journals, "--exporter", exporter.url, "--timeout-s", "600")
    assert time.monotonic() - began_s < 300.0
    assert status == 1
    assert err.endswith(f"; the last answer: {answer}: is that an ettwatch exporter?\n")
    assert err.count("\n") == 1


def test_ett_ship_says_why_nobody_answers(journals):
    """The system's own words."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        status, _, err = ship(journals, "--exporter", url, "--timeout-s", "0.2")
    assert status == 1
    assert err.endswith("; the last answer: none (Connection refused)\n")


def test_an_answer_of_another_kind_of_server_acknowledges_nothing(journals):
    """A page with status 200 is no promise to keep the lines."""
    guard = Guard(lambda _: None)
    shipper = Shipper(journals, lambda _lines, _sent_at: Reply(200, b"<html>"), NOWHERE, guard=guard)
    shipper.ship()
    assert shipper.tally.last_answer == "200 OK: is that an ettwatch exporter?"
    assert shipper.tally.lines == 0
    assert acked_offset(journals / "aa-1.jsonl", NOWHERE) == 0


def test_what_one_exporter_has_acknowledged_another_still_gets(journals, shipper):
    """Each address has an offset of its own, and they do not disturb each other."""
    shipper.ship()
    sent = []

    def post(lines, _sent_at):
        sent.extend(lines.splitlines())
        return Reply(200, b'{"accepted": 1}')

    second = Shipper(journals, post, NOWHERE)
    assert second.unsent_bytes() > 0
    second.ship()
    assert len(sent) == 600
    assert second.unsent_bytes() == shipper.unsent_bytes() == 0


def test_an_offset_without_an_address_holds_for_every_exporter_until_one_acknowledges(journals):
    """A file that is a number only is understood."""
    path = journals / "aa-1.jsonl"
    acked_path(path).write_text("100\n")
    assert acked_offset(path, NOWHERE) == acked_offset(path, "http://other") == 100
    acknowledge(path, NOWHERE, 200)
    assert acked_path(path).read_text() == f"200 {NOWHERE}\n"
    assert (acked_offset(path, NOWHERE), acked_offset(path, "http://other")) == (200, 0)


@pytest.mark.parametrize("text", ["", "nonsense", "-5\n", f"x {NOWHERE}\n", "\xff"])
def test_a_file_of_offsets_that_is_damaged_means_sending_again(journals, text):
    """Twice is better than never."""
    path = journals / "aa-1.jsonl"
    acked_path(path).write_text(text, encoding="latin-1")
    assert acked_offset(path, NOWHERE) == 0


def test_a_journal_that_cannot_be_read_holds_up_no_other(journals, exporter, shipper):
    """The trouble is remembered with its path while the rest is sent."""
    (journals / "aa-1.jsonl").unlink()
    (journals / "aa-1.jsonl").mkdir()
    shipper.ship()
    assert {event.writer for event in exporter.distinct()} == {"bb"}
    (trouble,) = shipper.tally.troubles.values()
    assert trouble == f"{journals}/aa-1.jsonl: Is a directory"


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


def endless(kind: str) -> bytes:
    """What a server that never comes to an end sends again and again."""
    return {"continue": b"HTTP/1.1 100 Continue\r\n\r\n", "header": b"A: b\r\n"}.get(kind, b"x" * 1000)


@pytest.fixture
def babbler():
    """A server that sends a beginning, then one thing for ever; gives its address."""
    servers = []

    def start(first: bytes, then: bytes):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.recv(1 << 16)
                try:
                    self.request.sendall(first)
                    while True:
                        self.request.sendall(then)
                except OSError:
                    return

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("kind", ["continue", "body of a stated length"])
def test_an_answer_that_never_ends_is_cut_off(babbler, kind):
    """However busy the connection is kept, a request ends."""
    first = b"" if kind == "continue" else b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: "
    post = poster(babbler(first, endless(kind)), longest_s=0.3)
    with pytest.raises(OSError, match=r"[Ll]ine|Remote|Incomplete|reset"):
        post(b"{}\n", 0.0)


def test_of_a_long_answer_a_bounded_part_is_kept(babbler):
    """A server that sends without end costs a bounded memory."""
    reply = poster(babbler(b"HTTP/1.1 500 No\r\n\r\n", b"x" * 1000), longest_s=30.0)(b"{}\n", 0.0)
    assert (reply.status, len(reply.body)) == (500, 8 << 20)


def test_what_an_exporter_says_colours_no_terminal_and_tells_no_secret():
    """Its words are shown without what a terminal obeys."""
    reply = Reply(500, b'{"error": "\\u001b[31mdatabase postgres://me:hunter2@host is down"}')
    assert answer_in_words(reply) == "500 Internal Server Error: database postgres://me:***@host is down"
    with pytest.raises(ValueError, match=r"me:\*\*\*@"):
        poster("http://me:hunter2@host:99999")
