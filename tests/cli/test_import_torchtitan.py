"""`ett import` of files that torchtitan's own logger wrote, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ett_cli.main import main
from ett_core.events import decode

PROGRAM = """
import logging, sys
from torchtitan.observability import structured_logger as sl

out, loaded, last, ends = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
now = float(sys.argv[5])

class Stamped(logging.LogRecord):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.created = now

def passes(seconds):
    global now
    now += seconds

logging.setLogRecordFactory(Stamped)
sl.init_structured_logger(source="training", output_dir=out)
sl.log_trace_instant("structured_logger_started")
with sl.log_trace_span("torch_distributed_init"):
    passes(0.1)
with sl.log_trace_span("model_parallelism_init"):
    passes(0.1)
with sl.log_trace_span("checkpoint_load"):
    passes(0.05)
for step in range(loaded + 1, last + 1):
    sl.set_step(step, relative_step=step - loaded)
    with sl.log_trace_span("step"):
        with sl.log_trace_span("fetching_batch"):
            passes(0.03)
        with sl.log_trace_span("fwd_bwd"):
            passes(0.1)
            if ends == "raise" and step == last:
                raise RuntimeError("CUDA out of memory")
        with sl.log_trace_span("checkpoint_save"):
            if step % 2 == 0:
                sl.add_step_tag("checkpoint_save")
                passes(0.06)
if ends == "close":
    with sl.log_trace_span("torch_distributed_teardown"):
        passes(0.02)
"""

pytestmark = pytest.mark.service("torchtitan")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two ranks that fail in step 5, and go on from step 4 to step 7; the logger's moments are given."""
    folder = tmp_path_factory.mktemp("outputs")
    program = folder / "train.py"
    program.write_text(PROGRAM)
    for words in (["0", "5", "raise", "1764000000"], ["4", "7", "close", "1764000010"]):
        ranks = [
            subprocess.Popen(
                [sys.executable, str(program), str(folder), *words],
                env={**os.environ, "RANK": rank, "LOCAL_RANK": rank},
                stderr=subprocess.PIPE,
            )
            for rank in ("0", "1")
        ]
        errors = [rank.communicate(timeout=120)[1] for rank in ranks]
        assert [rank.returncode for rank in ranks] == [int(words[2] == "raise")] * 2, errors
    return folder / "structured_logs"


@pytest.fixture
def events(logs, tmp_path):
    out = tmp_path / "events.jsonl"
    assert main(["import", str(logs), "--job-id", "titan", "--out", str(out)]) == 0
    return [decode(line) for line in out.read_bytes().splitlines()]


def test_the_spans_of_torchtitan_become_a_whole_account(logs, tmp_path, capsys):
    """Start, training, waits, saves, the failure and what it cost, as a rank spent them."""
    mine = map(str, logs.glob("*global_rank_0*"))
    assert main(["import", *mine, "--job-id", "titan", "--out", str(tmp_path / "events.jsonl")]) == 0
    assert main(["account", "--json", str(tmp_path / "events.jsonl")]) == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    parts = job["components"]
    assert (job["state"], job["attempts"], job["failures"], job["step"]) == ("succeeded", 2, 1, 7)
    assert sum(parts.values()) == pytest.approx(job["wall_s"])
    assert parts["start.process_group"] == pytest.approx(0.1, abs=1e-4)
    assert parts["start.model_init"] == pytest.approx(0.1, abs=1e-4)
    assert parts["recover.checkpoint_load"] == pytest.approx(0.05, abs=1e-4)
    assert parts["checkpoint_blocking"] == pytest.approx(3 * 0.06, abs=1e-4)
    assert parts["data_wait"] == pytest.approx(5 * 0.03, abs=1e-4)
    assert parts["training"] == pytest.approx(7 * 0.1, abs=1e-4)
    assert job["failure_list"][0]["cause"] == "RuntimeError: CUDA out of memory"
    assert job["resume_evidence"] == "reported"


def test_each_rank_and_attempt_tells_its_own(events):
    """The second process of a rank is its second attempt, which says where it resumed."""
    starts = {(e.rank, e.attempt) for e in events if e.kind == "attempt_start"}
    assert starts == {(0, 0), (1, 0), (0, 1), (1, 1)}
    assert {(e.attempt, e.step) for e in events if e.kind == "first_batch"} == {(0, 0), (1, 4)}
    steps = [e.step for e in events if e.kind == "progress" and e.rank == 0]
    assert steps == [1, 2, 3, 4, 5, 6, 7]
    ends = [(e.rank, e.attempt, e.status) for e in events if e.kind == "attempt_end"]
    assert sorted(ends) == [(0, 1, "succeeded"), (1, 1, "succeeded")]


def test_a_save_is_durable_once_the_next_one_is_over_and_not_before(events):
    """Spans of steps that saved nothing are no checkpoint."""
    mine = [e for e in events if e.rank == 0]
    saves = [e.step for e in mine if e.kind == "phase_end" and e.phase == "checkpoint"]
    assert saves == [2, 4, 6]
    durable = [(e.attempt, e.step) for e in mine if e.kind == "checkpoint_durable"]
    assert durable == [(0, 2)]


def test_a_file_that_grew_keeps_the_numbers_of_its_events(logs, tmp_path):
    """What was imported while the job ran counts once afterwards."""
    whole = min(logs.glob("*.jsonl"))
    lines = whole.read_bytes().splitlines(keepends=True)
    (tmp_path / "logs").mkdir()
    seen = []
    for count in (len(lines) // 2, len(lines)):
        (tmp_path / "logs" / whole.name).write_bytes(b"".join(lines[:count]))
        out = tmp_path / f"{count}.jsonl"
        assert main(["import", str(tmp_path / "logs"), "--job-id", "titan", "--out", str(out)]) == 0
        seen.append({(e.writer, e.seq): e for e in map(decode, out.read_bytes().splitlines())})
    half, all_of_it = seen
    assert len(half) < len(all_of_it)
    assert {key: all_of_it[key] for key in half} == half


def test_a_torn_last_line_is_told(logs, tmp_path, capsys):
    whole = min(logs.glob("*.jsonl"))
    torn = tmp_path / whole.name
    torn.write_bytes(whole.read_bytes()[:-40])
    assert main(["import", str(torn), "--out", str(tmp_path / "out")]) == 0
    last = len(whole.read_bytes().splitlines())
    assert f"{torn}:{last}: Input data was truncated" in capsys.readouterr().err
