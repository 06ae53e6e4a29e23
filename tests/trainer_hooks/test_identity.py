"""Who a process says it is."""

from __future__ import annotations

import os
import time

import pytest

from ett_trainer_hooks.identity import (
    attempt_number,
    identity_from_env,
    label_variable,
    process_started_at,
    sanitised_job_id,
    start_ticks,
)

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "TORCHELASTIC_RESTART_COUNT": "2"}


def test_the_environment_of_torchrun_tells_rank_attempt_and_world():
    """Rank, world size and elastic restarts are read where torchrun puts them."""
    who = identity_from_env({"ETT_JOB_ID": "j", **TORCHRUN}, node="n1")
    assert (who.job_id, who.rank, who.world_size, who.attempt, who.node) == ("j", 3, 8, 2, "n1")
    assert len(who.writer) == 16
    assert int(who.writer, 16) >= 0


def test_rank_0_is_a_rank_and_no_rank_at_all_is_rank_0():
    """A program that knows nothing of ranks is the only one."""
    assert identity_from_env({"ETT_JOB_ID": "j", "RANK": "0"}).rank == 0
    assert identity_from_env({"ETT_JOB_ID": "j"}).rank == 0


@pytest.mark.parametrize(
    ("environ", "attempt"),
    [
        ({}, 0),
        ({"TORCHELASTIC_RESTART_COUNT": "3"}, 3),
        ({"SLURM_RESTART_COUNT": "2"}, 2000),
        ({"SLURM_RESTART_COUNT": "2", "TORCHELASTIC_RESTART_COUNT": "1"}, 2001),
        ({"ETT_ATTEMPT": "5000", "SLURM_RESTART_COUNT": "2", "TORCHELASTIC_RESTART_COUNT": "1"}, 5001),
        ({"ETT_ATTEMPT": "0", "SLURM_RESTART_COUNT": "2"}, 0),
    ],
)
def test_attempts_grow_across_every_kind_of_restart(environ, attempt):
    """Scheduler restarts weigh a thousand; a base that is given replaces them."""
    assert attempt_number(environ) == attempt


def test_labels_hardware_and_allocation_come_from_the_environment():
    """What describes the job travels in variables of ours."""
    environ = {
        "ETT_JOB_ID": "j",
        "ETT_LABEL_TEAM": "ads",
        label_variable("job-name"): "rank v2",
        "ETT_ACCELERATORS": "16",
        "ETT_ACCELERATOR_TYPE": "H200",
        "ETT_ALLOCATED_AT": "1764000000.5",
    }
    who = identity_from_env(environ)
    assert who.labels == {"team": "ads", "job_name": "rank v2"}
    assert (who.accelerators, who.accelerator_type, who.allocated_at) == (16, "H200", 1764000000.5)


@pytest.mark.parametrize(
    ("name", "text"),
    [("RANK", "-1"), ("WORLD_SIZE", "many"), ("ETT_ATTEMPT", "1.5"), ("ETT_ALLOCATED_AT", "soon"),
     ("ETT_ALLOCATED_AT", "nan"), ("ETT_ALLOCATED_AT", "5e9"), ("ETT_ACCELERATORS", "²")],
)  # fmt: skip
def test_a_variable_that_is_no_number_is_named(name, text):
    """The message holds the variable and its text."""
    with pytest.raises(ValueError, match=name):
        identity_from_env({"ETT_JOB_ID": "j", name: text})


def test_a_job_id_keeps_what_is_allowed_and_no_more():
    """Everything else becomes a dash, and the length is bounded."""
    assert sanitised_job_id("a/b:c@d_e.f-1") == "a/b:c@d_e.f-1"
    assert sanitised_job_id("two words\n") == "two-words-"
    assert len(sanitised_job_id("x" * 500)) == 128


def test_the_start_of_this_process_is_known_and_lies_in_the_past():
    """It agrees with what the operating system counts in ticks."""
    started = process_started_at(os.getpid())
    assert started is not None
    assert 0 <= time.time() - started < 24 * 3600
    assert start_ticks(os.getpid()) is not None


def test_a_zombie_and_a_missing_process_have_no_start(tmp_path):
    """A name with spaces and brackets does not confuse the reading of `stat`."""
    fields = " ".join(["1"] * 18)
    for pid, state in ((7, "S"), (8, "Z")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (b) c) {state} {fields} 4242 0 0\n")
    assert start_ticks(7, tmp_path) == 4242
    assert start_ticks(8, tmp_path) is None
    assert start_ticks(9, tmp_path) is None


def test_without_torchrun_the_rank_is_the_one_that_slurm_gives():
    who = identity_from_env({"ETT_JOB_ID": "j", "SLURM_PROCID": "5", "SLURM_NTASKS": "8"})
    assert (who.rank, who.world_size) == (5, 8)


def test_the_rank_of_torchrun_comes_before_that_of_slurm_also_where_it_is_zero():
    environ = {"ETT_JOB_ID": "j", "RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "5", "SLURM_NTASKS": "8"}
    who = identity_from_env(environ)
    assert (who.rank, who.world_size) == (0, 2)
