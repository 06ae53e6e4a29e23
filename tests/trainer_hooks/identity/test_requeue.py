"""A job that Slurm requeues: two starts of `ett run` with what Slurm sets for each of them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ett_core.accounting import JobFold

ETT = str(Path(sys.executable).with_name("ett"))
PROGRAM = """
import sys
from ett_trainer_hooks import Recorder

recorder = Recorder.from_env()
for number in recorder.batches(range(3)):
    pass
if sys.argv[1] == "fail":
    raise RuntimeError("lost a node")
recorder.close()
"""
BATCH_SCRIPT = {
    "SLURM_JOB_ID": "81", "SLURM_CLUSTER_NAME": "alpha", "SLURM_JOB_NAME": "dlrm", "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "8", "SLURM_NNODES": "2",
    "SLURM_GPUS_ON_NODE": "8", "SLURMD_NODENAME": "gpu-7",
}  # fmt: skip


def test_the_starts_of_a_requeued_job_are_attempts_of_one_job(tmp_path, trainer_env, events_in):
    """One job, attempts 0 and 1000, and the time until Slurm gave the nodes again is the queue."""
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    nobody = {name: text for name, text in trainer_env.items() if name != "ETT_JOB_ID"}
    began = time.time() - 1.0
    for count, word in enumerate(("fail", "go on")):
        moment = time.time() if count else began
        given = {"SLURM_RESTART_COUNT": str(count), "SLURM_JOB_START_TIME": str(moment)}
        done = subprocess.run(
            [ETT, "run", "--", sys.executable, str(program), word],
            env={**nobody, **BATCH_SCRIPT, **given},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1 - count, done.stderr
    events = events_in(tmp_path / "journal")
    assert {event.job_id for event in events} == {"slurm-alpha-81"}
    starts = [e for e in events if e.kind == "attempt_start"]
    assert {(e.rank, e.attempt, e.node) for e in starts} == {
        (rank, attempt, "gpu-7") for rank in (-1, 0) for attempt in (0, 1000)
    }
    assert {(e.accelerators, e.labels["job_name"], e.labels["scheduler"]) for e in starts} == {
        (16, "dlrm", "slurm")
    }
    fold = JobFold("slurm-alpha-81")
    fold.add(events)
    account = fold.account(time.time())
    assert account is not None
    assert account.start == began
    assert [attempt.attempt for attempt in account.attempts] == [0, 1000]
    assert account.components["start.allocation"] > 0.9
    assert account.components["recover.queue"] > 0
    assert account.state == "succeeded"
