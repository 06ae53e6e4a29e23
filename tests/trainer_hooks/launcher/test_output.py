"""What a launcher hears in the output of a command: bounded, by rank, tracebacks whole."""

from __future__ import annotations

import random

import pytest

from ett_trainer_hooks.launcher.output.follow import Lines, Tail
from ett_trainer_hooks.launcher.output.listener import LOOK_BYTES, Listener, last_bytes
from ett_trainer_hooks.launcher.output.tails import (
    BLOCK_LINES,
    Findings,
    Spoken,
    Tails,
    is_telling,
    shortened,
)

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    step()

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 9, in step
ValueError: bad shape"""


@pytest.fixture
def listener(tmp_path):
    path = tmp_path / "stderr.log"
    path.touch()

    def write(data):
        with path.open("ab") as file:
            file.write(data)

    return Listener("stderr", path, 48 << 10), write


def heard(pair, data=b"", *, at_end=False):
    listener, write = pair
    write(data)
    return listener.listen({0: 0, 1: 1}, at_end=at_end)


def test_a_traceback_is_one_finding_though_another_rank_speaks_in_between(listener):
    """Each rank has a traceback of its own; the exception is its last line."""
    lines = [(f"[rank{rank}]: {line}\n").encode() for line in TRACEBACK.splitlines() for rank in (0, 1)]
    first = heard(listener, b"".join(lines[:9]))
    assert first.findings == []
    second = heard(listener, b"".join(lines[9:]))
    assert second.findings == [f"[rank0]: {TRACEBACK}", f"[rank1]: {TRACEBACK}"]


def test_a_traceback_that_was_cut_off_is_told_at_the_end(listener):
    """As of a process that was killed while it printed."""
    assert heard(listener, b"Traceback (most recent call last):\n  File").findings == []
    assert heard(listener, at_end=True).findings == ["Traceback (most recent call last):\n  File"]


def test_the_last_lines_of_each_rank_are_kept_apart(listener):
    """A rank that says much does not push out another that said the reason long ago."""
    heard(listener, b"[default1]:[rank1]: the reason\n[trainer7]: of nobody\n")
    for number in range(3000):
        heard(listener, b"[rank0]: " + b"x" * 50 + b"%d\n" % number)
    assert listener[0].take_tail(1) == "the reason"
    tail = listener[0].take_tail(0)
    assert tail.endswith("2999")
    assert 47 << 10 < len(tail) <= 48 << 10
    assert listener[0].take_tail(None) == "[trainer7]: of nobody"
    assert listener[0].take_tail(1) == ""


def test_a_flood_is_searched_from_its_end_and_what_was_skipped_is_counted(listener):
    """A look takes a bounded part; a line that was cut at the gap is none."""
    flood = b"Error 1\n" * (LOOK_BYTES // 4)
    found = heard(listener, b"Error begun " + flood + b"Killed\n")
    assert found.findings[-1] == "Killed"
    assert len(found.lines) * 8 < LOOK_BYTES + 16
    assert listener[0].skipped == len(b"Error begun ") + len(flood) + len(b"Killed\n") - LOOK_BYTES
    assert set(found.findings) == {"Error 1", "Killed"}
    assert heard(listener, b"Killed again\n").findings == ["Killed again"]


def test_binary_output_is_no_trouble(listener):
    """Bytes that are no text, without a newline, in any parts."""
    noise = random.Random(7).randbytes(300_000)
    for begin in range(0, len(noise), 50_000):
        heard(listener, noise[begin : begin + 50_000])
    found = heard(listener, b"\xff\xfe\nRuntimeError: \xff\n", at_end=True)
    assert found.findings[-1].startswith("RuntimeError: ")


def test_memory_is_bounded_by_ranks_and_by_lines():
    """Whoever prints marks of a million ranks, or a traceback without an end."""
    tails = Tails(limit=1000)
    findings = Findings()
    for number in range(5000):
        tails.add(Spoken("x" * 100, number))
        findings.feed([Spoken("Traceback (most recent call last):", number)])
    assert len(tails._lines) <= 257
    assert len(findings._open) <= 256
    for _ in range(5000):
        findings.feed([Spoken("  deeper", 1)])
    assert len(findings._open[1]) <= BLOCK_LINES


def test_a_long_traceback_keeps_its_beginning_and_its_end():
    text = "begin" + "x" * 20_000 + "ValueError: the end"
    short = shortened(text, 8192)
    assert (len(short), short[:5], short[-19:]) == (8192, "begin", "ValueError: the end")


def test_the_last_bytes_of_a_file_are_whole_lines(tmp_path):
    path = tmp_path / "stdout.log"
    path.write_bytes(b"one\ntwo\nthree\n")
    assert last_bytes(path, 10) == "three"
    assert last_bytes(path, 100) == "one\ntwo\nthree"
    assert last_bytes(tmp_path / "none", 100) == ""


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
    assert is_telling(line)
    assert not is_telling("step 10 loss 0.5")


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
