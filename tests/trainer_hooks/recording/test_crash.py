"""Last words of real processes."""

from __future__ import annotations

import os
import signal
import subprocess
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
    out, err = child.communicate(timeout=60.0)
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


def test_a_handler_that_calls_ours_decides_how_the_program_ends(start, events_in, tmp_path):
    """As trainers do that keep what they find: the signal is told, the program goes on to its own end."""
    around = """
ours = signal.getsignal(signal.SIGTERM)
signal.signal(signal.SIGTERM, lambda number, frame: ours(number, frame))
os.kill(os.getpid(), signal.SIGTERM)
recorder.close("preempted")
print("saved")
"""
    status, out, _ = ends(start(HEAD + "recorder = Recorder.from_env()\n" + around))
    assert (status, out) == (0, "saved\n")
    *_, failure, end = events_in(tmp_path / "journal")
    assert failure.signal == signal.SIGTERM
    assert (end.kind, end.status) == ("attempt_end", "preempted")


WAITS_IN_NATIVE_CODE = """
import ctypes
libc = ctypes.CDLL(None)
lock = ctypes.create_string_buffer(256)  # a mutex of zeros is one that nobody holds
libc.pthread_mutex_lock(lock)
print("ready", flush=True)
libc.pthread_mutex_lock(lock)
"""


def test_sigterm_ends_a_process_that_waits_in_native_code(start, events_in, tmp_path):
    """No instruction of Python comes any more: the signal is told, and ends the process as without us."""
    child = start(
        HEAD + "recorder = Recorder.from_env()\nnext(iter(recorder.batches([1])))" + WAITS_IN_NATIVE_CODE
    )
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    status, _, errors = ends(child)
    assert (status, errors) == (-signal.SIGTERM, "")
    *_, failure, end = events_in(tmp_path / "journal")
    assert (failure.kind, failure.signal, failure.message) == ("failure", signal.SIGTERM, "received SIGTERM")
    assert (end.kind, end.status) == ("attempt_end", "failed")


def test_a_handler_of_the_program_is_waited_for_as_without_us(start):
    """It may have a checkpoint to save: a process that waits in native code is not ended over its head."""
    handler = "signal.signal(signal.SIGTERM, lambda number, frame: None)\n"
    child = start(HEAD + "recorder = Recorder.from_env()\n" + handler + WAITS_IN_NATIVE_CODE)
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(1.0)


def test_sigterm_ends_a_forked_child_that_waits_in_native_code(start, events_in, tmp_path):
    """A child has nothing to tell, is ended as without us, and its parent goes on."""
    program = """
recorder = Recorder.from_env()
child = os.fork()
if child == 0:
{wait}
ended, deadline = 0, time.monotonic() + 60.0
while ended == 0 and time.monotonic() < deadline:
    ended, status = os.waitpid(child, os.WNOHANG)
    time.sleep(0.05)
os.kill(child, signal.SIGKILL) if ended == 0 else print(os.waitstatus_to_exitcode(status))
time.sleep(0.5)
recorder.close()
"""
    wait = "".join(
        f"    {line}\n" for line in WAITS_IN_NATIVE_CODE.replace('"ready"', "os.getpid()").splitlines()
    )
    parent = start(HEAD + program.format(wait=wait))
    os.kill(int(parent.stdout.readline()), signal.SIGTERM)
    status, out, _ = ends(parent)
    assert (status, out) == (0, f"{-signal.SIGTERM}\n")
    assert [event.kind for event in events_in(tmp_path / "journal")] == ["attempt_start", "attempt_end"]


def test_sigterm_ends_a_process_whose_second_recorder_is_told(start, events_in, tmp_path):
    """The handler of a recorder that is closed is none of the program."""
    program = "Recorder.from_env().close()\n"
    child = start(HEAD + program + TRAIN.format(then="time.sleep(60)"))
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    status, _, _ = ends(child)
    assert status == -signal.SIGTERM
    *_, failure, end = events_in(tmp_path / "journal")
    assert (failure.signal, end.status) == (signal.SIGTERM, "failed")


def test_an_event_loop_of_the_program_keeps_its_news_of_signals(start):
    """What `asyncio` listens with is left alone, before and after the recorder is made."""
    program = """
import asyncio
async def main(then):
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.set)
    then()
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(heard.wait(), 60)
asyncio.run(main(Recorder.from_env))
asyncio.run(main(Recorder.from_env))
Recorder.from_env().close()
"""
    status, _, errors = ends(start(HEAD + program))
    assert (status, errors) == (0, "")


def test_an_interrupt_from_the_keyboard_is_a_cancellation(start, events_in, tmp_path):
    """Nobody failed where a person stopped the job."""
    child = start(HEAD + TRAIN.format(then="time.sleep(60)"))
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    ends(child)
    kinds = [event.kind for event in events_in(tmp_path / "journal")]
    assert "failure" not in kinds
    assert events_in(tmp_path / "journal")[-1].status == "cancelled"


@pytest.mark.parametrize("leave", ["break", "os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_no_status_is_invented_for_a_program_that_just_ends(start, events_in, tmp_path, leave):
    """Without `close` no end is told; steps are, unless the process vanished."""
    ends(start(HEAD + TRAIN.format(then=leave)))
    events = events_in(tmp_path / "journal")
    assert not [event for event in events if event.kind in ("attempt_end", "failure")]
    last = [event for event in events if event.kind == "progress"][-1]
    assert last.step == (1 if leave.startswith("os") else 4)


@pytest.mark.parametrize(
    "case",
    [
        ("sys.exit(3)", 3, "exited with status 3"),
        ("raise SystemExit(3)", 3, "exited with status 3"),
        ("exit(4)", 4, "exited with status 4"),
        ("sys.exit('no more data')", 1, "no more data"),
        ("sys.exit(0)", 0, ""),
        ("sys.exit()", 0, ""),
        ("raise SystemExit", 0, ""),
    ],
)
def test_a_status_to_exit_with_is_told(start, events_in, tmp_path, case):
    """Not 0 is a failure, 0 a success, and the step in hand is none."""
    leave, code, words = case
    status, _, _ = ends(start(HEAD + TRAIN.format(then=leave)))
    assert status == code
    *_, progress, before, end = events_in(tmp_path / "journal")
    assert (end.kind, end.status, end.exit_code) == ("attempt_end", "failed" if code else "succeeded", code)
    if code:
        assert (before.kind, before.message, before.exit_code) == ("failure", words, code)
    else:
        progress = before
    assert (progress.kind, progress.step) == ("progress", 3)


@pytest.mark.parametrize("leave", ["sys.exit(5)", "raise SystemExit(5)"])
def test_a_status_that_leaves_a_phase_is_told(start, events_in, tmp_path, leave):
    """Also without any loop, and through a phase that begins on the way out."""
    program = f"""
recorder = Recorder.from_env()
try:
    with recorder.phase("model_init"):
        {leave}
finally:
    with recorder.phase("shutdown"):
        pass
"""
    status, _, _ = ends(start(HEAD + program))
    assert status == 5
    events = events_in(tmp_path / "journal")
    assert [event.kind for event in events[-2:]] == ["failure", "attempt_end"]
    assert events[-1].exit_code == 5
    assert events[2].error == "SystemExit: 5"


@pytest.mark.parametrize("on", ["for _ in recorder.batches(range(2)): pass", "recorder.phase('x')(id)(0)"])
def test_an_exit_that_was_caught_is_no_end(start, events_in, tmp_path, on):
    """A program that went on has not exited; the same in a thread, which ends only itself."""
    program = f"""
import threading
recorder = Recorder.from_env()
try:
    sys.exit(2)
except SystemExit:
    {on}
{on}
thread = threading.Thread(target=sys.exit, args=(3,))
thread.start()
thread.join()
"""
    status, _, errors = ends(start(HEAD + program))
    assert (status, errors) == (0, "")
    assert not [e for e in events_in(tmp_path / "journal") if e.kind in ("attempt_end", "failure")]


LOADERS = """
import multiprocessing, threading

def load(sender, recorder):
    for _ in recorder.batches(range(2)) if recorder else range(2):
        sender.send(1)
    if recorder:
        recorder.close("failed")
    sys.exit(3)

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    recorder = Recorder.from_env()
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=load, args=(sender, recorder if "{method}" == "fork" else None))
    worker.start()
    for _ in recorder.batches(range(2)):
        receiver.recv()
    worker.join()
    recorder.close("succeeded" if worker.exitcode == 3 else "failed")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loader_workers_say_nothing(start, events_in, tmp_path, method):
    """Forked or spawned, whatever they do with the recorder, and however they end."""
    status, _, errors = ends(start(HEAD + LOADERS.format(method=method)))
    assert status == 0, errors
    (path,) = (tmp_path / "journal").iterdir()
    events = events_in(path)
    assert [event.seq for event in events] == list(range(len(events)))
    assert (events[-1].kind, events[-1].status) == ("attempt_end", "succeeded")
    assert events[-2].step == 2


OUTSIDE = """
import multiprocessing
recorder = Recorder.from_env()

def load(sender):
    for number in recorder.batches(range(2)):
        sender.send(number)
    recorder.close("failed")
    sys.exit(3)

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=load, args=(sender,))
    worker.start()
    for _ in recorder.batches(range(2)):
        receiver.recv()
    worker.join()
    recorder.close("succeeded" if worker.exitcode == 3 else "failed")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_that_imports_the_program_again_says_nothing(start, events_in, tmp_path, method):
    """Where the program asks for its recorder as it is imported; the worker is no second rank."""
    status, _, errors = ends(start(HEAD + OUTSIDE.format(method=method)))
    assert (status, errors) == (0, "")
    (path,) = (tmp_path / "journal").iterdir()
    events = events_in(path)
    assert [event.seq for event in events] == list(range(len(events)))
    assert (events[-1].kind, events[-1].status) == ("attempt_end", "succeeded")
    assert events[-2].step == 2


SHUTDOWN = """
import threading
recorder = Recorder.from_env()
phase = recorder.phase("never left")
phase.__enter__()
batches = recorder.batches(range(10))
next(batches), next(batches)

def train():
    with recorder.phase("publish", track="side"):
        time.sleep(60)

threading.Thread(target=train, daemon=True).start()
held = [recorder, batches, phase]
held.append(held)
"""


def test_what_is_open_at_the_end_of_the_interpreter_leaves_a_readable_journal(start, events_in, tmp_path):
    """Phases, a generator and a thread in the middle: no step in hand is claimed, nothing is printed."""
    status, _, errors = ends(start(HEAD + SHUTDOWN))
    assert (status, errors) == (0, "")
    events = events_in(tmp_path / "journal")
    assert {event.phase for event in events if event.kind == "phase_begin"} == {"never left", "publish"}
    assert {event.step for event in events if event.kind == "progress"} == {1}
    assert sorted(event.seq for event in events) == list(range(len(events)))


MISPLACED = """
recorder = Recorder.from_env()
for _ in recorder.batches(range(3)):
    pass
recorder.close()
"""


@pytest.mark.parametrize("place", ["/proc/nope", "/dev/null", "/dev/null/deeper", "file"])
def test_a_journal_directory_that_takes_no_file_is_replaced_by_a_temporary_one(
    start, events_in, tmp_path, place
):
    """Also without a launcher: one warning names it, and the events are there."""
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    wanted = place if place.startswith("/") else str(tmp_path / place)
    child = start(HEAD + MISPLACED, ETT_JOURNAL_DIR=wanted, TMPDIR=str(tmp_path / "tmp"))
    status, out, errors = ends(child)
    assert (status, out) == (0, "")
    (directory,) = (tmp_path / "tmp").iterdir()
    assert errors.startswith(f"ettwatch: journal directory {wanted} cannot be written (")
    assert errors.endswith(f"); events go to {directory}\n")
    assert errors.count("\n") == 1
    assert events_in(directory)[-1].status == "succeeded"


def test_where_no_directory_takes_a_file_training_goes_on(start):
    """That is said once as well, and the loss at the end."""
    nowhere = "import tempfile; tempfile.mkdtemp = lambda **_: (_ for _ in ()).throw(OSError(28, 'full'))\n"
    status, _, errors = ends(start(HEAD + nowhere + MISPLACED, ETT_JOURNAL_DIR="/proc/nope"))
    assert status == 0
    first, *others = errors.splitlines()
    assert first.endswith("nor can a temporary one (full); events wait in memory")
    assert [text.rpartition(": ")[2] for text in others] == [
        "No such file or directory; training goes on, events wait in memory",
        "the last events could not be written",
    ]


def test_a_switch_that_is_not_understood_is_ignored_with_a_warning(start, events_in, tmp_path):
    """Only 1 switches the hooks off, and whoever meant it hears of it."""
    status, _, errors = ends(start(HEAD + MISPLACED, ETT_DISABLED="true"))
    assert (status, errors) == (0, "ettwatch: ETT_DISABLED='true' is ignored: 1 switches the hooks off\n")
    assert events_in(tmp_path / "journal")[-1].status == "succeeded"
    assert ends(start(HEAD + MISPLACED, ETT_DISABLED="0"))[2] == ""


def test_sizes_of_journals_that_cannot_be_used_are_told_once(start, events_in, tmp_path):
    """The usual ones are used, and the job goes on."""
    status, _, errors = ends(start(HEAD + MISPLACED, ETT_JOURNAL_MAX_BYTES="2G"))
    assert status == 0
    assert errors.startswith("ettwatch: ETT_JOURNAL_MAX_BYTES='2G': that is not a whole number of bytes;")
    assert errors.count("\n") == 1
    assert events_in(tmp_path / "journal")[-1].status == "succeeded"


def test_the_package_imports_without_torch():
    """A trainer host needs msgspec only."""
    import subprocess  # noqa: PLC0415 - used here only

    program = (
        "import sys, ett_trainer_hooks.launcher, ett_trainer_hooks.shipping.shipper; "
        "print([name for name in ('torch', 'numpy', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert done.stdout.strip() == "[]"
