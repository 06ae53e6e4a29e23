"""torchrun that ends at once: with its own status and words, however its ranks have ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.service("torch")

LIMIT_S = 120
TORCHRUN = """
import sys
from ett_trainer_hooks.pipeline.quick_torchrun import main

class Kept:
    def __del__(self):
        print("taken down")

kept = Kept()
sys.argv[1:1] = ["--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
main()
"""


@pytest.fixture
def torchrun(tmp_path):
    """Starts one rank that runs a program."""
    started = []

    def run(program):
        path = tmp_path / "rank.py"
        path.write_text(program)
        mine = {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}
        words = [sys.executable, "-c", TORCHRUN, str(path)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(words, env={**mine, "OMP_NUM_THREADS": "1"}, text=True, **pipes))
        return started[-1]

    yield run
    for each in started:
        each.kill()
        each.communicate()


@pytest.mark.parametrize(
    ("program", "status", "said"),
    [("", 0, ""), ("import sys; sys.exit(3)", 1, "exitcode  : 3")],
)
def test_it_ends_as_torchrun_does_and_takes_nothing_down(torchrun, program, status, said):
    """Which rank has failed is told as ever."""
    child = torchrun(program)
    out, err = child.communicate(timeout=LIMIT_S)
    assert (child.returncode, out) == (status, ""), err
    assert said in err
    assert ("ChildFailedError" in err) is bool(said)


def test_a_signal_that_ends_it_is_told_in_one_line(torchrun):
    """Where torchrun stood at that moment is of no use to whoever has stopped the job."""
    child = torchrun("import time; print('ready', flush=True); time.sleep(600)")
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=LIMIT_S)
    assert (child.returncode, out) == (1, "")
    assert err.splitlines()[-1].endswith(f"SignalException: Process {child.pid} got signal: 15")
    assert "Traceback" not in err
