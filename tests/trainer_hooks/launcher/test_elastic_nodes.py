"""One job on two nodes under torchrun: two real agents on this machine, workers killed on both."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import free_address

from ett_core.accounting import JobFold

TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
ETT = str(Path(sys.executable).with_name("ett"))
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from ett_trainer_hooks import Recorder

recorder = Recorder.from_env()
shared = Path(sys.argv[1])
killed = len(list(shared.glob("killed-*")))
(shared / f"began-{killed}-{os.environ['ETT_NODE']}").touch()
for number in recorder.batches(range(4)):
    time.sleep(0.05)
    if number == 2 and ["node-b", "node-a", "nobody"][killed] == os.environ["ETT_NODE"]:
        while len(list(shared.glob(f"began-{killed}-*"))) < 2:  # the other node has counted the same kills
            time.sleep(0.05)
        (shared / f"killed-{killed}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    while number == 3 and killed < 2:  # until torchrun starts this one anew
        time.sleep(0.05)
recorder.close()
"""


@pytest.mark.service("torch")
def test_all_ranks_and_both_launchers_of_two_nodes_agree_on_the_attempt(tmp_path, trainer_env, events_in):
    """Torchrun counts a restart only on the node whose worker failed; the other follows all the same."""
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    torchrun = [
        TORCHRUN, "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint",
        free_address(), "--rdzv-id", "two", "--max-restarts", "2", "--monitor-interval", "0.1",
    ]  # fmt: skip
    surroundings = {name: text for name, text in trainer_env.items() if name != "ETT_JOB_ID"}
    launchers = [
        subprocess.Popen(
            [ETT, "run", "--", *torchrun, str(program), str(tmp_path)],
            env={**surroundings, "ETT_NODE": node, "ETT_NODE_RANK": str(number), "ETT_AUTO": "1",
                 "ETT_JOURNAL_DIR": str(tmp_path / node)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, node in enumerate(("node-a", "node-b"))
    ]  # fmt: skip
    try:
        said = [launcher.communicate(timeout=120)[1] for launcher in launchers]
    finally:
        for launcher in launchers:
            launcher.kill()
    assert [launcher.returncode for launcher in launchers] == [0, 0], said
    events = [event for node in ("node-a", "node-b") for event in events_in(tmp_path / node)]
    assert {event.job_id for event in events} == {"torchrun-two"}
    starts = {(e.node, e.rank, e.attempt) for e in events if e.kind == "attempt_start" and e.rank >= 0}
    ranks = {(node, attempt) for node, _, attempt in starts}
    assert ranks == {(node, attempt) for node in ("node-a", "node-b") for attempt in (0, 1, 2)}
    assert {rank for _, rank, _ in starts} == {0, 1}
    ends = {(e.node, e.attempt, e.status) for e in events if e.kind == "attempt_end" and e.rank == -1}
    assert {end for end in ends if end[2] == "succeeded"} == {
        ("node-a", 2, "succeeded"),
        ("node-b", 2, "succeeded"),
    }
    assert [(e.node, e.status) for e in events if e.kind == "job_end"] == [("node-a", "succeeded")]
    killed = {(e.node, e.attempt) for e in events if e.kind == "failure" and e.signal == signal.SIGKILL}
    assert killed == {("node-b", 0), ("node-a", 1)}
    fold = JobFold("torchrun-two")
    fold.add(events)
    account = fold.account(max(event.time for event in events))
    assert account is not None
    assert (len(account.attempts), len(account.failures)) == (3, 2)
