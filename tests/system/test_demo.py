"""`ett demo` for real: exporter, app, launcher, torchrun, two ranks, a kill and a recovery."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

from ett_cli.demo.processes import marked, rank_process
from ett_cli.demo.stage import MARK

pytestmark = pytest.mark.service("torch")

HARD_STOP_S = 300
START_S = 60.0
DEMO = [
    sys.executable,
    "-c",
    "import sys; from ett_cli.main import main; sys.exit(main())",
    "demo",
    "--headless",
]


@pytest.fixture(autouse=True)
def torchrec_is_here():
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")


def until(condition, limit_s):
    end_s = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < end_s, "waited too long"
        time.sleep(0.1)
    return found


def test_the_demo_recovers_from_a_kill_and_its_report_adds_up(tmp_path):
    """Status 0 within the hard stop; the report tells ETT, the kill, the recovery and warm caches."""
    done = subprocess.run(
        [*DEMO, "--run-dir", str(tmp_path)], capture_output=True, text=True, timeout=HARD_STOP_S, check=False
    )
    text = done.stdout
    assert done.returncode == 0, text[-3000:] + done.stderr
    assert "FAIL" not in text
    assert "killed by SIGKILL" in text
    assert re.search(r"^ETT [1-9]\d?\.\d %", text, re.MULTILINE)
    assert re.search(r"^  wall time +[\d.]+ s +100\.0 %$", text, re.MULTILINE)
    assert re.search(r"resumed from step [1-9]\d*, [\d.]+ s of training lost, recovered in \d", text)
    assert re.search(r"^  aot_autograd +[1-9]\d* hits", text, re.MULTILINE)
    assert "\nLargest loss: " in text
    assert text.splitlines()[-1].endswith(f" account {tmp_path / 'journal'}")
    (job_id,) = set(re.findall(r"job (demo-[\w-]+)", text))
    assert not list(marked(MARK, job_id))


def test_sigterm_in_the_middle_leaves_no_process_behind(tmp_path):
    """Once the ranks run, SIGTERM ends the demo with 143, and every process of the run is gone."""
    with (tmp_path / "out").open("wb") as out:
        demo = subprocess.Popen([*DEMO, "--no-app", "--run-dir", str(tmp_path / "run")], stdout=out)
    try:
        said = until(lambda: re.search(r"job (demo-[\w-]+)", (tmp_path / "out").read_text()), START_S)
        until(lambda: rank_process(MARK, said[1], 1), START_S)
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(START_S) == 128 + signal.SIGTERM
        until(lambda: not list(marked(MARK, said[1])), 5.0)
    finally:
        if demo.poll() is None:
            os.kill(demo.pid, signal.SIGKILL)
            demo.wait()
