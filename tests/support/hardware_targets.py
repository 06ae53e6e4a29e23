"""Exporters of hardware as targets: what DCGM exporter, kube-state-metrics and slurm-job-exporter answer."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

DCGM_SLURM = """\
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia0",Hostname="n1",hpc_job="4711"} 90
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",device="nvidia1",Hostname="n1",hpc_job="4711"} 70
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-c",device="nvidia2",Hostname="n1",hpc_job="9999"} 5
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",Hostname="n1",hpc_job="4711"} 1000
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",Hostname="n1",hpc_job="4711"} 2000
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",Hostname="n1",hpc_job="4711"} 610
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",Hostname="n1",hpc_job="4711"} 590
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",Hostname="n1",hpc_job="4711"} 61
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b",Hostname="n1",hpc_job="4711"} 67
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a",Hostname="n1",hpc_job="4711"} 0
DCGM_FI_DEV_XID_ERRORS{gpu="1",UUID="GPU-b",Hostname="n1",hpc_job="4711"} 79
"""
DCGM_KUBERNETES = """\
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-d",Hostname="k1",namespace="train",pod="dlrm-0-x7"} 40
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-e",Hostname="k1",namespace="train",pod="web-0"} 10
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-d",Hostname="k1",namespace="train",pod="dlrm-0-x7"} 500
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-d",Hostname="k1",namespace="train",pod="dlrm-0-x7"} 300
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-d",Hostname="k1",namespace="train",pod="dlrm-0-x7"} 50
"""
KUBE_STATE = """\
# TYPE kube_pod_labels gauge
kube_pod_labels{namespace="train",pod="dlrm-0-x7",uid="u1",label_batch_kubernetes_io_job_name="dlrm"} 1
kube_pod_labels{namespace="train",pod="web-0",uid="u2"} 1
# TYPE kube_pod_info gauge
kube_pod_info{namespace="train",pod="dlrm-0-x7",uid="u1",node="k1",host_ip="10.0.0.1"} 1
kube_pod_info{namespace="train",pod="web-0",uid="u2",node="k2",host_ip="10.0.0.2"} 1
# TYPE kube_pod_container_status_restarts_total counter
kube_pod_container_status_restarts_total{namespace="train",pod="dlrm-0-x7",uid="u1",container="train"} 2
kube_pod_container_status_restarts_total{namespace="train",pod="web-0",uid="u2",container="web"} 3
# TYPE kube_node_status_condition gauge
kube_node_status_condition{node="k1",condition="Ready",status="true"} 0
kube_node_status_condition{node="k1",condition="Ready",status="false"} 1
kube_node_status_condition{node="k2",condition="Ready",status="true"} 0
"""
SLURM_JOBS = """\
# TYPE slurm_job_memory_usage gauge
slurm_job_memory_usage{slurmjobid="4711",user="ann",account="ads"} 4096
slurm_job_memory_usage{slurmjobid="9999",user="bob",account="ads"} 1
# TYPE slurm_job_utilization_gpu gauge
slurm_job_utilization_gpu{slurmjobid="4711",user="ann",account="ads",gpu="GPU-a",gpu_type="H200"} 90
slurm_job_utilization_gpu{slurmjobid="4711",user="ann",account="ads",gpu="GPU-b",gpu_type="H200"} 70
"""
ANSWERS: Mapping[str, str] = {
    "dcgm-slurm": DCGM_SLURM,
    "dcgm-kubernetes": DCGM_KUBERNETES,
    "kube-state-metrics": KUBE_STATE,
    "slurm-job-exporter": SLURM_JOBS,
}
"""Text by the `job_name` of examples/deploy/prometheus-hardware.yaml."""


class _Target(http.server.BaseHTTPRequestHandler):
    """Answers /NAME with the text of that exporter."""

    def do_GET(self) -> None:
        text = ANSWERS[self.path.strip("/")].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def targets() -> Iterator[str]:
    """The address of a server that answers as all of them, each at a path of its name."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Target)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
