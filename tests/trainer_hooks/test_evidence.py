"""What of a job's output is kept, and what of it is not."""

from __future__ import annotations

import time

import pytest

from ett_trainer_hooks.evidence import TEXT_LIMIT, exits_told, redacted, redacted_parts, telling_lines
from ett_trainer_hooks.follow import Lines, Tail


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2hunter2",
        "export HF_TOKEN=hunter2hunter2",
        '{"api_key": "hunter2hunter2"}',
        "Authorization: Bearer hunter2hunter2",
        "authorization=Basic hunter2hunter2",
        "git clone https://me:hunter2hunter2@host/repo",
        "GET /x?access_token=hunter2hunter2&page=1",
        "using ghp_hunter2hunter2",
        "aws_secret_access_key = hunter2hunter2",
        "AccountKey=hunter2hunter2==;EndpointSuffix=core.windows.net",
        "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodW50ZXIyaHVudGVyMiJ9.hunter2hunter2_x",
        "key AIzahunter2hunter2hunter2",
        "x" * 200 + "_TOKEN_FILE_2: 'hunter2hunter2'",
    ],
)
def test_a_secret_does_not_leave_the_node(text):
    """Passwords, tokens and keys are replaced, whatever their form."""
    assert "hunter2" not in redacted(text)
    assert "***" in redacted(text)


@pytest.mark.parametrize(
    "text", ["tokens: 512 per sample", "RuntimeError: shape [2, 3]", "tcp://127.0.0.1:29500 refused"]
)
def test_what_is_no_secret_stays(text):
    """Words that look alike are left as they are."""
    assert redacted(text) == text


def test_a_text_is_cut_to_its_limit_in_bytes():
    """Also where characters are longer than a byte."""
    assert len(redacted("ä" * 10_000).encode()) <= TEXT_LIMIT


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "RuntimeError: Connection closed by peer",
        "failed (exitcode: -9) local_rank: 1 (pid: 12) of binary: python",
        "Killed",
        "Signal 9 (SIGKILL) received by PID 12",
    ],
)
def test_lines_that_may_explain_a_failure_are_told(line):
    """Errors, signals and exit codes are; ordinary progress is not."""
    assert telling_lines(["step 10 loss 0.5", line]) == [line]


def test_the_summary_of_torchrun_tells_exit_codes_by_process():
    """Both its log line and its closing table are understood."""
    table = ["  rank      : 1 (local_rank: 1)", "  exitcode  : -11 (pid: 77)", "  error_file: <N/A>"]
    assert exits_told([*table, "failed (exitcode: 3) local_rank: 0 (pid: 78) of binary: x"]) == {
        77: -11,
        78: 3,
    }


def test_an_endless_line_is_cut_and_memory_stays_bounded():
    """Output without a newline does not pile up."""
    lines = Lines()
    for _ in range(100):
        assert all(len(line) <= 16_384 for line in lines.feed(b"x" * 10_000))
        assert len(lines._rest) <= 16_384


def test_a_tail_reads_what_was_appended_since(tmp_path):
    """A file that is not there yet is an empty one."""
    path = tmp_path / "log"
    tail = Tail(path)
    assert tail.read() == b""
    path.write_bytes(b"one\n")
    assert tail.read() == b"one\n"
    with path.open("ab") as file:
        file.write(b"two\n")
    assert (tail.read(), tail.read()) == (b"two\n", b"")


def test_a_progress_bar_does_not_bury_the_error_behind_it():
    """A bar redraws its line a thousand times before the error: what is left on the line is kept."""
    lines = Lines()
    bar = b"".join(b"\r%3d%%|####     |" % (n % 100) for n in range(900))
    assert lines.feed(bar + b"\rValueError: bad shape\nwindows\r\n") == ["ValueError: bad shape", "windows"]


def test_no_secret_hides_across_two_parts_and_all_parts_are_short():
    """Also a private key over many lines, and a line that is longer than a part."""
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "hunter2Hunter2hunter2\n" * 900
        + "-----END RSA PRIVATE KEY-----"
    )
    text = "x" * 8180 + " password=hunter2\n" + key + "\n" + "ö" * 9000 + "\nlast"
    parts = redacted_parts(text)
    assert all(len(part.encode()) <= TEXT_LIMIT for part in parts)
    assert "hunter2" not in "".join(parts)
    assert parts[-1].endswith("last")


@pytest.mark.parametrize(
    "unit", ["a-", "token-", "a://", "password", "a.", "authorization ", "bearer ", "exitcode :   "]
)
def test_hostile_text_takes_linear_time(unit):
    """Twice the text takes about twice the time: no pattern tries every pair of places."""

    def seconds(length):
        text = (unit * length)[:length]
        began_s = time.process_time()
        redacted_parts(text)
        exits_told([text])
        return time.process_time() - began_s

    short_s = max(min(seconds(1 << 14) for _ in range(3)), 1e-4)
    assert min(seconds(1 << 17) for _ in range(2)) < 8 * 4 * short_s
