"""Processes that outlive the command of a launcher."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from ett_trainer_hooks import procfs
from ett_trainer_hooks.launcher.orphans import MARK, Family, end_all
from ett_trainer_hooks.procfs import process_of

WORKER = """
import os, pathlib, signal, sys, threading
if os.environ["LOCAL_RANK"] == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
recorder.first_batch()
(pathlib.Path(sys.argv[1]) / ("pid" + os.environ["RANK"])).write_text(str(os.getpid()))
for _ in range(600):
    threading.Event().wait(0.1)
"""

TORCHRUN = """
import os, sys
from torch.distributed.run import main
sys.argv = ["torchrun", "--nproc-per-node", "2", *sys.argv[1:]]
print(os.getpid(), flush=True)
main()
"""


def lives(pid):
    found = process_of(pid)
    return found is not None and found.lives


@pytest.mark.service("torch")
def test_the_ranks_of_a_torchrun_that_was_killed_are_ended_and_told(ett_run, events_in, eventually, tmp_path):
    """The one that heeds SIGTERM at once, the other after the grace time; the failure is torchrun's death."""
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    child = ett_run(TORCHRUN, str(worker), str(tmp_path), options=["--grace", "1"])
    agent = int(child.stdout.readline())
    files = [tmp_path / "pid0", tmp_path / "pid1"]
    eventually(lambda: all(file.exists() and file.read_text() for file in files))
    pids = [int(file.read_text()) for file in files]
    os.kill(agent, signal.SIGKILL)
    _, err = child.communicate(timeout=60.0)
    assert child.returncode == 128 + signal.SIGKILL
    assert not any(lives(pid) for pid in pids)
    assert "the command was ended by signal 9 (SIGKILL) and left behind 2 processes" in err
    told = [event for event in events_in(tmp_path / "journal") if event.rank == -1]
    command = next(event for event in told if event.kind == "failure")
    assert (command.of_rank, command.signal) == (None, signal.SIGKILL)
    deaths = {event.of_rank: event for event in told if event.kind == "failure" and event.of_rank is not None}
    assert deaths[1].signal == signal.SIGKILL
    assert deaths[1].time > command.time
    assert deaths[1].message.endswith(", sent by the launcher, as it did not end when told to")
    notes = [event.text for event in told if event.kind == "evidence" and event.source == "launcher"]
    assert any(f"SIGKILL to 1 process (pids {pids[1]})" in note for note in notes)
    assert [event.kind for event in told[-2:]] == ["attempt_end", "job_end"]


def test_what_a_command_leaves_on_purpose_lives_on(ett_run):
    """A server that a command started is no rank, also where the command failed."""
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\nsys.exit(3)\n"
    )
    child = ett_run(program)
    server = int(child.stdout.readline())
    try:
        assert child.wait(timeout=60.0) == 3
        assert lives(server)
    finally:
        os.kill(server, signal.SIGKILL)


RANK = """
import os, threading
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
print(os.getpid(), flush=True)
for _ in range(600):
    threading.Event().wait(0.1)
"""


def test_a_rank_that_a_command_left_with_success_is_said_and_left_alone(ett_run, tmp_path):
    """Whoever starts training in the background and leaves has meant it."""
    worker = tmp_path / "worker.py"
    worker.write_text(RANK)
    program = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, {str(worker)!r}], stdout=subprocess.PIPE, text=True)\n"
        "print(child.stdout.readline(), end='', flush=True)\n"
        f"import time; [time.sleep(0.05) for _ in range(10)]\n"
    )
    child = ett_run(program)
    rank = int(child.stdout.readline())
    try:
        _, err = child.communicate(timeout=60.0)
        assert child.returncode == 0
        assert lives(rank)
        assert f"left ranks that go on: 1 process (pids {rank}); nobody watches them any more" in err
    finally:
        os.kill(rank, signal.SIGKILL)


def test_a_process_that_lost_its_parent_is_waited_for(ett_run, eventually):
    """A launcher that is the first process of a container leaves no zombies."""
    program = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    pid = os.fork()\n"
        "    if pid == 0: time.sleep(0.5); os._exit(0)\n"
        "    print(pid, flush=True); os._exit(0)\n"
        "os.wait()\n"
        "sys.stdin.read() if len(sys.argv) > 1 else [time.sleep(0.1) for _ in range(100)]\n"
    )
    child = ett_run(program)
    orphan = int(child.stdout.readline())
    assert process_of(orphan).parent == child.pid
    eventually(lambda: not Path(f"/proc/{orphan}").exists())
    assert child.poll() is None


def test_a_launcher_of_a_launcher_leaves_its_ranks_to_it(ett_run, events_in, tmp_path):
    """`ett run` inside of `ett run`: the status passes through both."""
    program = (
        "import subprocess, sys\n"
        f"sys.exit(subprocess.call([{str(Path(sys.executable).with_name('ett'))!r}, 'run', '--quiet', '--', "
        "sys.executable, '-c', 'raise SystemExit(7)']))\n"
    )
    child = ett_run(program)
    child.communicate(timeout=60.0)
    assert child.returncode == 7
    ends = [event for event in events_in(tmp_path / "journal") if event.kind == "attempt_end"]
    assert [event.exit_code for event in ends] == [7, 7]


def test_without_the_help_of_the_kernel_a_mark_finds_those_who_lost_their_parent():
    """A process whose parents are gone is found by its environment, and what it started with it."""
    program = "import subprocess, sys; subprocess.Popen(['sleep', '60'], start_new_session=True)"
    environ = {**os.environ, MARK: "0123456789abcdef"}
    family = Family("0123456789abcdef", {}, adopted=False)
    before = {each.pid for each in family.living()}
    subprocess.run([sys.executable, "-c", program], env=environ, check=True)
    (lost,) = [each for each in family.living() if each.pid not in before]
    try:
        assert procfs.name(lost.pid) == "sleep"
        assert lost.pid not in [each.pid for each in Family("another", {}, adopted=False).living()]
    finally:
        end_all([lost], signal.SIGKILL)


def test_a_tree_is_found_also_where_the_kernel_keeps_no_lists_of_children(tmp_path):
    """Then all processes are looked at."""
    for pid, parent in ((7, 1), (8, 7), (9, 8), (10, 1)):
        place = tmp_path / str(pid)
        place.mkdir()
        (place / "stat").write_text(f"{pid} (x) S {parent} 1 1 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5000 0 0\n")
    assert [each.pid for each in procfs.tree_below(7, tmp_path)] == [8, 9]


def test_a_process_that_took_the_number_of_another_is_left_alone():
    """A signal goes to the process that was seen, not to its number."""
    child = subprocess.Popen(["sleep", "60"])
    try:
        seen = procfs.process_of(child.pid)
        end_all([structs.replace(seen, started_ticks=seen.started_ticks - 1)], signal.SIGKILL)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.2)
    finally:
        child.kill()
        child.wait()
