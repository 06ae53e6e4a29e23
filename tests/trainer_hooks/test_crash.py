"""Last words of real processes."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

HEAD = """
import os, signal, sys, time
from ett_trainer_hooks import Recorder
"""
TRAIN = """
recorder = Recorder.from_env()
for number in recorder.batches(range(100000)):
    if number == 3:
        print("ready", flush=True)
        {then}
"""


def ends(child):
    out, err = child.communicate(timeout=30.0)
    return child.returncode, out.decode(), err.decode()


def test_an_uncaught_exception_is_told_and_still_printed(start, events_in, tmp_path):
    """Failure, then the end, after the last progress; the traceback and status are as ever."""
    status, _, errors = ends(start(HEAD + TRAIN.format(then="raise ValueError('loss is nan')")))
    assert status == 1
    assert errors.endswith("ValueError: loss is nan\n")
    events = events_in(tmp_path / "journal")
    assert [event.kind for event in events[-3:]] == ["progress", "failure", "attempt_end"]
    assert (events[-2].exception, events[-2].message) == ("ValueError", "ValueError: loss is nan")
    assert events[-1].status == "failed"


def test_sigterm_is_told_and_ends_the_process_as_ever(start, events_in, tmp_path):
    """Failure with the signal, then the end; the process dies of SIGTERM."""
    child = start(HEAD + TRAIN.format(then="time.sleep(60)"))
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    status, _, _ = ends(child)
    assert status == -signal.SIGTERM
    *_, failure, end = events_in(tmp_path / "journal")
    assert (failure.kind, failure.signal) == ("failure", signal.SIGTERM)
    assert (end.kind, end.status) == ("attempt_end", "failed")


def test_a_program_with_a_handler_of_its_own_decides_how_it_ends(start, events_in, tmp_path):
    """The program's handler runs; the end is what the program says."""
    handler = """
def leave(number, frame):
    recorder.close("preempted")
    sys.exit(7)
signal.signal(signal.SIGTERM, leave)
"""
    child = start(HEAD + handler + TRAIN.format(then="time.sleep(60)"))
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    status, _, _ = ends(child)
    assert status == 7
    *_, failure, end = events_in(tmp_path / "journal")
    assert failure.signal == signal.SIGTERM
    assert (end.kind, end.status) == ("attempt_end", "preempted")


def test_an_interrupt_from_the_keyboard_is_a_cancellation(start, events_in, tmp_path):
    """Nobody failed where a person stopped the job."""
    child = start(HEAD + TRAIN.format(then="time.sleep(60)"))
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    ends(child)
    kinds = [event.kind for event in events_in(tmp_path / "journal")]
    assert "failure" not in kinds
    assert events_in(tmp_path / "journal")[-1].status == "cancelled"


@pytest.mark.parametrize("leave", ["sys.exit(3)", "break", "os._exit(3)"])
def test_no_status_is_invented_for_a_program_that_just_ends(start, events_in, tmp_path, leave):
    """Without `close` no end is told; steps are, unless the process vanished."""
    ends(start(HEAD + TRAIN.format(then=leave)))
    events = events_in(tmp_path / "journal")
    assert not [event for event in events if event.kind in ("attempt_end", "failure")]
    last = [event for event in events if event.kind == "progress"][-1]
    assert last.step == (1 if leave.startswith("os") else 4)


def test_the_package_imports_without_torch():
    """A trainer host needs msgspec only."""
    import subprocess  # noqa: PLC0415 - used here only

    program = (
        "import sys, ett_trainer_hooks.launcher, ett_trainer_hooks.shipper; "
        "print([name for name in ('torch', 'numpy', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert done.stdout.strip() == "[]"
