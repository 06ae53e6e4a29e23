"""Real faults on a CPU, through the whole chain: torchrun under `ett run`, an exporter, its API.

By default a sample of the kinds; all of them with ETT_FULL=1.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

pytestmark = pytest.mark.service("torch")

full = pytest.mark.sweep
LAST_SAVE = 4
APART_S = 0.15
"""Between the clocks of the program and of whoever observes it."""
KILL_STALLED = ("--stall-after", "3", "--stall-action", "kill", "--grace", "3")
PATIENT = ("--stall-after", "20", "--stall-action", "kill", "--grace", "3")
"""For faults before which the job gets on slowly."""
NO_COMPILER = {"PATH": "/nonexistent", "CXX": "/nonexistent/g++"}


class Fault:
    """A fault of rank 1 in its loop and what must be recorded of it."""

    def __init__(
        self,
        failure_class: str,
        confidence: str = "likely",
        *,
        options: tuple[str, ...] = (),
        exception: str | None = None,
    ) -> None:
        self.failure_class = failure_class
        self.confidence = confidence
        self.options = options
        self.exception = exception


FAULTS = {
    "exception": Fault("user_code", exception="KeyError"),
    "SIGKILL": Fault("external_stop|host_oom"),
    "hang": Fault("hang", "certain", options=KILL_STALLED),
    "signal of the agent": Fault("user_code", exception="KeyError"),
    "SIGTERM": Fault("external_stop"),
    "SIGSTOP": Fault("hang", "certain", options=KILL_STALLED),
    "stuck save": Fault("checkpoint_stall", options=(*KILL_STALLED, "--stall-checkpoint", "3")),
    "address space": Fault("host_oom", exception="RuntimeError"),
    "loader worker killed": Fault("host_oom", exception="RuntimeError"),
    "no loss": Fault("nan_loss", "certain", exception="RuntimeError"),
    "out of range": Fault("user_code", exception="RuntimeError"),
}
SAMPLE = ("exception", "SIGKILL", "hang")


@pytest.mark.parametrize(
    "name", [name if name in SAMPLE else pytest.param(name, marks=full) for name in FAULTS]
)
def test_a_fault_of_a_rank_is_recorded_with_its_class_its_rank_and_what_it_cost(faulty, name):
    """The others wait in a collective operation and end after it; one failure is told, of rank 1."""
    fault = FAULTS[name]
    job = faulty(name, options=fault.options)
    found = job.failure["diagnosis"]
    assert found["failure_class"] in fault.failure_class.split("|"), found
    assert (found["role"], found["confidence"], found["rank"]) == ("root", fault.confidence, 1), found
    if fault.exception:
        assert job.failure["exception"] == fault.exception
    check_losses(job)


def check_losses(job):
    """What was trained since the last save is lost, by the program's own clock; the parts add up.

    Ranks that wait in a collective train for all that one can see, until the failure is noticed.
    """
    parts, lost_s = job.job["components"], job.failure["unsaved_s"]
    assert job.failure["fallback_step"] == LAST_SAVE
    assert job.unsaved_s - APART_S <= lost_s + parts.get("data_wait", 0.0)
    assert lost_s + parts["recover.teardown"] <= job.job["end"] - job.saved_at + APART_S
    assert parts["unsaved_training"] == pytest.approx(lost_s)
    assert parts["recover.teardown"] > 0.0
    check_partition(job)


def check_partition(job):
    assert job.job["state"] == "failed"
    assert sum(job.job["components"].values()) == pytest.approx(job.job["wall_s"])


def test_a_port_in_use(faulty):
    """The agent cannot begin; nothing was trained, nothing is lost."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ranks = ("--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", port)
        job = faulty("port in use", ranks=ranks)
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["role"]) == ("port_in_use", "root"), found
    assert job.failure["unsaved_s"] == 0.0
    check_partition(job)


@full
def test_a_checkpoint_that_was_cut_short(faulty):
    """The rank whose part cannot be read is named; the loop was never reached."""
    job = faulty("truncated")
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["role"], found["rank"]) == ("checkpoint_corrupt", "root", 1), found
    assert job.failure["unsaved_s"] == 0.0
    check_partition(job)


@full
def test_an_inductor_without_a_compiler(faulty):
    job = faulty("no compiler", environ=NO_COMPILER)
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["role"]) == ("compile_failure", "root"), found
    assert found["rank"] in (0, 1)
    check_partition(job)


@pytest.fixture
def slow_compiler(tmp_path) -> dict[str, str]:
    """The environment with a compiler that says its version at once and takes its time for the rest."""
    compiler = tmp_path / "slow-g++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *--version*) ;; *) sleep 600 ;; esac\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    return {"CXX": str(compiler), "TORCHINDUCTOR_COMPILE_THREADS": "1"}


@full
def test_a_compilation_that_the_others_wait_for(faulty, slow_compiler):
    """One rank compiles in its loop, with a compiler that takes its time."""
    job = faulty("slow compiler", options=(*PATIENT, "--stall-compile", "20"), environ=slow_compiler)
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["role"], found["rank"]) == ("compile_slow", "root", 1), found
    check_losses(job)


@full
def test_a_rank_that_is_stopped_now_and_then_and_at_last_for_good(faulty, tmp_path):
    """It is named as slow while the job still trains, and as the one that hangs when nothing moves."""

    def is_told() -> bool:
        journals = (tmp_path / "journal").glob("*.jsonl")
        return any(b"was stopped for " in journal.read_bytes() for journal in journals)

    def meanwhile(_: int, wait: Callable[..., None]) -> None:
        wait()
        wait((tmp_path / "saves" / "pid").exists)
        rank = int((tmp_path / "saves" / "pid").read_text())
        stops = cycle([(signal.SIGSTOP, 0.5), (signal.SIGCONT, 0.25)])
        while not is_told():
            number, lasts_s = next(stops)
            os.kill(rank, number)
            time.sleep(lasts_s)
        os.kill(rank, signal.SIGSTOP)

    job = faulty("stopped now and then", options=PATIENT, meanwhile=meanwhile)
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["confidence"], found["rank"]) == ("hang", "certain", 1), found
    (slow,) = job.job["stragglers"]
    assert (slow["rank"], slow["cause"]) == (1, "stopped")
    assert slow["ratio"] > 1.2
    check_partition(job)


@full
def test_sigterm_to_the_agent_from_outside(faulty):
    """It passes the signal on; who sent it is not known."""

    def meanwhile(launcher: int, wait: Callable[[], None]) -> None:
        wait()
        (agent,) = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
        os.kill(int(agent), signal.SIGTERM)

    job = faulty("SIGTERM to the agent", meanwhile=meanwhile)
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["confidence"]) == ("external_stop", "likely"), found
    check_losses(job)


@full
def test_sigterm_to_the_launcher_is_no_failure(faulty):
    """The job was told to stop: it is preempted, and nobody is blamed."""

    def meanwhile(launcher: int, wait: Callable[[], None]) -> None:
        wait()
        os.kill(launcher, signal.SIGTERM)

    job = faulty("SIGTERM to the launcher", meanwhile=meanwhile)
    assert job.job["state"] == "preempted"
    assert {each["diagnosis"]["failure_class"] for each in job.job["failure_list"]} <= {"preempted"}


@pytest.fixture
def small() -> Callable[[str, str], tuple[str, ...]]:
    """Words before a command whose mounts are its own: a small file system at one place."""

    def before(place: str, size: str) -> tuple[str, ...]:
        mount = f'mount -t tmpfs -o size={size} tmpfs "{place}" && exec "$@"'
        words = ("unshare", "--mount", "sh", "-c", mount, "sh")
        try:
            subprocess.run([*words, "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no mounts of its own for a process (root can): {error}")
        return words

    return before


@full
def test_a_disk_that_is_full_while_a_rank_saves(faulty, small, tmp_path):
    (tmp_path / "saves").mkdir()
    job = faulty("disk full", before=small(str(tmp_path / "saves"), "1m"))
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["role"], found["rank"]) == ("storage_full", "root", 1), found
    check_losses(job)


@full
def test_shared_memory_that_is_too_small_for_the_loader(faulty, small):
    job = faulty("shared memory", before=small("/dev/shm", "8m"))  # noqa: S108 - what the fault is about
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["role"]) == ("shm_exhausted", "root"), found
    check_losses(job)


@pytest.fixture
def memory_cgroup() -> Iterator[tuple[str, ...]]:
    """Words before a command that then runs in a memory cgroup of its own, limited to 1.5 GB."""
    version_1 = Path("/sys/fs/cgroup/memory")
    parent, limit = (
        (version_1, "memory.limit_in_bytes") if version_1.is_dir() else (Path("/sys/fs/cgroup"), "memory.max")
    )
    group = parent / f"ett-faults-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made (root can): {error}")
    try:
        (group / limit).write_text(str(1500 << 20))
        yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    except OSError as error:
        pytest.skip(f"memory cannot be limited here: {error}")
    finally:
        group.rmdir()


@full
def test_a_rank_that_the_kernel_ends_for_want_of_memory(faulty, memory_cgroup):
    """The counter of the cgroup makes it certain."""
    job = faulty("memory cgroup", before=memory_cgroup)
    found = job.failure["diagnosis"]
    assert (found["failure_class"], found["confidence"], found["rank"]) == ("host_oom", "certain", 1), found
    check_losses(job)
