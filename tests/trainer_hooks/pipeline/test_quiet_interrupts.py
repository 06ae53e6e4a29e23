"""Ctrl-C ends a trainer without a traceback; every other failure stays loud, and both are told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.quiet_interrupts import quiet_interrupts

quiet_interrupts()
Recorder.from_env()
{}
"""
INTERRUPTED = "signal.raise_signal(signal.SIGINT)"


@pytest.mark.parametrize(
    ("line", "status", "said", "told"),
    [
        (INTERRUPTED, -signal.SIGINT, "", "cancelled"),
        ("raise ValueError('lost')", 1, "ValueError: lost", "failed"),
    ],
)
def test_only_an_interrupt_is_quiet_and_the_recorder_tells_of_both(tmp_path, line, status, said, told):
    environ = {**os.environ, "ETT_JOB_ID": "j", "ETT_JOURNAL_DIR": str(tmp_path), "RANK": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(line)],
        capture_output=True, text=True, check=False, timeout=120, env=environ,
    )  # fmt: skip
    assert done.returncode == status
    assert done.stderr.strip().endswith(said)
    assert ("Traceback" in done.stderr) is bool(said)
    events = [json.loads(row) for path in tmp_path.glob("*.jsonl") for row in path.read_text().splitlines()]
    ends = [event["status"] for event in events if event["kind"] == "attempt_end"]
    assert ends == [told]


@pytest.mark.service("torch")
def test_the_launcher_is_quiet_while_it_still_imports_torch():
    program = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "ett_trainer_hooks.pipeline.quick_torchrun",
        "--help",
    ]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as launcher:
        lines = []
        for line in launcher.stderr:
            lines.append(line)
            if len(lines) > 1 and " torch." in line:
                launcher.send_signal(signal.SIGINT)
                break
        lines += launcher.stderr
        assert launcher.wait(60) == -signal.SIGINT
    assert not [line for line in lines if not line.startswith("import time:")]
