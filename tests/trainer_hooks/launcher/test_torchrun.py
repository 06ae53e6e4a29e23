"""What torchrun leaves behind of a failed rank is understood, whatever its form."""

from __future__ import annotations

import json
import time

import pytest

from ett_trainer_hooks.launcher.torchrun import (
    agent_event,
    error_in_words,
    exits_told,
    read_error,
    worker_error,
)


@pytest.mark.service("torch")
def test_the_error_file_that_torch_writes_is_understood(tmp_path, monkeypatch):
    """Exception, words, traceback and the second are those of the program."""
    from torch.distributed.elastic.multiprocessing.errors import record  # noqa: PLC0415 - needs torch

    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def main():
        raise KeyError("no such table")

    with pytest.raises(KeyError):
        main()
    error = read_error(path)
    assert (error.exception, error.message) == ("KeyError", "'no such table'")
    assert error.traceback.endswith("KeyError: 'no such table'")
    assert abs(error.at - path.stat().st_mtime) < 2.0
    assert "Traceback (most recent call last):" in error_in_words("rank 1", error)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b'{"message": 3}',
        b'{"other": "x"}',
        b"\xff",
        b"[" * 100_000,
        b'{"message": null}',
    ],
)
def test_an_error_file_that_is_none_says_nothing(data):
    assert worker_error(data) is None


@pytest.mark.parametrize("stamp", ["x", "-1", "nan", "1e99", None, [1]])
def test_an_impossible_time_is_left_out(stamp):
    """The rest of the file counts all the same."""
    data = json.dumps({"message": {"message": "E: m", "extraInfo": {"timestamp": stamp}}}).encode()
    assert worker_error(data).at is None
    assert worker_error(data).message == "m"


def event(**details):
    metadata = {"global_rank": 1, "worker_id": "4711", "raw_error": None, "metadata": "{}", **details}
    return json.dumps({"name": "torchelastic.worker.status.FAILED", "source": "WORKER", "metadata": metadata})


def test_the_event_log_of_torchrun_tells_exits_and_errors():
    """The error is given as text or as the content of an error file; none is `<NONE>`."""
    exits = json.dumps({"exit_code": [-15], "worker_pid": [4711]})
    told = agent_event(event(metadata=exits, raw_error='{"message": "<NONE>"}'))
    assert (told.state, told.rank, told.pid, told.exit_code, told.error) == ("FAILED", 1, 4711, -15, "")
    content = {
        "message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "x", "timestamp": "1"}}
    }
    assert agent_event(event(raw_error=json.dumps(content))).error == "ValueError: bad"
    assert agent_event(event(raw_error="plain words")).error == "plain words"


@pytest.mark.parametrize(
    "line",
    [
        "step 10",
        '{"name": "torchelastic.worker.status.FAILED"',
        '{"name": "torchelastic.worker.status.FAILED", "metadata": 3}',
        '["torchelastic.x"]',
    ],
)
def test_a_line_that_is_no_event_of_torchrun_says_nothing(line):
    assert agent_event(line) is None


@pytest.mark.parametrize(
    "details",
    [{"worker_id": None}, {"worker_id": "x"}, {"metadata": "[1]"}, {"metadata": '{"exit_code": [null]}'}],
)
def test_an_event_without_its_numbers_is_still_one(details):
    assert agent_event(event(**details)).exit_code is None


def test_the_summary_of_torchrun_tells_exit_codes_by_process():
    """Both its log line and its closing table are understood."""
    table = ["  rank      : 1 (local_rank: 1)", "  exitcode  : -11 (pid: 77)", "  error_file: <N/A>"]
    assert exits_told([*table, "failed (exitcode: 3) local_rank: 0 (pid: 78) of binary: x"]) == {
        77: -11,
        78: 3,
    }


def test_exit_codes_of_a_hostile_log_take_linear_time():
    """Twice the text takes about twice the time."""

    def seconds(length):
        text = ("exitcode :   " * length)[:length]
        began_s = time.process_time()
        exits_told([text])
        return time.process_time() - began_s

    short_s = max(min(seconds(1 << 14) for _ in range(3)), 1e-4)
    assert min(seconds(1 << 17) for _ in range(2)) < 8 * 4 * short_s
