"""Publishing after a job, by `ett run` itself or a process that outlives it; the trainer's time is over."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("fsspec")

import toy_model  # noqa: E402

from ett_cli.main import main  # noqa: E402
from ett_cli.publishing_after import LOG, still_open  # noqa: E402
from ett_trainer_hooks.pipeline.publishing.handover import Outcome, find  # noqa: E402

pytestmark = [
    pytest.mark.service("torch"),
    pytest.mark.filterwarnings("ignore:torch.distributed is (disabled|unavailable)"),  # torch's, at saves
]
LIMIT_S = 600.0


@pytest.fixture
def ett_run(tmp_path):
    """Runs a command of the shell under `ett run`, which publishes what lies in `job`; how that ended."""
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
    paths = [str(Path(toy_model.__file__).parent), *filter(None, [mine.get("PYTHONPATH")])]
    environ = {**mine, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}

    def run(command, *options, **variables):
        words = ["run", "--job-id", "trainer", "--journal-dir", str(tmp_path / "journal")]
        words += ["--publish-to", str(tmp_path / "models"), "--publish-from", str(tmp_path / "job"), *options]
        return subprocess.run(
            [str(Path(sys.executable).with_name("ett")), *words, "--", "sh", "-c", command],
            env=environ | variables,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    return run


@pytest.fixture
def gate(tmp_path):
    """The file that the model waits for; there at the end in any case, for whoever still waits."""
    yield tmp_path / "gate"
    (tmp_path / "gate").touch()


def wait_until(condition):
    """Processes that import torch on a busy machine take their time."""
    deadline, pause = time.monotonic() + LIMIT_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.02)


@pytest.mark.sweep
def test_a_model_is_published_before_the_end_where_somebody_waits(tmp_path, ett_run):
    toy_model.handed_over(tmp_path / "job")
    for _ in range(2):  # the second finds it published
        done = ett_run("true")
        assert done.returncode == 0, done.stderr
        assert "ett run: step 40 of trainer: published, " in done.stderr


def test_a_process_that_outlives_it_publishes_where_nobody_shall_wait(tmp_path, ett_run, gate, events_in):
    """In a job of its own, which begins after that of the trainer and belongs to whom that belongs to."""
    handover = toy_model.handed_over(tmp_path / "job", gate=str(gate))
    done = ett_run("true", "--publish-later", "--label", "team=ads", "--label", "job_name=nightly")
    assert done.returncode == 0, done.stderr
    assert f"ett run: {tmp_path / 'job'} is published by process " in done.stderr
    assert handover.outcome() is None  # it waits at the gate
    gate.touch()
    wait_until(lambda: handover.outcome() is not None)
    assert handover.outcome().state == "done"
    log = tmp_path / "journal" / LOG
    wait_until(lambda: "step 40 of trainer: published" in log.read_text())
    events = events_in(tmp_path / "journal")
    ends = {each.job_id: each.time for each in events if each.kind == "job_end"}
    assert ends.keys() == {"trainer", "trainer.publish-40"}
    described = [
        {name: each.labels.get(name) for name in ("team", "cluster", "purpose", "job_name", "scheduler")}
        for each in events
        if each.kind == "attempt_start" and each.job_id == "trainer.publish-40"
    ]
    ours = {"team": "ads", "cluster": "c1", "purpose": "publishing", "job_name": None, "scheduler": None}
    assert described == [ours] * len(described)
    assert ends["trainer"] <= min(each.time for each in events if each.job_id == "trainer.publish-40")


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [("exit 3", 3, ""), ("true", 1, "nothing was handed over to be published")],
)
def test_nothing_is_published_of_a_job_that_failed_or_handed_nothing_over(
    tmp_path, ett_run, command, status, said
):
    (tmp_path / "job").mkdir()
    done = ett_run(command)
    assert (done.returncode, said in done.stderr) == (status, True)
    assert not (tmp_path / "models").exists()


def test_what_the_environment_says_wrongly_of_the_exporter_is_told_once(tmp_path, ett_run):
    """Though the job and the publishing after it would both ship there."""
    (tmp_path / "job").mkdir()
    done = ett_run("true", ETT_EXPORTER_URL="there")
    [told] = [line for line in done.stderr.splitlines() if "ETT_EXPORTER_URL" in line]
    wrong = "exporter address 'there' is not of the form http://host:port"
    assert told == f"ett run: ETT_EXPORTER_URL: {wrong}; events are kept on the disk only"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--publish-to", "m"], "--publish-to and --publish-from need each other"),
        (["--publish-to", "nosuch://m", "--publish-from", "d"], "nosuch://m: Protocol not known: nosuch"),
    ],
)
def test_what_cannot_be_published_is_told_before_anything_runs(tmp_path, capsys, words, complaint):
    there = tmp_path / "ran"
    assert main(["run", *words, "--", "touch", str(there)]) == 2
    assert complaint in capsys.readouterr().err
    assert not there.exists()


def test_what_is_open_is_published_else_the_newest_is_looked_at(tmp_path):
    toy_model.handed_over(tmp_path).end(Outcome(state="done", by="one", at=1.0))
    (done,) = find(tmp_path)
    assert still_open([done]) == [done]
    toy_model.handed_over(tmp_path)
    assert [each.state() for each in still_open(find(tmp_path))] == ["pending"]
    assert still_open([]) == []
