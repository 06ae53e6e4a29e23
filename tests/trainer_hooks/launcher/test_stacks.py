"""What a real process is doing, seen from outside; and what is said where it cannot be seen."""

from __future__ import annotations

import os

import pytest

from ett_trainer_hooks import stack_signal
from ett_trainer_hooks.launcher.stalls import stacks
from ett_trainer_hooks.launcher.stalls.flight_recorder import dump_of
from ett_trainer_hooks.launcher.stalls.stacks import Output, kernel_view, python_stacks, snapshot, why_not

STUCK = """
import os, sys, threading
from ett_trainer_hooks import Recorder
{before}
def all_reduce_that_nobody_joins():
    print("ready", flush=True)
    sys.stdin.readline()

def train_step():
    all_reduce_that_nobody_joins()

train_step()
print("on", flush=True)
"""
RECORDED = STUCK.format(before="recorder = Recorder.from_env()")
MAY_BE_TRACED = STUCK.format(
    before="import ctypes; PR_SET_PTRACER = 0x59616D61\n"
    "ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)\n"
    "recorder = Recorder.from_env()"
)
UNRECORDED = STUCK.format(before="")
OWN_HANDLER = STUCK.format(
    before="import signal; signal.signal({number}, lambda *_: print('mine', flush=True)); Recorder.from_env()"
)


def stuck(start, tmp_path, program, **environ):
    """The program, once it waits in `all_reduce_that_nobody_joins` for a line that it can be given."""
    (tmp_path / "line").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "line")
    child = start(
        program.replace("sys.stdin.readline()", f"open({str(tmp_path / 'line')!r}).readline()"), **environ
    )
    assert child.stdout.readline() == b"ready\n"
    return child


def goes_on(child, tmp_path):
    """The program ends as if nobody had looked."""
    (tmp_path / "line").write_text("go\n")
    out, _ = child.communicate(timeout=60.0)
    return (child.returncode, out) == (0, b"on\n")


@pytest.mark.service("py-spy")
def test_py_spy_names_the_function_in_which_a_rank_waits(start, tmp_path):
    """The main thread comes first, the threads of the hooks are left out, the process goes on."""
    child = stuck(start, tmp_path, MAY_BE_TRACED)
    text = snapshot(child.pid, 0, py_spy=stacks.py_spy_path())
    assert "stacks, by py-spy:\nThread" in text
    assert text.index("all_reduce_that_nobody_joins") < text.index("train_step")
    assert "ett-journal" not in text
    assert text.startswith("process: ")
    assert goes_on(child, tmp_path)


def test_without_py_spy_a_recorded_process_answers_a_signal(start, tmp_path):
    """Each time with the stacks of that moment; it goes on as if nothing had been."""
    child = stuck(start, tmp_path, RECORDED)
    for _ in range(2):
        text = snapshot(child.pid, 0, py_spy=None)
        assert "stacks, by faulthandler (py-spy is not installed beside ett):" in text
        assert text.count("in all_reduce_that_nobody_joins") == 1
        assert text.index("in all_reduce_that_nobody_joins") < text.index(
            "ett_trainer_hooks/journal/writer.py"
        )
    assert goes_on(child, tmp_path)


@pytest.mark.parametrize(
    "program", [UNRECORDED, OWN_HANDLER.replace("{number}", str(stack_signal.signal_number()))]
)
def test_a_process_that_did_not_agree_is_never_signalled(start, tmp_path, program):
    """Neither one without handler, which would die, nor one that has a use of its own for the signal."""
    sent = []
    child = stuck(start, tmp_path, program)
    assert stack_signal.ask(child.pid, send=lambda *words: sent.append(words)) is None
    assert sent == []
    assert python_stacks(child.pid, None, stacks.run_program, stack_signal.ask).startswith("no stacks:")
    assert goes_on(child, tmp_path)


def test_a_process_that_replaced_the_program_by_another_is_never_signalled(start, tmp_path):
    """After exec the handler is gone, and with it the memory file."""
    program = "import os, sys\nfrom ett_trainer_hooks import Recorder\nRecorder.from_env()\n"
    program += "os.execv('/bin/sh', ['sh', '-c', 'echo ready; read line < \"$0\"', sys.argv[1]])"
    os.mkfifo(tmp_path / "line")
    child = start(program, str(tmp_path / "line"))
    assert child.stdout.readline() == b"ready\n"
    sent = []
    assert stack_signal.ask(child.pid, send=lambda *words: sent.append(words)) is None
    assert sent == []


def test_a_process_that_does_not_answer_is_given_up(start, tmp_path):
    """It may be inside the kernel: nothing is waited for longer than asked."""
    child = stuck(start, tmp_path, RECORDED)
    slept = []
    assert stack_signal.ask(child.pid, patience_s=0.1, send=lambda *_: None, sleep=slept.append) is None
    assert sum(slept) == pytest.approx(0.1)
    assert goes_on(child, tmp_path)


def test_a_process_that_is_gone_is_said_to_be(start):
    child = start("pass")
    child.wait()
    assert "the process is gone" in snapshot(child.pid, 0, py_spy=None)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (Output(1, "", "Permission Denied: Try running again with elevated permissions"), stacks.REFUSED),
        (Output(1, "", "Error: Operation not permitted (os error 1)"), stacks.REFUSED),
        (Output(None, "", "no answer within 10 s"), "py-spy failed: no answer within 10 s"),
        (Output(1, "", ""), "py-spy failed: status 1"),
    ],
)
def test_why_py_spy_gave_nothing_is_said_so_that_somebody_can_change_it(seen, words):
    assert why_not(seen) == words
    text = python_stacks(7, "py-spy", lambda *_: seen, lambda _: "File x")
    assert text == f"stacks, by faulthandler ({words}):\nFile x"


def test_a_program_that_hangs_or_is_missing_is_an_answer_too():
    assert stacks.run_program(["sleep", "60"], 0.05).err == "no answer within 0.05 s"
    assert stacks.run_program(["/no/such/program"], 1.0).err == "No such file or directory"


def test_many_stacks_are_cut_to_what_an_event_holds():
    seen = Output(0, 'Process 1\n\nThread 1 (idle): "MainThread"\n' + "    f (x.py:1)\n" * 10_000, "")
    text = python_stacks(1, "py-spy", lambda *_: seen, lambda _: None)
    assert len(text) < 8192 - 1000
    assert text.endswith("more characters)")


def test_the_kernel_tells_of_a_process_that_no_signal_reaches(tmp_path):
    """State D, where its threads are, and the way there."""
    for task, (state, where) in {
        "7": ("D", "nfs_wait"),
        "8": ("S", "futex"),
        "9": ("S", "futex"),
        "10": ("R", "0"),
    }.items():
        thread = tmp_path / "7" / "task" / task
        thread.mkdir(parents=True)
        (thread / "stat").write_text(f"{task} (a name) {state} 1 1")
        (thread / "wchan").write_text(where)
    (tmp_path / "7" / "stack").write_text("[<0>] nfs_wait\n[<0>] read\n")
    assert kernel_view(7, tmp_path) == (
        "process: D (waiting inside the kernel, where no signal reaches it), its main thread in nfs_wait; "
        "3 more threads: 2 S in futex, 1 R\n[<0>] nfs_wait\n[<0>] read"
    )


RECORDING = """
import os, sys, threading
pipe, dump = sys.argv[1:]
if pipe != "-":
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
print("ready", flush=True)
if pipe != "-" and dump != "-":
    os.set_blocking(reader, True)
    while not os.read(reader, 100): pass
    open(dump, "w").write("what was recorded")
threading.Event().wait(60.0)
"""


def test_a_rank_that_waits_for_it_dumps_its_flight_recorder(start, tmp_path):
    """Through the named pipe of its rank, as ProcessGroupNCCL waits at it."""
    stems = {
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/ask_",
        "TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/trace_",
    }
    child = start(RECORDING, f"{tmp_path}/ask_3.pipe", f"{tmp_path}/trace_3", **stems)
    child.stdout.readline()
    assert dump_of(child.pid, 3).startswith(f"flight recorder: dumped to {tmp_path}/trace_3 (python -m torch")
    assert (tmp_path / "trace_3").read_text() == "what was recorded"
    assert "an earlier dump is in" in dump_of(child.pid, 3, patience_s=0.1)


def test_a_dump_that_does_not_come_is_said_and_none_is_asked_of_a_rank_that_waits_for_none(start, tmp_path):
    stems = {
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/ask_",
        "TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/trace_",
    }
    child = start(RECORDING, f"{tmp_path}/ask_3.pipe", "-", **stems)
    child.stdout.readline()
    assert dump_of(child.pid, 3, patience_s=0.2).endswith("no dump came within 0.2 s")
    (tmp_path / "ask_4.pipe").write_text("no pipe")
    assert dump_of(child.pid, 4, patience_s=0.2) == ""
    assert (tmp_path / "ask_4.pipe").read_text() == "no pipe"
    assert dump_of(os.getpid(), 5) == ""


def test_registering_twice_is_once_and_a_signal_in_use_is_left_alone(start):
    program = """
import signal, os
from ett_trainer_hooks import stack_signal
number = stack_signal.signal_number()
signal.signal(number, lambda *_: None)
assert not stack_signal.register()
signal.signal(number, signal.SIG_DFL)
assert stack_signal.register() and stack_signal.register()
print(stack_signal.memory_of(os.getpid()) is not None)
"""
    out, err = start(program).communicate(timeout=60.0)
    assert (out, err) == (b"True\n", b"")
