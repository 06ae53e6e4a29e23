"""Queries of the hardware under a job, from the series of other exporters.

Their series carry our `job_id` once they are relabelled as docs/grafana.md says: those of Slurm's jobs by
the number of the job, pods by their labels. GPUs of pods carry the pod only and find their job through it.
"""

from __future__ import annotations

from ett_grafana.queries.parts import JOB, RANGE

_PODS = f"max by (namespace, pod, job_id) (kube_pod_labels{{{JOB}}})"
_POD = "on (namespace, pod)"


def of_gpus(name: str) -> str:
    """A family of DCGM exporter, of the GPUs of the chosen jobs, by `job_id`."""
    of_pods = f'{name}{{job_id="", pod!=""}} * {_POD} group_left (job_id) {_PODS}'
    return f"({name}{{{JOB}}} or {of_pods})"


_BY_HOST = "by (job_id, Hostname)"
GPU_BUSY = f"avg {_BY_HOST} ({of_gpus('DCGM_FI_DEV_GPU_UTIL')}) / 100"
GPU_MEMORY = f"sum {_BY_HOST} ({of_gpus('DCGM_FI_DEV_FB_USED')}) * 1048576"
GPU_POWER = f"sum {_BY_HOST} ({of_gpus('DCGM_FI_DEV_POWER_USAGE')})"
GPU_HOTTEST = f"max {_BY_HOST} ({of_gpus('DCGM_FI_DEV_GPU_TEMP')})"
GPU_XID = f"max by (job_id, Hostname, gpu) ({of_gpus('DCGM_FI_DEV_XID_ERRORS')}) > 0"
PODS = f"max by (job_id, namespace, pod, node) ({_PODS} * {_POD} group_left (node) kube_pod_info)"
_RESTARTS = f"increase(kube_pod_container_status_restarts_total[{RANGE}])"
POD_RESTARTS = f"sum by (job_id, pod) ({_RESTARTS} * {_POD} group_left (job_id) {_PODS})"
_NOT_READY = 'kube_node_status_condition{condition="Ready", status="true"} == 0'
NODES_NOT_READY = f"max by (node) ({_NOT_READY} and on (node) {PODS})"
SLURM_MEMORY = f"sum by (job_id, instance) (slurm_job_memory_usage{{{JOB}}})"
SLURM_GPU_BUSY = f"avg by (job_id, instance) (slurm_job_utilization_gpu{{{JOB}}}) / 100"
