"""Which job `ett run` runs, where nobody says."""

import pytest

from ett_cli.job_settings import new_job_id

NODES = ({"NODE_RANK": "0"}, {"NODE_RANK": "1"})


@pytest.mark.parametrize(
    "environ",
    [
        {"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "a"},
        {"SKYPILOT_TASK_ID": "sky-managed-1_x_7-0"},
        {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOBSET_NAME": "x"},
        {"RAY_JOB_SUBMISSION_ID": "raysubmit_1"},
        {"PET_RDZV_ID": "x"},
    ],
)
def test_all_nodes_and_restarts_of_a_scheduled_job_get_one_name(environ):
    """The name depends neither on the process, nor on the moment, nor on the restart."""
    restarts = ({}, {"SLURM_RESTART_COUNT": "1", "JOBSET_RESTART_ATTEMPT": "1"})
    names = {new_job_id(["python"], {**environ, **node, **restart}) for node in NODES for restart in restarts}
    assert len(names) == 1
    assert not names.pop().startswith("python-")


def test_a_rendezvous_id_names_the_job_where_no_scheduler_does():
    """On several nodes, that is; on one, a number from a tutorial is no name for a job."""
    command = ["torchrun", "--nnodes", "2", "--rdzv_id=dlrm", "train.py"]
    assert new_job_id(command, {}) == "torchrun-dlrm"
    assert new_job_id(["torchrun", "--rdzv-id=100", "t.py"], {}).startswith("torchrun-20")
    assert new_job_id(command, {"SLURM_JOB_ID": "7"}) == "slurm-7"


@pytest.mark.parametrize(
    "command", [["/opt/python", "t.py"], ["python", "--rdzv-id"], ["python", "--rdzv-id=none"]]
)
def test_else_each_run_gets_a_name_of_its_own(command):
    assert new_job_id(command, {}).startswith("python-")
