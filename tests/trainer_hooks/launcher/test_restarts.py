"""A command that fails is started again where that was asked for, each time as an attempt of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ett_here import status_of

from ett_trainer_hooks.launcher.restarts import Ending, causes_of

ETT = str(Path(sys.executable).with_name("ett"))

FAILS_TWICE = """
import os, pathlib, sys
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
for number in recorder.batches(range(3)):
    pass
print("attempt", recorder.identity.attempt, os.environ.get("ETT_ATTEMPT"), flush=True)
count = pathlib.Path(sys.argv[1])
done = int(count.read_text()) if count.exists() else 0
count.write_text(str(done + 1))
if done < 2:
    {end}
recorder.close()
"""
NOW = ("--restart-delay", "0")


def of(events, kind):
    return [event for event in events if event.kind == kind]


@pytest.fixture
def ran(ett_run, events_in, tmp_path):
    def run(program, *options, arguments=(), **environ):
        child = ett_run(program, *arguments, options=options, **environ)
        out, err = child.communicate(timeout=120.0)
        return child.returncode, out, err, events_in(tmp_path / "journal")

    return run


def test_each_restart_is_an_attempt_and_the_job_ends_once(ran, tmp_path):
    """Numbers grow, each attempt ends, the last status is that of the job, and the account adds up."""
    program = FAILS_TWICE.format(end="raise ValueError('bad')")
    status, out, err, events = ran(program, "--max-restarts", "5", *NOW, arguments=[str(tmp_path / "n")])
    assert status == 0
    assert out == "attempt 0 None\nattempt 1 1\nattempt 2 2\n"
    assert "the command exited with status 1; restart 1 of 5 in 0 s" in err
    told = [event for event in events if event.rank == -1]
    assert [(event.attempt, event.status) for event in of(told, "attempt_end")] == [
        (0, "failed"),
        (1, "failed"),
        (2, "succeeded"),
    ]
    assert [event.attempt for event in of(told, "attempt_start")] == [0, 1, 2]
    assert [event.values["restart"] for event in of(told, "decision")] == [1, 2]
    assert [event.status for event in of(told, "job_end")] == ["succeeded"]
    assert told[-1].kind == "job_end"
    account = subprocess.run(
        [ETT, "account", "--json", str(tmp_path / "journal")], capture_output=True, text=True, check=True
    )
    (job,) = json.loads(account.stdout)["jobs"]
    assert (job["attempts"], job["failures"], job["state"]) == (3, 2, "succeeded")
    assert sum(job["components"].values()) == pytest.approx(job["wall_s"])


def test_restarts_are_bounded(ran, tmp_path):
    """The status is that of the last attempt."""
    program = FAILS_TWICE.format(end="sys.exit(9)").replace("done < 2", "done < 99")
    status, _, err, events = ran(program, "--max-restarts", "1", *NOW, arguments=[str(tmp_path / "n")])
    assert status == 9
    assert "not started again: 1 of 1 restarts are used up" in err
    assert [event.status for event in of(events, "job_end")] == ["failed"]


@pytest.mark.parametrize(
    ("end", "cause", "restarts"),
    [("os._exit(75)", "75", 2), ("os._exit(3)", "75", 0), ("os.kill(os.getpid(), 9)", "oom,SIGKILL", 2)],
)
def test_only_the_causes_that_were_named_are_restarted_for(ran, tmp_path, end, cause, restarts):
    program = FAILS_TWICE.format(end=end)
    options = ("--max-restarts", "9", "--restart-on", cause, *NOW)
    _, _, _, events = ran(program, *options, arguments=[str(tmp_path / "n")])
    assert len([event for event in of(events, "attempt_start") if event.rank == -1]) == restarts + 1


@pytest.mark.parametrize(
    ("ending", "causes"),
    [
        (Ending(status=0, ranks=(-9,), oom_kills=1), set()),
        (Ending(status=3), {"failed", "3"}),
        (Ending(status=-9), {"failed", "killed", "SIGKILL"}),
        (Ending(status=-9, oom_kills=1), {"failed", "killed", "SIGKILL", "oom"}),
        (Ending(status=1, ranks=(-11, -15)), {"failed", "1", "crashed", "SIGSEGV"}),
        (Ending(status=1, ranks=(75, 0)), {"failed", "1", "75"}),
        (Ending(status=134), {"failed", "134", "crashed", "SIGABRT"}),
        (Ending(status=-15), {"failed", "preempted", "SIGTERM"}),
        (Ending(status=255), {"failed", "255"}),
    ],
)
def test_every_cause_that_is_true_of_an_end_counts(ending, causes):
    """That of the command and those of its ranks; SIGTERM to a rank is the clean-up of torchrun."""
    assert causes_of(ending) == causes


def test_the_first_attempt_number_is_that_of_the_scheduler(ran, tmp_path):
    """A requeued job counts on from its thousand."""
    program = FAILS_TWICE.format(end="sys.exit(1)")
    options = ("--max-restarts", "2", *NOW)
    arguments = [str(tmp_path / "n")]
    _, out, _, _ = ran(program, *options, arguments=arguments, SLURM_RESTART_COUNT="3", SLURM_JOB_ID="7")
    assert [line.split()[1] for line in out.splitlines()] == ["3000", "3001", "3002"]


ELASTIC = """
import sys
from torch.distributed.run import main
sys.argv = ["torchrun", "--nproc-per-node", "2", "--max-restarts", "1", *sys.argv[1:]]
main()
"""
WORKER = """
import os, pathlib, sys
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
recorder.first_batch()
if os.environ["RANK"] == "1":
    count = pathlib.Path(sys.argv[1])
    done = int(count.read_text()) if count.exists() else 0
    count.write_text(str(done + 1))
    if done < 3:
        os._exit(5)
recorder.close()
"""


@pytest.mark.service("torch")
def test_elastic_restarts_fit_between_those_of_the_launcher(ran, tmp_path):
    """Torchrun restarts once in each of two starts: four attempts with four numbers."""
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    options = ("--max-restarts", "1", *NOW)
    status, _, err, events = ran(ELASTIC, *options, arguments=[str(worker), str(tmp_path / "n")])
    assert status == 0, err
    starts = [event for event in of(events, "attempt_start") if event.rank == 1]
    assert [event.attempt for event in starts] == [0, 1, 2, 3]
    failures = [event for event in of(events, "failure") if event.of_rank == 1]
    assert [(event.attempt, event.exit_code) for event in failures] == [(0, 5), (1, 5), (2, 5)]
    assert [event.status for event in of(events, "job_end")] == ["succeeded"]


def test_a_stop_while_the_launcher_waits_ends_the_job(ett_run, events_in, tmp_path):
    """Nobody waits out a delay of five minutes before leaving."""
    child = ett_run("raise SystemExit(4)", options=["--max-restarts", "3", "--restart-delay", "300"])
    while "restart 1 of 3 in 300 s" not in child.stderr.readline():
        pass
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=240.0)
    assert child.returncode == 4
    told = events_in(tmp_path / "journal")
    assert [event.status for event in of(told, "attempt_end")] == ["failed"]
    assert told[-1].kind == "job_end"
    assert told[-1].status == "preempted"


def test_a_command_that_was_stopped_is_not_started_again(ett_run, events_in, tmp_path):
    """Whoever stops a job does not want it back."""
    program = "import time; print('ready', flush=True); [time.sleep(0.1) for _ in range(600)]"
    child = ett_run(program, options=["--max-restarts", "3", *NOW])
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60.0)
    told = events_in(tmp_path / "journal")
    assert [event.status for event in of(told, "attempt_end")] == ["preempted"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--max-restarts", "-1"], "max_restarts=-1"),
        (["--restart-delay", "-1"], "restart_delay=-1.0"),
        (["--restart-delay", "nan"], "restart_delay=nan"),
        (["--restart-delay", "1e10"], "restart_delay=10000000000.0 is not 0 to 1,000,000,000 seconds"),
        (["--restart-on", "sunday"], "restart_on='sunday'"),
        (["--restart-on", "0"], "restart_on='0'"),
        (["--restart-on", ""], "restart_on=''"),
        (["--grace", "-3"], "grace=-3.0"),
        (["--drain", "inf"], "drain=inf"),
        (["--drain", "1e10"], "drain=10000000000.0"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(tmp_path, capsys, options, named):
    """Status 2, before anything is started."""
    started = tmp_path / "started"
    assert status_of("run", "--journal-dir", str(tmp_path), *options, "--", "touch", str(started)) == 2
    assert not started.exists()
    assert named in capsys.readouterr().err
