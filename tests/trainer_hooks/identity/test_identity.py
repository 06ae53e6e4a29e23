"""Who a process says it is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ett_core.events import AttemptStart, decode, encode
from ett_trainer_hooks.auto import SITE
from ett_trainer_hooks.identity import identity_from_env, is_first_node, label_variable, sanitised_job_id
from ett_trainer_hooks.identity.kubernetes import with_podinfo
from ett_trainer_hooks.identity.who import LABELS_CUT, job_id_from_env
from ett_trainer_hooks.procfs import process_started_at, start_ticks

GONE = 9_000_000
"""From here on no process has a number."""
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
    assert identity_from_env({"ETT_JOB_ID": "j", **environ}).attempt == attempt


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


def test_labels_that_no_exporter_would_take_are_cut_and_that_is_said():
    """The start of an attempt is one line with all its labels: it must not be lost for one of them."""
    said = []
    environ = {"ETT_JOB_ID": "j", **{f"ETT_LABEL_N{number:03}": "x" * 5000 for number in range(100)}}
    labels = identity_from_env(environ, warn=said.append).labels
    start = AttemptStart(job_id="j", writer="w", seq=0, attempt=0, rank=0, time=1.0, labels=labels)
    assert list(labels)[:2] == ["n000", "n001"]
    assert {len(value) for value in labels.values()} == {1024}
    assert len(encode(start)) < 40_000
    assert said == [LABELS_CUT]
    few = {"ETT_JOB_ID": "j", **{f"ETT_LABEL_N{number:03}": "x" for number in range(100)}}
    assert len(identity_from_env(few, warn=said.append).labels) == 64
    assert said == [LABELS_CUT] * 2


@pytest.mark.parametrize(
    ("name", "text"),
    [("ETT_RANK", "-1"), ("ETT_WORLD_SIZE", "many"), ("ETT_ATTEMPT", "1.5"), ("ETT_ALLOCATED_AT", "soon"),
     ("ETT_ALLOCATED_AT", "nan"), ("ETT_ALLOCATED_AT", "5e9"), ("ETT_ACCELERATORS", "²")],
)  # fmt: skip
def test_a_setting_of_ours_that_is_no_number_is_an_error_that_names_it(name, text):
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


SRUN = {
    "SLURM_JOB_ID": "81", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "16", "SLURM_NTASKS": "16",
    "SLURM_PROCID": "9", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_NNODES": "2",
    "SLURM_JOB_NAME": "dlrm", "SLURM_CLUSTER_NAME": "alpha", "SLURM_JOB_PARTITION": "h100",
    "SLURM_JOB_ACCOUNT": "ads", "SLURM_JOB_USER": "ana", "SLURM_GPUS_ON_NODE": "8",
    "SLURM_JOB_START_TIME": "1764000000", "SLURMD_NODENAME": "gpu-7", "SLURM_RESTART_COUNT": "1",
}  # fmt: skip
BATCH_SCRIPT = {
    **SRUN, "SLURM_STEP_ID": "4294967291", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0",
}  # fmt: skip
INTERACTIVE = {**BATCH_SCRIPT, "SLURM_STEP_ID": "4294967290", "SLURM_JOB_NAME": "interactive"}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAMESPACE": "ml", "HOSTNAME": "dlrm-worker-2"}
PYTORCHJOB = {
    **POD, "PET_NNODES": "4", "PET_NODE_RANK": "3", "PET_MASTER_ADDR": "dlrm-master-0", "RANK": "3",
    "WORLD_SIZE": "4", "MASTER_ADDR": "dlrm-master-0",
}  # fmt: skip
TRAINJOB = {
    **POD, "HOSTNAME": "dlrm-node-0-1", "PET_NNODES": "2", "PET_NODE_RANK": "1",
    "PET_MASTER_ADDR": "dlrm-node-0-0.dlrm", "JOB_COMPLETION_INDEX": "1",
}  # fmt: skip
JOBSET = {**POD, "HOSTNAME": "dlrm-workers-0-1", "JOBSET_NAME": "dlrm", "JOB_COMPLETION_INDEX": "1"}
INDEXED_JOB = {**POD, "HOSTNAME": "dlrm-3", "JOB_COMPLETION_INDEX": "3"}
SKYPILOT = {
    "SKYPILOT_TASK_ID": "sky-managed-2026-01-02-03-04-05-000001_dlrm_7-0", "SKYPILOT_NODE_RANK": "1",
    "SKYPILOT_NUM_NODES": "2", "SKYPILOT_NUM_GPUS_PER_NODE": "8",
}  # fmt: skip
RAY_CONFIG = {"RAY_JOB_CONFIG_JSON_ENV_VAR": '{"metadata": {"job_submission_id": "raysubmit_9f"}}'}
RAY_TRAIN = {**RAY_CONFIG, "RANK": "5", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "NODE_RANK": "1",
             "WORLD_SIZE": "8", "RAY_JOB_ID": "01000000"}  # fmt: skip


def identity(environ, **world):
    """The identity in an environment without files of a pod; what it warns of goes to `world["warn"]`."""
    world = {"surrounded": lambda environ: environ, "warn": unexpected, **world}
    return identity_from_env(environ, **world)


def unexpected(text):
    raise AssertionError(text)


@pytest.mark.parametrize(
    ("environ", "job_id"),
    [
        ({"ETT_JOB_ID": "mine", **SRUN, **SKYPILOT}, "mine"),
        (SRUN, "slurm-alpha-81"),
        ({"SLURM_JOB_ID": "81"}, "slurm-81"),
        ({**SRUN, "SLURM_ARRAY_JOB_ID": "80", "SLURM_ARRAY_TASK_ID": "3"}, "slurm-alpha-80_3"),
        ({**SRUN, "SLURM_HET_SIZE": "2", "SLURM_JOB_ID_HET_GROUP_0": "80"}, "slurm-alpha-80"),
        ({**SRUN, "SLURM_JOB_NAME": "interactive"}, "slurm-alpha-81.0"),
        (INTERACTIVE, ""),
        ({**SRUN, **POD}, "slurm-alpha-81"),
        (PYTORCHJOB, "k8s-ml-dlrm"),
        ({**PYTORCHJOB, "PET_MASTER_ADDR": "localhost", "MASTER_ADDR": "localhost"}, "k8s-ml-dlrm"),
        (TRAINJOB, "k8s-ml-dlrm"),
        (JOBSET, "k8s-ml-dlrm"),
        (INDEXED_JOB, "k8s-ml-dlrm"),
        ({**POD, "JOB_NAME": "of-jenkins"}, ""),
        (SKYPILOT, SKYPILOT["SKYPILOT_TASK_ID"]),
        ({**SKYPILOT, **POD, "RAY_JOB_ID": "01000000"}, SKYPILOT["SKYPILOT_TASK_ID"]),
        (RAY_CONFIG, "ray-raysubmit_9f"),
        ({"RAY_JOB_CONFIG_JSON_ENV_VAR": "[1", "RAY_JOB_ID": "01000000"}, ""),
        ({"RAY_JOB_CONFIG_JSON_ENV_VAR": '{"metadata": [1]}'}, ""),
        ({**TORCHRUN, "TORCHELASTIC_RUN_ID": "dlrm"}, "torchrun-dlrm"),
        ({**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}, ""),
        ({**TORCHRUN, "TORCHELASTIC_RUN_ID": str(uuid.uuid4())}, ""),
        ({}, ""),
    ],
)
def test_the_job_has_the_name_that_all_its_nodes_and_restarts_share(environ, job_id):
    """What stands furthest out names it; a name that would be another one at each start is none."""
    assert job_id_from_env(environ) == job_id
    if job_id:
        assert identity(environ).job_id == job_id
    else:
        with pytest.raises(ValueError, match="ETT_JOB_ID"):
            identity(environ)


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        (SRUN, (9, 16)),
        ({**SRUN, "ETT_RANK": "0", "ETT_WORLD_SIZE": "1"}, (0, 1)),
        ({**SRUN, **TORCHRUN}, (3, 8)),
        (BATCH_SCRIPT, (0, 0)),
        ({**BATCH_SCRIPT, "LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2"}, (1, 2)),
        (INTERACTIVE, (0, 0)),
        ({**INTERACTIVE, "RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        ({**INTERACTIVE, "PMIX_RANK": "0", "LOCAL_RANK": "1"}, (1, 0)),
        ({**SRUN, "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, (0, 16)),
        ({**SRUN, "SLURM_NTASKS_HET_GROUP_0": "8", "SLURM_NTASKS_HET_GROUP_1": "24"}, (9, 32)),
        ({**SRUN, "OMPI_COMM_WORLD_RANK": "12", "OMPI_COMM_WORLD_SIZE": "32"}, (12, 32)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, (2, 4)),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, (1, 2)),
        ({"LOCAL_RANK": "1", "NODE_RANK": "2", "LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "16"}, (9, 16)),
        ({"RANK": "0", "LOCAL_RANK": "5"}, (0, 0)),
        (PYTORCHJOB, (3, 4)),
        (INDEXED_JOB, (3, 0)),
        (SKYPILOT, (1, 0)),
        (RAY_TRAIN, (5, 8)),
        ({}, (0, 0)),
    ],
)
def test_a_rank_is_told_by_what_stands_nearest_to_the_process(environ, place):
    """Variables that a scheduler left to everything below it do not mislead."""
    who = identity({**environ, "ETT_JOB_ID": "j"})
    assert (who.rank, who.world_size) == place


def test_a_local_rank_that_does_not_tell_the_rank_is_said():
    """On the second node of Lightning's own launcher nothing tells how many ranks the first one has."""
    said = []
    who = identity({"ETT_JOB_ID": "j", "LOCAL_RANK": "0", "NODE_RANK": "1"}, warn=said.append)
    assert who.rank == 0
    assert len(said) == 1
    assert "set ETT_RANK" in said[0]


@pytest.mark.parametrize(
    ("environ", "attempt"),
    [
        (SRUN, 1000),
        ({**SRUN, "TORCHELASTIC_RESTART_COUNT": "2"}, 1002),
        ({**JOBSET, "JOBSET_RESTART_ATTEMPT": "3"}, 3000),
        ({**JOBSET, "JOBSET_RESTART_ATTEMPT": "3", "JOBSET_IN_PLACE_RESTART_ATTEMPT": "2"}, 5000),
        (PYTORCHJOB, 0),
    ],
)
def test_restarts_by_a_scheduler_count_in_thousands(environ, attempt):
    assert identity({**environ, "ETT_JOB_ID": "j"}).attempt == attempt


def test_a_job_that_slurm_requeues_keeps_its_name_and_its_attempts_grow():
    """A requeue changes neither the job id nor the array task; the count and the start time move on."""
    starts = [
        identity({**SRUN, "SLURM_RESTART_COUNT": str(count), "SLURM_JOB_START_TIME": str(1764000000 + at)})
        for count, at in ((0, 0), (1, 5000), (2, 9000))
    ]
    assert {who.job_id for who in starts} == {"slurm-alpha-81"}
    assert [who.attempt for who in starts] == [0, 1000, 2000]
    assert [who.allocated_at for who in starts] == [1764000000.0, 1764005000.0, 1764009000.0]
    assert len({who.writer for who in starts}) == 3


@pytest.mark.parametrize(
    ("environ", "held"),
    [
        (SRUN, (16, "")),
        ({**SRUN, "SLURM_GPUS_PER_NODE": "h100:8"}, (16, "h100")),
        ({**SRUN, "SLURM_GPUS": "a100:12"}, (12, "a100")),
        ({"SLURM_JOB_ID": "1", "SLURM_GPUS_PER_TASK": "1", "SLURM_NTASKS": "6"}, (6, "")),
        ({**SRUN, "ETT_ACCELERATORS": "0", "ETT_ACCELERATOR_TYPE": "H200"}, (0, "H200")),
        ({**SRUN, "SLURM_HET_SIZE": "2"}, (0, "")),
        (SKYPILOT, (16, "")),
        (POD, (0, "")),
        ({"SLURM_GPUS": "4"}, (0, "")),
    ],
)
def test_accelerators_are_those_of_the_whole_job(environ, held):
    """Not of a node; 0 where nobody tells."""
    who = identity({**environ, "ETT_JOB_ID": "j"})
    assert (who.accelerators, who.accelerator_type) == held


def test_labels_describe_the_job_and_ours_win():
    """A shell lends its job no name."""
    who = identity({**SRUN, "ETT_LABEL_PARTITION": "mine"})
    assert who.labels == {
        "scheduler": "slurm", "job_name": "dlrm", "cluster": "alpha", "partition": "mine", "account": "ads",
        "user": "ana",
    }  # fmt: skip
    assert "job_name" not in identity({**INTERACTIVE, "ETT_JOB_ID": "j"}).labels
    assert identity(JOBSET).labels == {"scheduler": "kubernetes", "job_name": "dlrm", "namespace": "ml"}
    assert identity(RAY_TRAIN).labels == {"scheduler": "ray"}
    assert identity({**SKYPILOT, **POD}).labels == {"scheduler": "skypilot"}


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        (SRUN, "gpu-7"),
        ({**SRUN, "ETT_NODE": "rack-3"}, "rack-3"),
        ({**POD, "NODE_NAME": "gpu-9"}, "gpu-9"),
        ({"NODE_NAME": "of-jenkins"}, socket.gethostname()),
        (POD, socket.gethostname()),
    ],
)
def test_a_node_is_called_as_the_scheduler_calls_it(environ, name):
    """A pod's host name says nothing of the machine; a NODE_NAME outside of a pod is somebody else's."""
    assert identity({**environ, "ETT_JOB_ID": "j"}).node == name


@pytest.mark.parametrize(
    ("environ", "first"),
    [
        ({}, True),
        (BATCH_SCRIPT, True),
        (SRUN, False),
        ({**SRUN, "SLURM_PROCID": "1", "SLURM_NODEID": "0"}, False),
        (PYTORCHJOB, False),
        ({**TRAINJOB, "PET_NODE_RANK": "0", "JOB_COMPLETION_INDEX": "0"}, True),
        ({**JOBSET, "JOB_GLOBAL_INDEX": "1", "JOB_COMPLETION_INDEX": "0"}, False),
        (SKYPILOT, False),
        ({**SKYPILOT, "ETT_NODE_RANK": "0"}, True),
        ({"NODE_RANK": "many"}, True),
    ],
)
def test_one_launcher_of_a_job_is_the_first(environ, first):
    """One for each node or for each rank: only the first tells that the job has ended."""
    assert is_first_node(environ) is first


@pytest.mark.parametrize(
    ("name", "text"),
    [("RANK", "-1"), ("WORLD_SIZE", "many"), ("SLURM_RESTART_COUNT", "²"), ("SLURM_JOB_START_TIME", "soon"),
     ("SLURM_GPUS_ON_NODE", "lots"), ("TORCHELASTIC_RESTART_COUNT", "1.5"), ("RANK", "9" * 30)],
)  # fmt: skip
def test_only_the_value_that_cannot_be_understood_is_ignored(name, text):
    """One sentence names it; everything else is as it would be without it."""
    sound = {**SRUN, "ETT_JOB_ID": "j"}
    said = []
    assert identity({**sound, name: text}, writer="w", pid=0, warn=said.append) == identity(
        {key: value for key, value in sound.items() if key != name}, writer="w", pid=0
    )
    (sentence,) = said
    assert sentence.startswith(f"{name}={text!r} is not ")
    assert sentence.endswith("; it is ignored")


def test_of_the_ranks_of_a_node_one_warns():
    """A garbled variable of the scheduler is told once a node."""
    said = []
    for local_rank in range(4):
        environ = {
            "ETT_JOB_ID": "j",
            "RANK": str(local_rank),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": "x",
        }
        identity(environ, warn=said.append)
    assert len(said) == 1


def test_a_pod_is_told_more_by_the_files_of_the_downward_api(tmp_path):
    """Labels and annotations that no variable passes on: the name and the restarts of a JobSet."""
    (tmp_path / "labels").write_text(
        'app="a \\"b\\""\njobset.sigs.k8s.io/jobset-name="dlrm"\nkueue.x-k8s.io/queue-name="ads"\n'
    )
    (tmp_path / "annotations").write_text('jobset.sigs.k8s.io/restart-attempt="2"\n')
    (tmp_path / "namespace").write_text("ml")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOBSET_RESTART_ATTEMPT": "", "HOSTNAME": "dlrm-w-0-0"}

    def surrounded(environ):
        return with_podinfo(environ, tmp_path, tmp_path / "namespace")

    who = identity(environ, surrounded=surrounded)
    assert (who.job_id, who.attempt) == ("k8s-ml-dlrm", 2000)
    assert who.labels == {
        "scheduler": "kubernetes", "job_name": "dlrm", "namespace": "ml", "queue": "ads",
    }  # fmt: skip
    assert identity({**environ, "JOBSET_RESTART_ATTEMPT": "4"}, surrounded=surrounded).attempt == 4000
    outside = {"ETT_JOB_ID": "j"}
    assert with_podinfo(outside, tmp_path) is outside


def test_starts_of_a_local_rank_are_counted_where_its_agent_counts_none(tmp_path):
    """An agent that starts its workers anew for a failure elsewhere leaves its count as it was.

    While the process that noted a start lives, others that ask are its children.
    """
    (tmp_path / "attempt_0" / "1").mkdir(parents=True)
    environ = {
        "ETT_JOB_ID": "j", "RANK": "5", "LOCAL_RANK": "1", "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_ERROR_FILE": str(tmp_path / "attempt_0" / "1" / "error.json"),
    }  # fmt: skip
    assert [identity(environ, pid=pid).attempt for pid in (GONE, GONE, GONE + 1, GONE + 2)] == [0, 0, 1, 2]
    assert identity({**environ, "LOCAL_RANK": "0"}, pid=GONE + 3).attempt == 0
    assert [identity(environ, pid=pid).attempt for pid in (os.getpid(), GONE + 5, GONE + 6)] == [3, 3, 3]
    assert identity({**environ, "TORCHELASTIC_RESTART_COUNT": "7"}, pid=GONE + 4).attempt == 7
    assert identity({**environ, "TORCHELASTIC_ERROR_FILE": "/proc/nope/attempt_0/1/error.json"}).attempt == 0
    assert identity({**environ, "TORCHELASTIC_ERROR_FILE": "/dev/null"}).attempt == 0


def test_a_rank_that_dies_while_it_imports_has_been_started_all_the_same(tmp_path):
    """The automatic part notes a start before anything of the program runs, and no start for its children."""
    (tmp_path / "attempt_0" / "0").mkdir(parents=True)
    environ = {
        **os.environ, "ETT_JOB_ID": "j", "ETT_JOURNAL_DIR": str(tmp_path), "ETT_AUTO": "1",
        "PYTHONPATH": f"{SITE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "RANK": "0", "LOCAL_RANK": "0", "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_ERROR_FILE": str(tmp_path / "attempt_0" / "0" / "error.json"),
    }  # fmt: skip
    program = (
        "import os, subprocess, sys; subprocess.run([sys.executable, '-c', '']); os.kill(os.getpid(), 9)"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program], env=environ, check=False)
    assert identity(environ).attempt == 2


OTHERS = sorted(
    {*SRUN, *PYTORCHJOB, *TRAINJOB, *SKYPILOT, *RAY_TRAIN, *TORCHRUN, "OMPI_COMM_WORLD_RANK", "SLURM_GPUS"}
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(OTHERS), st.text(max_size=12) | st.integers(-1, 1 << 70).map(str), max_size=12
    )
)
def test_nothing_that_others_set_is_an_error(environ):
    """Whatever a scheduler's variables hold, there is an identity that an event can carry."""
    who = identity({**environ, "ETT_JOB_ID": "j"}, warn=lambda _: None, writer="w", pid=1)
    start = AttemptStart(
        job_id=who.job_id, writer="w", seq=0, attempt=who.attempt, rank=who.rank, time=1.0,
        world_size=who.world_size, accelerators=who.accelerators, allocated_at=who.allocated_at,
    )  # fmt: skip
    assert decode(encode(start)) == start
    is_first_node(environ)
    job_id_from_env(environ)
