"""A job that is told to go: it leaves with a save, loses nothing, and goes on from there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.service("torch")

ETT = str(Path(sys.executable).with_name("ett"))
LIMIT_S = 600
LONG_S = 0.5
"""Between the save and the last word no step is trained, and no time to speak of passes."""
STOPPED = (1, 128 + signal.SIGABRT)
"""How torchrun ends after a signal: now and then its interpreter is aborted on its way out.

A thread of its store that waits for the interpreter is ended inside of C++, which may not be left so.
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
TRAIN = ["--rdzv-endpoint", "127.0.0.1:0", "-m", "ett_trainer_hooks.reference", "--parts", "preemption"]
TRAIN += ["--batch-size", "64", "--rows", "500", "--agree-every", "5", "--no-compile"]
BESIDE = ["--parts", "preemption,async_checkpoint,no_wait_staging"]
SILENT = """
import os, pathlib, threading
from fsspec.implementations.local import LocalFileSystem

class Silent(LocalFileSystem):
    protocol = "silent"

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(str(path).removeprefix("silent://"))

    def put_file(self, *arguments, **more):
        place = pathlib.Path(os.environ["SILENT_ONCE"])
        if place.exists():
            (place / "asked").touch()
            threading.Event().wait()
        super().put_file(*arguments, **more)
"""
"""A file system of fsspec that answers no upload any more once a directory is there."""


@pytest.fixture(autouse=True)
def torchrec_is_here():
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")


@pytest.fixture
def start(tmp_path):
    """Starts the job under the launcher; its journals, output and checkpoints lie in `tmp_path`."""
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
    started = []

    def run(steps, *more, restarts=0, torchrun=(), **environ):
        words = ["run", "--job-id", "job", "--journal-dir", str(tmp_path / "journal"), "--grace", "120", "--"]
        words += [*TORCHRUN, *torchrun, "--max-restarts", str(restarts)]
        words += [*TRAIN, "--steps", str(steps), *more]
        words += ["--checkpoint-dir", str(tmp_path / "checkpoints")]
        job = subprocess.Popen(
            [ETT, *words],
            env={**mine, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(job)
        return job

    yield run
    for job in started:
        job.kill()
        job.communicate()


def test_a_job_that_gets_sigterm_leaves_with_a_save_and_goes_on_from_there(start, tmp_path):
    """The save, which goes on beside the training, is durable before the first rank says that it leaves."""
    job = start(1_000_000, *BESIDE)
    when(job, lambda line: line.startswith("step 20 "), signal.SIGTERM)
    out, _ = job.communicate(timeout=LIMIT_S)
    last = int(re.findall(r"step (\d+) of", out)[-1])
    assert job.returncode in STOPPED, out[-3000:]

    account = accounted(tmp_path)
    assert account["state"] == "preempted"
    assert account["components"].get("unsaved_training", 0.0) < LONG_S
    assert account["last_durable_step"] == account["step"] == last
    assert [what for what, _ in decisions(tmp_path) if "told to go" in what] == [
        "told to go: saves and leaves"
    ]

    again = start(last + 5, *BESIDE)
    out, _ = again.communicate(timeout=LIMIT_S)
    assert again.returncode == 0, out[-3000:]
    assert re.findall(r"step (\d+) of", out) == [str(last + 5)]
    account = accounted(tmp_path)
    assert account["state"] == "succeeded"
    assert account["components"].get("unsaved_training", 0.0) < LONG_S


def test_a_job_whose_store_hangs_leaves_in_its_grace_time_and_says_what_is_not_saved(start, tmp_path):
    """Not after the ten minutes that it waits otherwise, nor by SIGKILL of torchrun or of the launcher."""
    installed = tmp_path / "site"
    (installed / "silent-1.dist-info").mkdir(parents=True)
    (installed / "silent_files.py").write_text(SILENT)
    (installed / "silent-1.dist-info" / "METADATA").write_text("Name: silent\nVersion: 1\n")
    (installed / "silent-1.dist-info" / "entry_points.txt").write_text(
        "[fsspec.specs]\nsilent = silent_files:Silent\n"
    )
    remote, silent = tmp_path / "remote", tmp_path / "from now on"
    job = start(
        1_000_000,
        *BESIDE,
        *("--checkpoint-remote", f"silent://{remote}", "--checkpoint-every-s", "0.1", "--grace-s", "8"),
        torchrun=("--shutdown-timeout", "100"),
        PYTHONPATH=os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]),
        SILENT_ONCE=str(silent),
    )

    def hangs(_line):
        if any(remote.glob("*/manifest.json")):
            silent.mkdir(exist_ok=True)
        return (silent / "asked").exists()

    when(job, hangs, signal.SIGTERM)
    out, _ = job.communicate(timeout=LIMIT_S)
    assert job.returncode in STOPPED, out[-3000:]
    told = events(tmp_path)
    ends = [(each["status"], each.get("exit_code")) for each in told if each["kind"] == "attempt_end"]
    assert ends.count(("preempted", 143)) >= 2, ends
    failed = [each for each in told if each["kind"] == "checkpoint_failed"]
    assert {each["message"].partition(" after ")[0] for each in failed} == {
        "given up at the end: not durable"
    }
    durable = {each["step"] for each in told if each["kind"] == "checkpoint_durable"}
    assert durable.isdisjoint(each["step"] for each in failed)
    assert durable >= {int(path.parent.name[5:].partition("-")[0]) for path in remote.glob("*/manifest.json")}
    assert accounted(tmp_path)["last_durable_step"] == max(durable)


def test_a_job_without_time_for_a_save_says_so_and_owns_up_to_its_loss(start, tmp_path):
    """What was trained since the last save is lost, and called so."""
    job = start(1_000_000, "--grace-s", "0", "--checkpoint-every-s", "0.5")
    when(job, lambda _: any(tmp_path.glob("checkpoints/step_*[0-9]")), signal.SIGTERM)
    out, _ = job.communicate(timeout=LIMIT_S)
    assert job.returncode in STOPPED, out[-3000:]

    account = accounted(tmp_path)
    assert account["state"] == "preempted"
    [failure] = account["failure_list"]
    assert failure["fallback_step"] == account["last_durable_step"] < account["step"]
    assert failure["unsaved_s"] == account["components"]["unsaved_training"] > 0
    [(what, why)] = [each for each in decisions(tmp_path) if "told to go" in each[0]]
    assert what == "told to go: leaves without another save"
    assert re.match(
        r"a save takes [\d.]+ s(, too long .*: 0.0 s are left| to keep .*) \(notice: SIGTERM\)", why
    )


@pytest.mark.sweep
def test_ranks_warned_by_slurm_leave_with_a_save_and_torchrun_starts_them_again(start, tmp_path):
    """SIGUSR2 comes before the end: where torchrun may restart, its ranks go on from the save."""
    job = start(40, restarts=1)
    when(job, lambda line: line.startswith("step 20 "), signal.SIGUSR2)
    out, _ = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, out[-3000:]
    account = accounted(tmp_path)
    assert account["state"] == "succeeded"
    assert account["components"].get("unsaved_training", 0.0) < LONG_S
    assert account["attempts"] == 2
    assert [failure["status"] for failure in account["failure_list"]] == ["preempted"]
    [(_, why)] = [each for each in decisions(tmp_path) if "told to go" in each[0]]
    assert why.endswith("(notice: SIGUSR2)")
    assert [int(step) for step in re.findall(r"step (\d+) of", out)].count(40) == 1


def when(job, is_time, number):
    """Send a signal to the launcher once a line of the job's output shows that it is time."""
    for line in iter(job.stdout.readline, ""):
        if is_time(line):
            job.send_signal(number)
            return
    pytest.fail("the job ended too soon")


def accounted(folder):
    words = [ETT, "account", str(folder / "journal"), "--json"]
    [job] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["jobs"]
    return job


def events(folder):
    lines = [line for path in (folder / "journal").glob("*.jsonl") for line in path.read_text().splitlines()]
    return list(map(json.loads, lines))


def decisions(folder):
    return [(event["what"], event["why"]) for event in events(folder) if event["kind"] == "decision"]
