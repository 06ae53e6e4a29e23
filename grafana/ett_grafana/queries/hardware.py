"""Queries of the hardware under a job, from the series of other exporters.

Their series carry our `job_id` once they are relabelled as docs/grafana.md says: DCGM exporter and
Slurm's by their job, kube-state-metrics by a label of the pod.
"""

from __future__ import annotations

from ett_grafana.queries.parts import JOB, RANGE, RATE

GPU_BUSY = f"avg by (job_id, Hostname) (DCGM_FI_DEV_GPU_UTIL{{{JOB}}}) / 100"
GPU_MEMORY = f"sum by (job_id, Hostname) (DCGM_FI_DEV_FB_USED{{{JOB}}}) * 1048576"
GPU_POWER = f"sum by (job_id, Hostname) (DCGM_FI_DEV_POWER_USAGE{{{JOB}}})"
GPU_HOTTEST = f"max by (job_id, Hostname) (DCGM_FI_DEV_GPU_TEMP{{{JOB}}})"
GPU_XID = f"max by (job_id, Hostname, gpu) (DCGM_FI_DEV_XID_ERRORS{{{JOB}}}) > 0"
PODS = (
    f"max by (job_id, namespace, pod, node) (kube_pod_labels{{{JOB}}}"
    " * on (namespace, pod) group_left (node) kube_pod_info)"
)
_RESTARTS = f"increase(kube_pod_container_status_restarts_total[{RANGE}])"
POD_RESTARTS = (
    f"sum by (job_id, pod) (kube_pod_labels{{{JOB}}} * on (namespace, pod) group_right (job_id) {_RESTARTS})"
)
NODES_NOT_READY = (
    f'kube_node_status_condition{{condition="Ready", status="true"}} == 0 and on (node) ({PODS})'
)
SLURM_MEMORY = f"sum by (job_id, instance) (slurm_job_memory_usage{{{JOB}}})"
SLURM_CPU = f"sum by (job_id, instance) (rate(slurm_job_core_usage_total{{{JOB}}}[{RATE}])) / 1e9"
