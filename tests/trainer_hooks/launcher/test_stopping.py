"""Signals to a launcher: who sent them, whom they reach, and that the job does end."""

from __future__ import annotations

import os
import signal
import time

import pytest

from ett_trainer_hooks.launcher.stopping import Sender, Stop, listening, signal_group

READY = """
import os, signal, sys, threading
{setup}
print("ready", flush=True)
for _ in range(600):
    threading.Event().wait(0.1)
"""

STUBBORN = READY.format(setup="signal.signal(signal.SIGTERM, signal.SIG_IGN)")


def of(events, kind):
    return [event for event in events if event.kind == kind]


@pytest.fixture(autouse=True)
def a_hangup_reaches_what_is_started():
    """Whoever runs the tests under nohup has it ignored, and what they start would ignore it too."""
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def stopped(ett_run, events_in, tmp_path):
    """Runs a program, does something to its launcher once it is ready, and returns what the launcher told."""

    def run(program, act, options=(), **environ):
        child = ett_run(program, options=options, **environ)
        assert child.stdout.readline() == "ready\n"
        act(child)
        _, err = child.communicate(timeout=60.0)
        told = [event for event in events_in(tmp_path / "journal") if event.rank == -1]
        return child.returncode, err, told

    return run


def sends(*numbers, pause=None):
    def act(child):
        for number in numbers:
            child.send_signal(number)
            if pause:
                time.sleep(pause)

    return act


def notes(told):
    return [event.text for event in of(told, "evidence") if event.source == "launcher"]


@pytest.mark.parametrize(
    ("number", "environ", "status"),
    [
        (signal.SIGTERM, {}, "preempted"),
        (signal.SIGTERM, {"SLURM_JOB_END_TIME": "1000000000"}, "timed_out"),
        (signal.SIGTERM, {"SLURM_JOB_END_TIME": "3900000000"}, "preempted"),
        (signal.SIGINT, {"SLURM_JOB_END_TIME": "1000000000"}, "cancelled"),
        (signal.SIGHUP, {}, "cancelled"),
    ],
)
def test_who_stopped_the_job_is_told(stopped, number, environ, status):
    """The sender by pid, name and user; the status by the signal, and by the time limit of Slurm."""
    code, err, told = stopped(READY.format(setup=""), sends(number), **environ)
    name = signal.Signals(number).name
    assert code in (128 + number, 1)
    assert (of(told, "attempt_end")[0].status, told[-1].status) == (status, status)
    (note,) = notes(told)
    assert f"{name} from process {os.getpid()} (" in note
    assert f"uid {os.geteuid()}); the job ends as {status}" in note
    assert f"{name} from process {os.getpid()}" in err


def test_a_command_that_does_not_end_in_its_grace_time_is_killed(stopped):
    """SIGKILL after the seconds that were given; who stopped the job decides how it ends."""
    code, err, told = stopped(STUBBORN, sends(signal.SIGTERM), options=["--grace", "0.5"])
    assert code == 128 + signal.SIGKILL
    assert told[-1].status == "preempted"
    assert "did not end within its 0.5 s of grace" in err
    assert "SIGKILL to 1 process (pids " in notes(told)[-1]


def test_a_second_signal_ends_the_command_at_once(stopped):
    """Whoever presses Ctrl-C twice does not wait for the grace time."""
    setup = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    act = sends(signal.SIGINT, signal.SIGINT, pause=0.7)
    code, _, told = stopped(READY.format(setup=setup), act, options=["--grace", "600"])
    assert code == 128 + signal.SIGKILL
    assert told[-1].status == "cancelled"


def test_the_same_stop_that_comes_twice_at_once_is_one(stopped):
    """Some senders signal a process and its group; the command keeps its grace time."""
    setup = "signal.signal(signal.SIGTERM, lambda *_: (threading.Event().wait(1.0), sys.exit(0)))"
    code, _, told = stopped(READY.format(setup=setup), sends(signal.SIGTERM, signal.SIGTERM))
    assert code == 0
    assert told[-1].status == "preempted"


FAMILY = """
import signal, subprocess, sys
child = "import signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(3)); {wait}"
sys.exit(subprocess.call([sys.executable, "-c", child], start_new_session=True))
""".replace("{wait}", "print('ready', flush=True); [__import__('time').sleep(0.1) for _ in range(600)]")


def test_a_warning_reaches_those_who_handle_it_and_ends_nobody(stopped):
    """SIGUSR1 to a rank in a session of its own; the parent, which has no handler, lives on."""
    code, _, told = stopped(FAMILY, sends(signal.SIGUSR1))
    assert code == 3
    assert told[-1].status == "failed"
    assert "passed it on to those who handle it" in notes(told)[0]


def test_a_warning_that_nobody_handles_changes_nothing(stopped):
    """Slurm sends such signals before a time limit; the job is not ended by them."""
    program = READY.replace("range(600)", "range(10)").format(setup="")
    code, _, told = stopped(program, sends(signal.SIGUSR2, signal.SIGUSR1))
    assert code == 0
    assert told[-1].status == "succeeded"


def test_the_command_begins_with_no_signal_blocked(ett_run):
    """What the launcher blocks for itself is not handed down."""
    child = ett_run("import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))")
    assert child.stdout.readline() == "set()\n"


def heard_by(stop, number, sender):
    stop.send_to(4711)
    stop.heard(number, sender)


@pytest.mark.parametrize(
    ("is_task", "sender", "is_passed_on"),
    [(True, "slurmstepd", False), (False, "slurmstepd", True), (True, "kubelet", True)],
)
def test_what_the_scheduler_sends_to_every_process_is_not_sent_again(is_task, sender, is_passed_on):
    """A second SIGTERM would break off the clean-up; in a batch script only the shell gets one."""
    sent = []
    stop = Stop(lambda: 1e9, is_task=is_task, send=lambda *what: sent.append(what) or True)
    heard_by(stop, signal.SIGTERM, Sender(12, 0, sender))
    assert sent == ([(4711, signal.SIGTERM)] if is_passed_on else [])
    assert stop.decided == ("preempted", 1e9)


def test_a_signal_that_the_kernel_refuses_is_told_and_ends_nothing():
    """The command may belong to another user by now."""

    def refuse(_group, _number):
        raise PermissionError

    stop = Stop(lambda: 1e9, send=lambda group, number: signal_group(group, number, refuse))
    heard_by(stop, signal.SIGTERM, None)
    assert stop.notes[0] == "SIGTERM to the command was refused by the kernel"


def test_a_signal_that_came_before_the_command_is_passed_on_to_it():
    sent = []
    stop = Stop(lambda: 1e9, send=lambda *what: sent.append(what) or True)
    stop.heard(signal.SIGINT)
    assert sent == []
    stop.send_to(4711)
    assert sent == [(4711, signal.SIGINT)]


def test_a_sender_outside_of_the_container_is_called_so():
    assert str(Sender(0, 0)) == "the kernel or a process outside this container"
    assert str(Sender(7, 3, "")) == "process 7 (a process that is gone, uid 3)"


def test_after_listening_signals_and_mask_are_as_before(eventually):
    """Handlers and mask are those of the program that launches, whichever of its threads got the signal."""
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    stop = Stop(time.time)
    with listening(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        eventually(stop.asked.is_set)
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask


SAVES = """
import os, signal, subprocess, sys, time
child = '''
import pathlib, signal, sys, time
told = []
def save(number, frame):
    told.append(number)
    if len(told) == 1:
        time.sleep(1.0)
        pathlib.Path(sys.argv[1]).write_text(f"saved after {len(told)} signal")
        sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
[time.sleep(0.1) for _ in range(600)]
'''
subprocess.Popen([sys.executable, "-c", child, sys.argv[1]]).wait()
"""


def test_what_saves_after_its_parent_has_left_is_waited_for_and_not_told_again(ett_run, tmp_path):
    """A script dies of SIGTERM at once; the trainer in its group got it too, and is about a checkpoint."""
    saved = tmp_path / "saved"
    child = ett_run(SAVES, str(saved))
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=60.0)
    assert child.returncode == 128 + signal.SIGTERM
    assert saved.read_text() == "saved after 1 signal"
    assert "and left behind 1 process" in err
