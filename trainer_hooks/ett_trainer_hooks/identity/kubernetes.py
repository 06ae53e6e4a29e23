"""What Kubernetes and the controllers on it say of a process: Job, JobSet, Kubeflow.

Environment variables come from the controllers, and from the downward API where the pod asks for
it. What is only a label or an annotation of the pod reaches a process by the downward API too, as
files of a volume; `with_podinfo` reads them and puts them beside the variables. The rest is pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ett_trainer_hooks.identity.values import Values

PODINFO = Path("/etc/podinfo")
"""Where the documentation of Kubernetes mounts a volume of the downward API."""
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
VARIABLES = {
    "jobset.sigs.k8s.io/jobset-name": "JOBSET_NAME",
    "jobset.sigs.k8s.io/restart-attempt": "JOBSET_RESTART_ATTEMPT",
    "jobset.sigs.k8s.io/in-place-restart-attempt": "JOBSET_IN_PLACE_RESTART_ATTEMPT",
    "jobset.sigs.k8s.io/replicatedjob-name": "REPLICATED_JOB_NAME",
    "jobset.sigs.k8s.io/job-global-index": "JOB_GLOBAL_INDEX",
    "trainer.kubeflow.org/trainjob-name": "TRAINJOB_NAME",
    "training.kubeflow.org/job-name": "PYTORCHJOB_NAME",
    "training.kubeflow.org/replica-index": "REPLICA_INDEX",
    "training.kubeflow.org/replica-type": "REPLICA_TYPE",
    "batch.kubernetes.io/job-name": "KUBERNETES_JOB_NAME",
    "batch.kubernetes.io/job-completion-index": "JOB_COMPLETION_INDEX",
    "kueue.x-k8s.io/queue-name": "KUEUE_QUEUE_NAME",
}
"""Label or annotation of a pod to the variable that says the same."""
NODE_NAMES = ("NODE_NAME", "K8S_NODE_NAME", "MY_NODE_NAME")
_LINE = re.compile(r'([\w./-]+)="((?:[^"\\]|\\.)*)"')
_REPLICA = re.compile(r"([a-z0-9-]+?)-(?:(?:master|worker)-\d+|node-0-\d+)(?:\..*)?")
"""A pod of a PyTorchJob or a TrainJob."""
CERTAIN = ("KUBERNETES_SERVICE_HOST", "JOBSET_NAME", "TRAINJOB_NAME", "PYTORCHJOB_NAME")


def with_podinfo(
    environ: Mapping[str, str], directory: Path = PODINFO, namespace_file: Path = NAMESPACE_FILE
) -> Mapping[str, str]:
    """The environment with what files of the downward API say; a variable that is set wins.

    Outside of Kubernetes, the environment as it is.
    """
    if not environ.get("KUBERNETES_SERVICE_HOST"):
        return environ
    found: dict[str, str] = {}
    if namespace := _text(namespace_file).strip():
        found["POD_NAMESPACE"] = namespace
    for name in ("labels", "annotations"):
        found.update(podinfo(_text(directory / name)))
    return {**found, **{name: text for name, text in environ.items() if text or name not in found}}


def podinfo(text: str) -> dict[str, str]:
    r"""Variables for the labels or annotations in a file of the downward API.

    >>> podinfo('jobset.sigs.k8s.io/restart-attempt="2"\napp="x"\n')
    {'JOBSET_RESTART_ATTEMPT': '2'}
    """
    pairs = _LINE.findall(text)
    return {VARIABLES[key]: re.sub(r"\\(.)", r"\1", value) for key, value in pairs if key in VARIABLES}


def is_there(values: Values) -> bool:
    """Whether this process runs in a pod, or says that it does."""
    return bool(values.text(*CERTAIN, "JOB_COMPLETION_INDEX"))


def job_id(values: Values) -> str:
    """One name for the job in all its pods and their replacements; nothing where no variable tells it."""
    name = _job_name(values)
    namespace = values.text("POD_NAMESPACE", "NAMESPACE", "MY_POD_NAMESPACE")
    return "-".join(filter(None, ["k8s", namespace, name])) if name else ""


def restarts(values: Values) -> int | None:
    """How often the controller has started all pods anew; None where it does not say."""
    again = values.number("JOBSET_RESTART_ATTEMPT")
    in_place = values.number("JOBSET_IN_PLACE_RESTART_ATTEMPT")
    return None if again is None and in_place is None else (again or 0) + (in_place or 0)


def node_rank(values: Values) -> int | None:
    """The index of this pod in its job."""
    return values.number("PET_NODE_RANK", "JOB_COMPLETION_INDEX")


def labels(values: Values) -> dict[str, str]:
    """What describes the job."""
    named = {
        "job_name": _job_name(values),
        "namespace": values.text("POD_NAMESPACE", "NAMESPACE", "MY_POD_NAMESPACE"),
        "queue": values.text("KUEUE_QUEUE_NAME"),
    }
    return {"scheduler": "kubernetes", **{label: text for label, text in named.items() if text}}


def _job_name(values: Values) -> str:
    named = values.text("TRAINJOB_NAME", "PYTORCHJOB_NAME", "JOBSET_NAME")
    if named:
        return named
    if values.text("PET_NODE_RANK", "PET_NNODES"):
        pods = (values.text(name) for name in ("PET_MASTER_ADDR", "MASTER_ADDR", "HOSTNAME"))
        found = next(filter(None, map(_REPLICA.fullmatch, pods)), None)
        if found:
            return found[1]
    if job := values.text("KUBERNETES_JOB_NAME"):
        return job
    index, host = values.text("JOB_COMPLETION_INDEX"), values.text("HOSTNAME")
    return host.removesuffix(f"-{index}") if index and host.endswith(f"-{index}") else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
