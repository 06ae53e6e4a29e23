"""Nothing in the code: strangers' programs under `ett run` end with a true partition and one sentence."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.service("torch")

PROGRAMS = Path(__file__).with_name("programs")
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
SENTENCE = re.compile(r"^ett run: Largest loss: [a-z_.]+ \(.+\) took .+ %: .+\.$", re.MULTILINE)
DDP = [TORCHRUN, "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]


@pytest.mark.service("compiler")
def test_a_plain_loop_is_seen_step_by_step(ett_run, tmp_path):
    """Compilation, waits, evaluations and saves own their time; all steps are counted."""
    ran = ett_run(sys.executable, str(PROGRAMS / "plain.py"), str(tmp_path / "model.pt"))
    assert (ran.status, ran.out.startswith("loss ")) == (0, True)
    parts = ran.account().components
    named = {
        "training",
        "data_wait",
        "start.compile",
        "checkpoint_blocking",
        "evaluation",
        "start.data_warmup",
    }
    assert named <= parts.keys()
    assert "stalled" not in parts
    assert ran.account().state == "succeeded"
    assert [event.step for event in ran.of("progress")][-1] == 16
    assert parts["data_wait"] == pytest.approx(15 * 8 * 0.002, rel=0.7)
    assert ran.phases().count("evaluation") == 2
    assert [event.step for event in ran.of("checkpoint_durable")] == [8, 16]
    assert sum(event.native_compile_s for event in ran.of("compile")) > 0
    assert {event.cache for event in ran.of("cache")} == {"fx_graph", "aot_autograd"}
    assert ran.ranks == {-1, 0}
    assert len(SENTENCE.findall(ran.err)) == 1


def test_data_parallel_ranks_are_told_apart_and_their_helpers_are_none(ett_run, tmp_path):
    """Two ranks; neither torchrun nor loader workers nor upload threads count; uploads become durable."""
    ran = ett_run(*DDP, str(PROGRAMS / "ddp.py"), str(tmp_path / "saves"))
    assert ran.status == 0, ran.err
    assert ran.ranks == {-1, 0, 1}
    assert len({event.writer for event in ran.events}) == 3
    parts = ran.account().components
    assert {"training", "data_wait", "checkpoint_blocking", "start.data_warmup"} <= parts.keys()
    assert ran.account().state == "succeeded"
    assert [ran.of("progress", rank)[-1].step for rank in (0, 1)] == [32, 32]
    assert "process_group" in ran.phases(0)
    durable = [(event.step, event.mode) for event in ran.of("checkpoint_durable")]
    assert sorted(durable) == [
        (8, "sync"),
        (16, "async"),
        (16, "sync"),
        (24, "sync"),
        (32, "async"),
        (32, "sync"),
    ]
    assert len(SENTENCE.findall(ran.err)) == 1


def test_a_bare_torchrun_needs_variables_only(bare, tmp_path):
    """Without a launcher each rank tells its own success."""
    ran = bare(*DDP, str(PROGRAMS / "ddp.py"), str(tmp_path / "saves"))
    assert ran.status == 0, ran.err
    assert ran.ranks == {0, 1}
    assert ran.account().state == "succeeded"
    assert {"training", "data_wait", "checkpoint_blocking"} <= ran.account().components.keys()


def test_a_trainer_class_counts_optimizer_steps_and_resumes_by_the_optimizers_count(ett_run, tmp_path):
    """Accumulation and two optimizers: one step for four batches; validation is none, the start is read."""
    words = [sys.executable, str(PROGRAMS / "trainer.py"), str(tmp_path / "model.pt")]
    first = ett_run(*words)
    assert first.status == 0, first.err
    assert first.of("progress")[-1].step == 8
    assert first.phases().count("evaluation") == 2
    assert {"training", "evaluation", "checkpoint_blocking"} <= first.account().components.keys()
    assert first.of("first_batch")[0].step is None
    second = ett_run(*words, ETT_ATTEMPT="1")
    again = [event for event in second.events if event.attempt == 1]
    assert [event.step for event in again if event.kind == "first_batch"] == [8]
    assert [event.step for event in again if event.kind == "progress"][-1] == 16
    assert "checkpoint_load" in [event.phase for event in again if event.kind == "phase_begin"]


def test_quiet_says_nothing(ett_run, script):
    """With --quiet only the command is heard."""
    ran = ett_run(sys.executable, script("print('here')"), options=("--quiet",))
    assert (ran.status, ran.out, ran.err) == (0, "here\n", "")


def test_a_program_without_torch_stays_unobserved(ett_run, script):
    """Nothing is made up about it, and the sentence says what would help."""
    ran = ett_run(sys.executable, script("print('here')"))
    assert ran.ranks == {-1}
    assert ran.account().components.keys() <= {"unobserved", "other"}
    assert "Largest loss: unobserved" in ran.err
