"""`ett run` over jobs that stop making progress: two ranks of gloo in a deadlock, and single programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ett_here import status_of

ETT = str(Path(sys.executable).with_name("ett"))

DEADLOCK = """
import os, threading
import torch, torch.distributed as dist
from ett_trainer_hooks import Recorder

def sleeps_before_the_collective():
    threading.Event().wait(600.0)

def waits_inside_the_collective():
    dist.all_reduce(torch.ones(1))

recorder = Recorder.from_env(report_every_s=0.2)
with recorder.phase("process_group"):
    dist.init_process_group("gloo")
for number in recorder.batches(range(10)):
    dist.all_reduce(torch.ones(1))
    if number in (1, 2):
        with recorder.phase("evaluation"):
            pass
    if number == 5:
        sleeps_before_the_collective() if dist.get_rank() else waits_inside_the_collective()
"""

PAUSED = """
import signal, threading
from ett_trainer_hooks import Recorder

def reads_from_a_slow_disk():
    threading.Event().wait({pause})

{more}
recorder = Recorder.from_env(report_every_s=0.2)
for number in recorder.batches(range(60)):
    threading.Event().wait(0.02)
    if number == 4:
        reads_from_a_slow_disk()
recorder.close()
"""


UNTIL_SEEN = """
import os, pathlib, time

def is_seen():
    journals = pathlib.Path(os.environ["ETT_JOURNAL_DIR"]).glob("*.jsonl")
    return any('"source":"stack"' in journal.read_text() for journal in journals)

def reads_from_a_slow_disk():
    deadline_s = time.monotonic() + 60.0
    while not is_seen() and time.monotonic() < deadline_s:
        threading.Event().wait(0.1)
"""


@pytest.fixture
def ran(tmp_path, trainer_env, events_in):
    """Runs a command under `ett run`: status, what it said, and the launcher's events."""
    environ = {name: text for name, text in trainer_env.items() if not name.startswith("ETT_")}

    def run(*command, options=()):
        place = ["--job-id", "job", "--journal-dir", str(tmp_path / "journal")]
        done = subprocess.run(
            [ETT, "run", *place, *options, "--", sys.executable, *command],
            env=environ, capture_output=True, text=True, timeout=120.0, check=False,
        )  # fmt: skip
        told = [event for event in events_in(tmp_path / "journal") if event.rank == -1]
        return done.returncode, done.stderr, told

    return run


def evidence(told, source):
    return [event.text for event in told if event.kind == "evidence" and event.source == source]


@pytest.mark.service("torch")
@pytest.mark.service("py-spy")
def test_a_deadlock_of_two_ranks_is_told_with_the_function_that_each_of_them_is_in(ran, tmp_path):
    """Rank 1 never comes to the collective in which rank 0 waits; told to, the launcher ends them."""
    worker = tmp_path / "worker.py"
    worker.write_text(DEADLOCK)
    options = ["--stall-after", "2", "--stall-action", "kill"]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    status, said, told = ran(*torchrun, "--rdzv-endpoint", "127.0.0.1:0", str(worker), options=options)
    (stall,) = evidence(told, "stall")
    assert stall.startswith("no progress for ")
    assert "ranks 0-1 in the loop (last report: step " in stall
    first, second = evidence(told, "stack")
    assert first.startswith("rank 0 in the loop")
    assert "waits_inside_the_collective (worker.py:" in first
    assert second.startswith("rank 1 in the loop")
    assert "sleeps_before_the_collective (worker.py:" in second
    assert all(len(text.encode()) <= 8192 for text in (first, second))
    failures = [event.message for event in told if event.kind == "failure"]
    assert failures[0].startswith("stalled: no progress for ")
    assert status != 0, said
    account = subprocess.run(
        [ETT, "account", "--json", str(tmp_path / "journal")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (failure,) = json.loads(account.stdout)["jobs"][0]["failure_list"]
    assert failure["cause"].startswith("stalled: no progress for ")
    assert failure["diagnosis"]["failure_class"] == "hang"


def test_a_pause_is_told_with_its_end_and_stops_nothing(ran, tmp_path):
    """By default the command is looked into and left alone."""
    program = tmp_path / "paused.py"
    program.write_text(PAUSED.format(pause=0.2, more=UNTIL_SEEN))
    status, _, told = ran(str(program), options=["--stall-after", "1"])
    begun, over = evidence(told, "stall")
    assert "rank 0 in the loop (last report: step " in begun
    assert "the stall is over after" in over
    (stack,) = evidence(told, "stack")
    assert "reads_from_a_slow_disk" in stack
    assert status == 0
    assert told[-1].status == "succeeded"


def test_a_stalled_command_is_started_again_where_that_was_asked_for(ran, tmp_path):
    """The next attempt is another job to watch: what ended the first one does not reach it."""
    program = tmp_path / "once.py"
    more = "import os; hangs = os.environ.get('ETT_ATTEMPT', '0') == '0'"
    program.write_text(PAUSED.format(pause="60 if hangs else 0", more=more))
    options = ["--stall-after", "1", "--stall-action", "kill", "--grace", "2", "--max-restarts", "1"]
    status, said, told = ran(str(program), options=[*options, "--restart-delay", "0.1"])
    assert status == 0, said
    assert [event.attempt for event in told if event.kind == "failure" and "stalled" in event.message] == [0]
    assert (told[-1].kind, told[-1].status) == ("job_end", "succeeded")


def test_a_program_that_does_not_end_when_asked_is_killed(ran, tmp_path):
    """SIGTERM is ignored by it; after the grace time it is gone all the same, and the failure says why."""
    program = tmp_path / "stubborn.py"
    more = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    program.write_text(PAUSED.format(pause=100, more=more))
    options = ["--stall-after", "1", "--stall-action", "kill", "--grace", "1"]
    status, _, told = ran(str(program), options=options)
    assert status == 128 + 9
    failures = [event.message for event in told if event.kind == "failure"]
    assert failures[0].startswith("stalled: ")
    assert [event.what for event in told if event.kind == "decision"] == [
        "end the stalled command",
        "kill the stalled command",
    ]


def test_what_is_switched_off_is_no_stall(ran, tmp_path):
    program = tmp_path / "paused.py"
    program.write_text(PAUSED.format(pause=2.5, more=""))
    status, _, told = ran(str(program), options=["--stall-after", "0"])
    assert (status, evidence(told, "stall"), evidence(told, "stack")) == (0, [], [])


@pytest.mark.parametrize(
    ("options", "named"),
    [(["--stall-after", "-1"], "--stall-after"), (["--stall-first-batch", "inf"], "--stall-first-batch"),
     (["--stall-evaluation", "soon"], "--stall-evaluation"), (["--stall-action", "shoot"], "'shoot'")],
)  # fmt: skip
def test_a_wrong_option_is_refused_by_name(tmp_path, capsys, options, named):
    assert status_of("run", "--journal-dir", str(tmp_path), *options, "--", "true") == 2
    assert named in capsys.readouterr().err
