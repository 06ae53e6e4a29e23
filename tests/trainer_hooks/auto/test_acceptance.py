"""Nothing in the code: strangers' programs under `ett run` end with a true partition and one sentence."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.service("torch")

PROGRAMS = Path(__file__).with_name("programs")
ETT = str(Path(sys.executable).with_name("ett"))
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
SENTENCE = re.compile(r"^ett run: Largest loss: [a-z_.]+ \(.+\) took .+ %: .+\.$", re.MULTILINE)
DDP = [TORCHRUN, "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]


FAST = {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0", "TORCHINDUCTOR_VEC_ISA_OK": "1"}
"""Spares a compiled header and probes of the CPU."""
WORKERS = {"TORCHINDUCTOR_COMPILE_THREADS": "2"}
"""The compiler has processes of its own, which are no ranks."""


def own_clock(ran):
    """What the program itself has measured: the object on the last line that it printed."""
    assert ran.status == 0, ran.err
    return json.loads(ran.out.splitlines()[-1])


def about(seconds):
    """As long as the program says, to a fifth or a tenth of a second: a loaded machine stops it anywhere."""
    return pytest.approx(seconds, rel=0.2, abs=0.1)


@pytest.mark.service("compiler")
def test_a_plain_loop_is_seen_step_by_step(ett_run, tmp_path):
    """Compilation, waits, evaluations, saves and steps take what the program's own clock says."""
    words = [sys.executable, str(PROGRAMS / "plain.py"), str(tmp_path / "model.pt")]
    ran = ett_run(*words, **FAST, **WORKERS)
    clock, parts = own_clock(ran), ran.account().components
    assert parts["training"] == about(clock["steps"])
    assert parts["start.compile"] == about(clock["first_step"])
    assert parts["data_wait"] + parts["start.data_warmup"] == about(clock["data"])
    assert parts["evaluation"] == about(clock["evaluation"])
    assert parts["checkpoint_blocking"] == about(clock["saves"])
    assert "stalled" not in parts
    assert ran.account().state == "succeeded"
    assert [event.step for event in ran.of("progress")][-1] == 16
    assert ran.phases().count("evaluation") == 2
    assert [event.step for event in ran.of("checkpoint_durable")] == [8, 16]
    assert sum(event.native_compile_s for event in ran.of("compile")) > 0
    assert {event.cache for event in ran.of("cache")} == {"fx_graph", "aot_autograd"}
    assert ran.ranks == {-1, 0}
    assert len(SENTENCE.findall(ran.err)) == 1


def test_a_killed_rank_is_accounted_for_and_the_restart_continues_where_it_did(ett_run, tmp_path):
    """Two attempts; the steps since the last save are lost, and the partition says what recovery took.

    Torch 2.13 shares one store over restarts, so that some fail or hang, observed or not; with the
    variable every restart has its own.
    """
    words = [*DDP, "--max-restarts", "3", str(PROGRAMS / "killed.py"), str(tmp_path / "saves")]
    ran = ett_run(*words, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    clock, account = own_clock(ran), ran.account()
    (killed,) = (json.loads(line) for line in ran.out.splitlines() if '"lost"' in line)
    assert ran.ranks == {-1, 0, 1}
    assert {event.attempt for event in ran.of("progress")} == {0, 1}
    assert account.state == "succeeded"
    assert clock["began_at"] == 16
    first = [event.step for event in ran.of("first_batch", 0) if event.attempt == 1]
    assert first == [16]
    parts = account.components
    until_noticed_s = 0.5
    assert killed["lost"] - 0.1 <= parts["unsaved_training"] <= killed["lost"] + until_noticed_s
    assert parts["training"] == about(killed["kept"] + clock["steps"])
    assert ran.seconds_in("process_group", attempt=1) == about(clock["process_group"])
    assert ran.seconds_in("checkpoint_load", attempt=1) == about(clock["load"])
    assert {"recover.process_group", "recover.checkpoint_load", "recover.process_start"} <= parts.keys()
    assert ran.of("progress", 1)[-1].step == 32
    durable = [(event.step, event.mode) for event in ran.of("checkpoint_durable")]
    assert sorted(durable) == [(8, "sync"), (16, "async"), (24, "sync"), (32, "async")]
    assert all(event.bytes for event in ran.of("checkpoint_durable") if event.mode == "sync")
    assert len(SENTENCE.findall(ran.err)) == 1


@pytest.mark.service("lightning")
def test_a_lightning_trainer_is_seen_through(ett_run, tmp_path):
    """Steps, validations and the checkpoints that it puts together in memory."""
    ran = ett_run(sys.executable, str(PROGRAMS / "lightning_job.py"), str(tmp_path / "saves"))
    clock, parts = own_clock(ran), ran.account().components
    assert ran.of("progress")[-1].step == clock["step"] == 40
    assert parts["training"] == about(clock["training_steps"])
    assert parts["evaluation"] == about(clock["validation_steps"])
    assert parts["training"] + parts["evaluation"] <= clock["fit"] + 0.1
    assert [event.step for event in ran.of("checkpoint_durable")] == [20, 40]
    assert all(event.bytes for event in ran.of("checkpoint"))
    assert ran.account().state == "succeeded"
    assert len(SENTENCE.findall(ran.err)) == 1


@pytest.mark.service("transformers")
def test_a_hugging_face_trainer_is_seen_through(ett_run, tmp_path):
    """Accumulated steps; saves in several files. Its loader reads ahead: evaluations end a batch early."""
    ran = ett_run(sys.executable, str(PROGRAMS / "hugging_face_job.py"), str(tmp_path / "saves"))
    clock, parts = own_clock(ran), ran.account().components
    assert ran.of("progress")[-1].step == clock["step"] == 20
    last_batches = 2 * 0.05
    assert parts["training"] == about(clock["steps"] + last_batches)
    assert parts["evaluation"] == about(clock["evaluation"] - last_batches)
    assert [event.step for event in ran.of("checkpoint_durable")] == [10, 20]
    assert ran.account().state == "succeeded"
    assert len(SENTENCE.findall(ran.err)) == 1


def test_a_bare_torchrun_needs_variables_only(ran, tmp_path):
    """`ett env` prints them; ranks, their loader workers and uploads are told apart without a launcher."""
    lines = f'eval "$({ETT} env --job-id job --journal-dir {tmp_path / "journal"})"'
    command = " ".join([*DDP, str(PROGRAMS / "ddp.py"), str(tmp_path / "saves")])
    done = ran("bash", "-ec", f"{lines}; {command}")
    assert done.status == 0, done.err
    assert done.ranks == {0, 1}
    assert len({event.writer for event in done.events}) == 2
    parts = done.account().components
    assert {"training", "data_wait", "checkpoint_blocking", "start.data_warmup"} <= parts.keys()
    assert done.account().state == "succeeded"
    assert [done.of("progress", rank)[-1].step for rank in (0, 1)] == [32, 32]
    durable = [(event.step, event.mode) for event in done.of("checkpoint_durable")]
    assert sorted(durable) == [
        *[(8, "sync"), (16, "async"), (16, "sync")],
        *[(24, "sync"), (32, "async"), (32, "sync")],
    ]
    uploaded = {event.step for event in done.of("checkpoint") if event.upload_s is not None}
    assert uploaded == {16, 32}
    beside = {event.track for event in done.of("phase_end") if event.phase == "checkpoint_upload"}
    assert beside == {"checkpoint"}


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


@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_getting_a_state_dict_is_no_step(warm, tmp_path, kind):
    """Neither before a checkpoint is loaded nor while it saves; the loop begins after the load."""
    words = [str(PROGRAMS / "state_dicts.py"), kind, str(tmp_path / "saves")]
    first = warm(*words)
    assert first.status == 0, first.err
    assert [event.step for event in first.of("checkpoint_durable")] == [4, 8]
    again = [event for event in warm(*words, ETT_ATTEMPT="1").events if event.attempt == 1]
    assert [event.step for event in again if event.kind == "first_batch"] == [8]
    assert [e.step for e in again if e.kind == "checkpoint_durable"] == [12, 16]
    kinds = [
        getattr(event, "phase", event.kind) for event in again if event.kind in ("phase_end", "first_batch")
    ]
    assert kinds.index("checkpoint_load") < kinds.index("first_batch")


def test_quiet_says_nothing(ett_run, script):
    """With --quiet only the command is heard."""
    ran = ett_run(sys.executable, script("print('here')"), options=("--quiet",))
    assert (ran.status, ran.out, ran.err) == (0, "here\n", "")


def test_a_failure_is_said_before_the_largest_loss(ett_run, script, tmp_path):
    """What went wrong, in its own words, whether to try again, and the command that tells more."""
    ran = ett_run(sys.executable, script("raise ValueError('no such table: users')"))
    assert ran.status == 1
    *_, failed, loss = ran.err.splitlines()
    assert failed == (
        "ett run: Failed: the command exited with status 1: ValueError: no such table: users. "
        "Cause: user_code (likely), of the workload; it will fail again until something is changed. "
        f"More: ett account {tmp_path / 'journal'}"
    )
    assert loss.startswith("ett run: Largest loss: ")


def test_a_job_that_was_restarted_and_succeeded_did_not_fail(ett_run, script, tmp_path):
    """Its failures are in the account; the end speaks of the end."""
    place = str(tmp_path / "once")
    once = f"import pathlib, sys; p = pathlib.Path({place!r}); e = p.exists(); p.touch(); sys.exit(not e)"
    ran = ett_run(sys.executable, script(once), options=("--max-restarts", "1", "--restart-delay", "0"))
    assert ran.status == 0
    assert "Failed: " not in ran.err


def test_a_program_without_torch_stays_unobserved(ett_run, script):
    """Nothing is made up about it, and the sentence says what would help."""
    ran = ett_run(sys.executable, script("print('here')"))
    assert ran.ranks == {-1}
    assert ran.account().components.keys() <= {"unobserved", "other"}
    assert "Largest loss: unobserved" in ran.err
