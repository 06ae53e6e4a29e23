"""Senders of every kind at a running exporter: with tokens, many at once, slow, half open, far away."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from ett_core.credentials import token_source
from ett_core.events import Clock
from ett_exporter.api import make_app
from ett_exporter.deadlines import patient
from ett_exporter.settings import Limits
from ett_exporter.tokens import grant, line_of, new_token
from ett_trainer_hooks.shipping.transport import is_acknowledgement, poster


def body_of(story, job_id):
    return next(iter(story(job_id).bodies().values()))


def one_word(job_id, seq=0):
    return (
        f'{{"v":1,"job_id":"{job_id}","writer":"w-{job_id}","seq":{seq},"attempt":0,"rank":0,'
        f'"time":1764000000.0,"kind":"heartbeat"}}\n'
    ).encode()


def test_the_shipper_sends_its_token(exporters, story, tmp_path):
    """With a token from a file it is taken in, without one refused; a replaced file counts at once."""
    token = new_token()
    tokens, mine = tmp_path / "tokens", tmp_path / "mine"
    tokens.write_text(line_of(token, grant("t", ["ingest"], jobs="ads/")))
    running = exporters("--database", str(tmp_path / "ett.sqlite"), "--tokens", str(tokens))
    mine.write_text("ett_old\n")
    post = poster(running.url, token=token_source(mine))
    body = body_of(story, "ads/1")
    assert post(body, time.time()).status == 401
    mine.write_text(token + "\n")
    assert is_acknowledgement(post(body, time.time()))
    assert post(body_of(story, "web/1"), time.time()).status == 403
    assert poster(running.url, token=token_source(environ={}))(body, time.time()).status == 401
    assert running.http.get("/healthz").status_code == 200
    assert running.http.get("/metrics").status_code == 401


def test_a_launched_job_ships_with_its_token(exporters, tmp_path, eventually):
    """`ett run --token-file` delivers to an exporter that wants one; the token is in none of its files."""
    token = new_token()
    tokens, mine = tmp_path / "tokens", tmp_path / "mine"
    tokens.write_text(line_of(token, grant("t", ["ingest", "read"])))
    mine.write_text(token)
    running = exporters("--database", str(tmp_path / "ett.sqlite"), "--tokens", str(tokens))
    words = ["--job-id", "launched", "--exporter", running.url, "--token-file", str(mine)]
    journals = tmp_path / "journals"
    ett = Path(sys.executable).with_name("ett")
    command = [ett, "run", *words, "--journal-dir", journals, "--no-auto", "--", sys.executable, "-c", "pass"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    reading = {"Authorization": f"Bearer {token}"}
    eventually(lambda: running.http.get("/api/v1/jobs/launched", headers=reading).status_code == 200)
    written = [path.read_text(errors="replace") for path in journals.rglob("*") if path.is_file()]
    assert written
    assert not [text for text in [*written, done.stdout, done.stderr] if token in text]


def test_an_exporter_with_tokens_listens_for_others(exporters, tmp_path):
    """With tokens, or where it is said to be insecure, an address beyond loopback is bound."""
    tokens = tmp_path / "tokens"
    tokens.write_text(line_of(new_token(), grant("t", ["admin"])))
    for number, words in enumerate((("--tokens", str(tokens)), ("--insecure",))):
        database = str(tmp_path / f"{number}.sqlite")
        running = exporters("--host", "0.0.0.0", "--database", database, *words)  # noqa: S104 - what is tested
        assert running.http.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("file", "environ", "problem"),
    [
        ("none", {}, "No such file"),
        ("empty", {}, "it holds no token"),
        (None, {"ETT_EXPORTER_TOKEN": "a b"}, "characters that no token has"),
    ],
)
def test_what_is_no_token_is_said_at_the_start(tmp_path, file, environ, problem):
    """A file that is not there or empty, and words that fit no header, are named and not repeated."""
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ValueError, match=problem) as refused:
        token_source(tmp_path / file if file else None, environ)
    assert "a b" not in str(refused.value)


def test_two_hundred_senders_at_once_are_all_taken_in(exporter):
    """Each of 200 senders, of one machine, is acknowledged, without one refusal."""
    bodies = [one_word(f"many/{number}") for number in range(200)]

    def send(body):
        with httpx.Client(base_url=exporter.url, timeout=60, trust_env=False) as client:
            return client.post("/api/v1/segments", content=body)

    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(send, bodies))
    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json()["accepted"] for answer in answers) == 200


def test_zstd_is_understood_and_bounded(exporter, story):
    """Frames one after the other are read, bombs and halves refused."""
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    body = body_of(story, "zstd")
    lines = body.splitlines(keepends=True)
    packed = b"".join(zstandard.compress(b"".join(part)) for part in (lines[:3], lines[3:]))
    zstd = {"Content-Encoding": "zstd"}
    assert exporter.send(packed, **zstd).json()["accepted"] == len(lines)
    assert exporter.send(zstandard.compress(b" " * (64 * 1024 * 1024 + 1)), **zstd).status_code == 413
    assert exporter.send(packed[:-3], **zstd).status_code == 400
    assert exporter.send(b"hello", **zstd).status_code == 400
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    ).compressobj()
    huge_window = wide.compress(body) + wide.flush()
    assert exporter.send(huge_window, **zstd).status_code == 400


def test_many_jobs_come_in_one_body(exporter):
    """Lines of any writers are taken in together; what is none of them is named."""
    mixed = one_word("mix/a") + b"nonsense\n" + one_word("mix/b") + one_word("mix/a")
    answer = exporter.http.post(
        "/api/v1/events", content=gzip.compress(mixed), headers={"Content-Encoding": "gzip"}
    )
    assert answer.status_code == 200
    assert (answer.json()["accepted"], answer.json()["duplicates"]) == (2, 1)
    assert [line["line"] for line in answer.json()["rejected"]] == [2]
    nothing = exporter.http.post("/api/v1/events", content=b"nonsense\n")
    assert (nothing.status_code, nothing.json()["rejected_total"]) == (422, 1)
    assert exporter.http.post("/api/v1/events", content=b"").status_code == 200


def test_a_job_with_a_million_labels_hurts_nobody(exporter, story):
    """Lines with too many or too long labels are rejected with the reason; the rest of the job counts."""
    start = body_of(story, "labels").splitlines()[0]
    many = ",".join(f'"l{n}":"x"' for n in range(65)).encode()
    wrong = [start.replace(b'"labels":{', b'"labels":{' + many + b",")]
    wrong.append(start.replace(b'"labels":{', b'"labels":{"long":"' + b"x" * 1025 + b'",'))
    wrong.append(start.replace(b'"labels":{', b'"labels":{' + b",".join([many] * 1000) + b","))
    answer = exporter.send(b"\n".join([*wrong, start])).json()
    assert (answer["accepted"], answer["rejected_total"]) == (1, 3)
    assert "labels, more than 64" in answer["rejected"][0]["reason"]
    assert "a label of 1025 characters" in answer["rejected"][1]["reason"]
    assert "longer than" in answer["rejected"][2]["reason"]
    varied = [
        start.replace(b'"labels":{', b'"labels":{' + f'"v{n}":"x",'.encode()).replace(
            b'"seq":0', f'"seq":{n + 1}'.encode()
        )
        for n in range(5000)
    ]
    assert exporter.send(b"\n".join(varied)).json()["accepted"] == 5000
    assert len(exporter.job("labels")["labels"]) <= 256


MORE_THAN_KERNELS_HOLD = 2 << 20
"""Bytes of answers that the buffers of a connection here do not take."""


@contextmanager
def served(service, **limits) -> Iterator[str]:
    """An exporter in this process with limits of its own; its URL."""
    import uvicorn  # noqa: PLC0415 - only here

    opened = service(limits=Limits(**limits))
    own = opened.settings.limits
    protocol = patient(own.head_s, own.head_bytes, own.send_s, own.read_bytes_per_s)
    config = uvicorn.Config(
        make_app(opened), http=protocol, log_config=None, log_level="error", lifespan="off", port=0
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def answer_to(url, sent, within_s=60.0):
    """What comes back after some bytes, until the other side closes."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=within_s) as raw:
        raw.sendall(sent)
        received = b""
        while part := raw.recv(65536):
            received += part
        return received


def test_half_a_head_is_not_waited_for(service):
    """A connection on which no whole head comes, or nothing at all, is closed after the deadline."""
    with served(service, head_s=0.3) as url:
        sooner_s = Limits().head_s - 5.0
        assert answer_to(url, b"POST /api/v1/segments HTTP/1.1\r\nHost: x\r\n", sooner_s) == b""
        assert answer_to(url, b"", sooner_s) == b""
        assert httpx.get(f"{url}/healthz").text == "ok"


def test_a_head_without_an_end_is_refused(service):
    """Endless addresses, headers and values are answered 431 at the bound; the next request is served."""
    with served(service, head_bytes=1000) as url:
        for head in (
            b"GET /" + b"a" * 1100,
            b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200,
            b"GET / HTTP/1.1\r\nX: ",
        ):
            answer = answer_to(url, head.ljust(1100, b"z"))
            assert answer.startswith(b"HTTP/1.1 431 ")
            assert answer.endswith(b'{"error":"the head of the request is larger than 1000 bytes"}')
        assert httpx.get(f"{url}/healthz").text == "ok"


def test_trailers_without_an_end_are_cut_off_and_small_chunks_are_not(service, story):
    """What comes beside a body has a bound as well; a body in chunks of a byte is one like others."""
    with served(service, head_bytes=1000) as url:
        head = b"POST /api/v1/segments HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert answer_to(url, head + b"1\r\n\n\r\n0\r\n" + b"X: y\r\n" * 200) == b""
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body_of(story, "small"))
        ending = b"0\r\nX: y\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = answer_to(url, head + chunks + ending)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"rejected_total":0' in answer
        assert answer.endswith(b"\r\n\r\nok")


def test_an_answer_that_nobody_reads_is_not_held_for_ever(service, caplog):
    """A client that stops reading is closed after the deadline, without a word; a slow one is not."""
    with served(service, send_s=0.5) as url:
        parts = urlsplit(url)
        one = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
        length = len(httpx.get(f"{url}/api/v1/openapi.json").content)
        times = MORE_THAN_KERNELS_HOLD // length + 1
        with socket.socket() as idle, socket.socket() as slow:
            for raw in (idle, slow):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                raw.connect((parts.hostname, parts.port))
                raw.settimeout(30)
                raw.sendall(one * times)
            received, pauses = 0, 0
            while received < times * length:
                part = slow.recv(65536)
                assert part
                received += len(part)
                if received >> 18 > pauses:
                    pauses += 1
                    time.sleep(0.1)
            time.sleep(2.0)  # the kernel has read for the idle one as long as it had room
            held = 0
            with contextlib.suppress(ConnectionResetError):
                while part := idle.recv(65536):
                    held += len(part)
        assert pauses > 3
        assert held < times * length
    assert [record.message for record in caplog.records] == []


@pytest.mark.parametrize(("read_bytes_per_s", "is_whole"), [(1 << 30, False), (1 << 15, True)])
def test_who_reads_slower_than_is_waited_for_is_closed(service, read_bytes_per_s, is_whole):
    """A client that reads on all the time, below the rate that is asked for, is closed; above it is not."""
    with served(service, send_s=0.2, read_bytes_per_s=read_bytes_per_s) as url:
        parts = urlsplit(url)
        length = len(httpx.get(f"{url}/api/v1/openapi.json").content)
        times = MORE_THAN_KERNELS_HOLD // length + 1
        received = 0
        with socket.socket() as slow, contextlib.suppress(ConnectionResetError):
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            slow.connect((parts.hostname, parts.port))
            slow.settimeout(30)
            slow.sendall(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * times)
            while received < times * length and (part := slow.recv(32768)):
                received += len(part)
                time.sleep(0.02)
        assert (received >= times * length) == is_whole


def test_very_many_requests_at_once_on_one_connection_are_cut_off(service):
    """Each that waits for the one before it takes a hundred times the room of its bytes."""
    with served(service) as url:
        one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        some = answer_to(url, one * 50 + one.replace(b"Host: x", b"Host: x\r\nConnection: close"))
        assert some.count(b"\r\n\r\nok") == 51
        with contextlib.suppress(ConnectionError):
            assert answer_to(url, one * 5000).count(b"\r\n\r\nok") <= 100
        assert httpx.get(f"{url}/healthz").text == "ok"


def test_a_body_that_is_too_long_is_refused_by_its_head(service):
    """Nobody waits for what will not be taken, nor does a client that asks before it sends."""
    with served(service) as url:
        head = b"POST /api/v1/segments HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % (9 << 20)
        for words in (b"", b"Expect: 100-continue\r\n"):
            answer = answer_to(url, head + words + b"\r\n", Limits().body_s - 5.0)
            assert answer.startswith(b"HTTP/1.1 413 ")
            assert answer.endswith(b'{"error":"the body is larger than 8388608 bytes"}')


def test_what_is_no_request_is_told_once(exporters, tmp_path):
    """However many come: the log is one line; a way to another protocol is not opened."""
    running = exporters("--database", str(tmp_path / "ett.sqlite"), "--log-format", "json")
    for _ in range(20):
        assert answer_to(running.url, b"\x16\x03\x01 hello\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n"
    key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    assert answer_to(running.url, upgrade + key).endswith(b"\r\n\r\nok")
    running.process.terminate()
    assert running.process.wait(60) == 0
    said = [json.loads(each)["message"] for each in running.process.stderr.read().splitlines()]
    assert said == ["Invalid HTTP request received."]


def test_half_a_body_is_not_waited_for(service, story):
    """A body that does not come in time is answered 408, the connection closed, and others go on."""
    with served(service, body_s=0.3) as url:
        head = b"POST /api/v1/segments HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"
        answer = answer_to(url, head)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"the body did not come within 0.3 s" in answer
        assert httpx.post(f"{url}/api/v1/segments", content=body_of(story, "quick")).status_code == 200


def test_slow_bodies_take_nobody_s_turn(service, story):
    """Though more slow senders than turns are in the middle of their bodies, a quick one is served."""
    with served(service, concurrent_segments=2, body_s=300.0) as url:
        parts = urlsplit(url)
        slow = [socket.create_connection((parts.hostname, parts.port)) for _ in range(10)]
        try:
            for each in slow:
                each.sendall(b"POST /api/v1/segments HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            answer = httpx.post(f"{url}/api/v1/segments", content=body_of(story, "quick"), timeout=60)
            assert answer.status_code == 200
        finally:
            for each in slow:
                each.close()


def test_more_bytes_than_there_is_room_for_are_refused(service):
    """Beyond the room for bodies the answer is 503 with Retry-After, and the room comes back."""
    with served(service, unread_bytes=1000) as url:
        refused = httpx.post(f"{url}/api/v1/segments", content=b"\n" * 1001)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert httpx.post(f"{url}/api/v1/segments", content=b"\n" * 900).status_code == 200
        assert httpx.post(f"{url}/api/v1/segments", content=b"\n" * 900).status_code == 200


def peak_mib(running):
    """The most memory that a process ever took."""
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def lines_of_many_values():
    """A text of 60 MiB of good lines, each of thousands of names."""
    names = ",".join(f'"a{number}":1' for number in range(3000)).encode()
    start = one_word("values").replace(b'"heartbeat"', b'"counters","values":{' + names + b"}")
    return start * 2200


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("text", ["nothing", "values"])
def test_senders_of_bombs_take_turns_and_little_memory(exporters, tmp_path, encoding, text):
    """What twelve bodies would unpack to, a gigabyte and much more once decoded, is never there at once."""
    compress = {"gzip": gzip.compress, "zstd": pytest.importorskip("zstandard").compress}[encoding]
    bomb = compress(lines_of_many_values() if text == "values" else b" " * (80 << 20))
    running = exporters("--database", str(tmp_path / "ett.sqlite"))

    def send(_number):
        while True:
            answer = httpx.post(
                f"{running.url}/api/v1/segments",
                content=bomb,
                headers={"Content-Encoding": encoding},
                timeout=120,
                trust_env=False,
            )
            if answer.status_code not in (429, 503):
                return answer.status_code
            time.sleep(int(answer.headers["retry-after"]) / 10)

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert set(pool.map(send, range(12))) == {413}
    assert running.send(one_word("small")).json()["accepted"] == 1
    assert peak_mib(running) < 600


def test_large_bodies_wait_beside_small_ones(service):
    """Where none of them may wait the answer is 503 with Retry-After; a small body is taken in."""
    large = b"".join(one_word("large", seq) for seq in range(50))
    with served(service, small_bytes=9000, concurrent_large=0, waiting_large=0) as url:
        refused = httpx.post(f"{url}/api/v1/segments", content=large)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert httpx.post(f"{url}/api/v1/segments", content=one_word("small")).json()["accepted"] == 1
    with served(service, small_bytes=9000) as url:
        assert httpx.post(f"{url}/api/v1/segments", content=large).json()["accepted"] == 50
        assert httpx.post(f"{url}/api/v1/segments", content=large).json()["duplicates"] == 50


class SlowWay:
    """Carries connections to a server, each request `delay_s` later; `close` ends it."""

    def __init__(self, url, delay_s):
        self._target = urlsplit(url)
        self._delay_s = delay_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        with client, socket.create_connection((self._target.hostname, self._target.port)) as server:
            request = b""
            while b"\r\n\r\n" not in request:
                request += client.recv(65536)
            length = int(request.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            while len(request.split(b"\r\n\r\n", 1)[1]) < length:
                request += client.recv(65536)
            threading.Event().wait(self._delay_s)
            server.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            while part := server.recv(65536):
                client.sendall(part)


def clocks_of(service, job_id):
    return [e.offset_s for batch in service.store.events(job_id) for e in batch if isinstance(e, Clock)]


def test_a_slow_way_is_no_slow_clock_and_a_slow_clock_is_one(exporters, service, tmp_path):
    """Requests that are 2.3 s on their way leave no clock event; a clock that is 60 s behind does."""
    running = exporters("--database", str(tmp_path / "ett.sqlite"))
    way = SlowWay(running.url, 2.3)
    right, wrong = poster(way.url), poster(running.url)
    try:
        for seq in range(2):
            assert is_acknowledgement(right(one_word("slow-way", seq), time.time()))
    finally:
        way.close()
    for seq in range(2):
        assert is_acknowledgement(wrong(one_word("slow-clock", seq), time.time() - 5.0))
    running.process.terminate()
    running.process.wait(60)
    opened = service()
    assert clocks_of(opened, "slow-way") == []
    (offset_s,) = clocks_of(opened, "slow-clock")
    assert offset_s == pytest.approx(-5.0, abs=0.5)
