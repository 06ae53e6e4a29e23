"""What the queries of the boards must answer for the jobs of `board_stories`, worked by hand.

Of cluster c1, by component in seconds (job on Slurm with 4 accelerators, job on Kubernetes with 2):

    start.process_start 10 / 20, start.model_init 20, start.compile 30, training 5 x 54 / 2 x 54,
    data_wait 8 x 6 / 2 x 6, checkpoint_blocking 2 + 4 + 3 + 3 / 1, shutdown 4 / 9,
    unsaved_training 3 x 54 + 34, recover: teardown 10, restart 20, process_start 10, model_init 15,
    checkpoint_load 5; together 650 / 150.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from board_stories import KUBERNETES, SLURM

from ett_core.accounting import STATES


class Figure(msgspec.Struct, frozen=True):
    """A value: `low` to `high`."""

    low: float
    high: float

    def fits(self, value: float) -> bool:
        return self.low <= value <= self.high


def exactly(value: float) -> Figure:
    slack = 1e-6 * abs(value) + 1e-9
    return Figure(value - slack, value + slack)


def about(value: float) -> Figure:
    """Of what `increase` estimates between scrapes."""
    return Figure(0.85 * value, 1.15 * value)


MORE_THAN_0, ANY = Figure(1e-12, float("inf")), Figure(-1e-12, float("inf"))

C1 = {"cluster": "c1", "team": ".*", "model": ".*", "window": "1h", "instance": ".*"}
BOTH = {**C1, "job_id": f"{SLURM}|{KUBERNETES}", "__rate_interval": "5m"}
LIVE = {**BOTH, "cluster": "live", "job_id": "live-.*"}
ABOUT_LIVE = (
    "fleet / Jobs in trouble",
    "fleet / Jobs at work",
    "fleet / Accelerators held",
    "fleet / Hours at risk now",
    "fleet / Jobs that need somebody",
    "job / Failures in a row",
    "failures / Failures of a class, times usual",
    "checkpoints / Hours at risk now",
    "checkpoints / Jobs that risk most",
    "checkpoints / Slowing by a save in the background",
)


def chosen_for(query: str) -> Mapping[str, str]:
    """What a reader has chosen where a query is asked: the ended jobs, or those that run."""
    return LIVE if query.startswith(ABOUT_LIVE) else BOTH


H200, DLRM = "accelerator_type=H200,cluster=c1", "job_name=dlrm,model=dlrm-26"
S, K = f"job_id={SLURM}", f"job_id={KUBERNETES}"
ONE = exactly(1)
HELD = 4 * 650 + 2 * 150
OF_SLURM = {
    "training": 270,
    "start.process_start": 10,
    "start.model_init": 20,
    "start.compile": 30,
    "data_wait": 48,
    "checkpoint_blocking": 12,
    "shutdown": 4,
    "unsaved_training": 196,
    "recover.teardown": 10,
    "recover.restart": 20,
    "recover.process_start": 10,
    "recover.model_init": 15,
    "recover.checkpoint_load": 5,
}
OF_KUBERNETES = {
    "training": 108,
    "start.process_start": 20,
    "data_wait": 12,
    "checkpoint_blocking": 1,
    "shutdown": 9,
}
GROUPS = ("effective", "idleness", "failure", "unknown")
SHARES = dict(zip(GROUPS, (1296 / HELD, 580 / HELD, 1024 / HELD, 0.0), strict=True))
WALL_SHARES = dict(zip(GROUPS, (378 / 800, 166 / 800, 256 / 800, 0.0), strict=True))
CODE = {state: code for code, state in enumerate(STATES, 1)}
IN_LOOP = ("training", "data_wait", "checkpoint_blocking", "unsaved_training")
BEST_INTERVAL_S = (2 * 3 * sum(OF_SLURM[name] for name in IN_LOOP)) ** 0.5
"""Saves block 3 s each; one failure."""
WHO_LIVE = {
    name: f"cluster=live,job_id=live-{name},job_name=live-{name},model=gpt"
    for name in ("training", "stalled", "recovering", "unobserved", "lost")
}


def by_ref(panel: str, figures: list[dict[str, Figure]]) -> dict[str, dict[str, Figure]]:
    """Figures of the queries of a panel, in their order."""
    return {f"{panel} / {ref}": figure for ref, figure in zip("ABCDE", figures, strict=False)}


def one(panel: str, figure: Figure, labels: str = "") -> dict[str, dict[str, Figure]]:
    return {f"{panel} / A": {labels: figure}}


def both(panel: str, slurm: Figure, kubernetes: Figure) -> dict[str, dict[str, Figure]]:
    return {f"{panel} / A": {S: slurm, K: kubernetes}}


def added(weights: tuple[int, int]) -> dict[str, float]:
    names = [*OF_SLURM]
    return {n: weights[0] * OF_SLURM[n] + weights[1] * OF_KUBERNETES.get(n, 0) for n in names}


FLEET = {
    **one("fleet / Effective training time", exactly(1296 / HELD)),
    **one("fleet / Jobs in trouble", exactly(4)),
    **one("fleet / Jobs at work", ONE),
    **one("fleet / Accelerators held", exactly(5)),
    **one("fleet / Hours at risk now", MORE_THAN_0),
    **one("fleet / Failures in the last hour", about(1)),
    **by_ref("fleet / Share of held time by group", [{"": exactly(SHARES[group])} for group in GROUPS]),
    "fleet / Where hours are lost, accelerator-hours / A": {
        f"component={name}": exactly(seconds / 3600)
        for name, seconds in added((4, 2)).items()
        if name != "training"
    },
    **one("fleet / Effective share by cluster", exactly(1296 / HELD), "cluster=c1,window=1h"),
    "fleet / Accelerators by team, final time / A": {"team=ads": MORE_THAN_0, "team=search": ANY},
    "fleet / Jobs that need somebody / A": {
        f"{who},state={name},team=ads": ONE for name, who in WHO_LIVE.items() if name != "training"
    },
    "fleet / Jobs that lost most, hours / A": {
        f"cluster=c1,{S},job_name=dlrm,model=dlrm-26,team=ads": exactly(380 / 3600),
        f"cluster=c1,{K},job_name=dlrm,model=dlrm-26,team=search": exactly(42 / 3600),
    },
    **one("fleet / Jobs by state", exactly(2), "state=succeeded"),
    **by_ref("fleet / Time to start", [{"": exactly(30)}, {"": exactly(54)}]),
    **by_ref("fleet / Time to recover", [{"": exactly(45)}, {"": exactly(57)}]),
    **one(
        "fleet / Lost to failures in the last hour, accelerator-hours",
        about(1024 / 3600),
        "failure_class=gpu_lost",
    ),
}
JOB = {
    **both("job / State", exactly(CODE["succeeded"]), exactly(CODE["succeeded"])),
    **both("job / Effective training time", exactly(270 / 650), exactly(0.72)),
    **both("job / Unsaved now", exactly(0), exactly(0)),
    **both("job / Since the last step", MORE_THAN_0, MORE_THAN_0),
    **both("job / Time to start", exactly(60), exactly(20)),
    **both("job / Attempt", ONE, exactly(0)),
    "job / Failures in a row / A": {
        "failure_class=gpu_lost,job_id=live-recovering": exactly(2),
        "failure_class=unknown,job_id=live-lost": ONE,
    },
    "job / What it is / A": {
        f"{H200},{S},{DLRM},purpose=training,scheduler=slurm,team=ads": ONE,
        f"{H200},{K},{DLRM},purpose=training,scheduler=kubernetes,team=search": ONE,
    },
    "job / Every second by component / A": {
        f"component={name}": exactly(seconds) for name, seconds in added((1, 1)).items()
    },
    **by_ref("job / Share of wall time by group", [{"": exactly(WALL_SHARES[group])} for group in GROUPS]),
    "job / Effective share by window / A": {
        f"{job},window={window}": exactly(share)
        for job, share in ((S, 270 / 650), (K, 0.72))
        for window in ("all", "1h", "24h")
    },
    **both("job / Throughput, samples per second", MORE_THAN_0, ANY),
    **both("job / Step", exactly(5), exactly(2)),
    **by_ref("job / Unsaved training", [{S: exactly(0), K: exactly(0)}, {S: exactly(196), K: exactly(0)}]),
    **by_ref("job / Wall time and held time", 2 * [{S: exactly(650), K: exactly(150)}]),
    "job / Failures by domain of their cause / A": {
        f"domain={domain},{job}": exactly(float(domain == "infrastructure" and job == S))
        for domain in ("workload", "infrastructure", "platform")
        for job in (S, K)
    },
    **one("job / Mean time to recover", exactly(60), S),
    **both("job / Mean blocking of a checkpoint", exactly(3), ONE),
    "job / Hit rate of compile caches / A": {
        f"cache=fx_graph,{S}": exactly(10 / 16),
        f"cache=fx_graph,{K}": exactly(0.9),
    },
    "job / GPU busy / A": {f"Hostname=n1,{S}": exactly(0.8), f"Hostname=k1,{K}": exactly(0.4)},
    "job / GPU memory in use / A": {
        f"Hostname=n1,{S}": exactly(3000 * 2**20),
        f"Hostname=k1,{K}": exactly(500 * 2**20),
    },
    "job / GPU power / A": {f"Hostname=n1,{S}": exactly(1200), f"Hostname=k1,{K}": exactly(300)},
    "job / Hottest GPU / A": {f"Hostname=n1,{S}": exactly(67), f"Hostname=k1,{K}": exactly(50)},
    **one("job / Xid errors of GPUs", exactly(79), f"Hostname=n1,gpu=1,{S}"),
    **one("job / Pods and their nodes", ONE, f"{K},namespace=train,node=k1,pod=dlrm-0-x7"),
    **one("job / Restarts of containers", ANY, f"{K},pod=dlrm-0-x7"),
    **one("job / Nodes that are not ready", exactly(0), "node=k1"),
    **one("job / Host memory under Slurm", exactly(4096), S),
    **one("job / GPU busy under Slurm", exactly(0.8), S),
}
GPU_LOST = "failure_class=gpu_lost"
FAILURES = {
    **one("failures / Failures", about(1)),
    **one("failures / Lost, accelerator-hours", about(1024 / 3600)),
    **one("failures / Of infrastructure or platform", exactly(1)),
    **one("failures / Suspect nodes", ONE),
    **one("failures / Lost by class, accelerator-hours", about(1024 / 3600), GPU_LOST),
    **one("failures / Failures by class", about(1), GPU_LOST),
    "failures / Failures of the last hour by domain / A": {
        "domain=infrastructure": about(1),
        **{f"domain={name}": exactly(0) for name in ("workload", "platform", "unknown")},
    },
    **one("failures / Failures of the last hour by class", about(1), GPU_LOST),
    **one("failures / Failures of a class, times usual", MORE_THAN_0, GPU_LOST),
    **one("failures / Time to start of a model, times usual", MORE_THAN_0, "cluster=c1,model=dlrm-26"),
    **one("failures / Failures of the node's own kinds", exactly(3), "node=n1"),
    **one("failures / Nodes and what failed on them", exactly(3), f"{GPU_LOST},node=n1"),
}
CACHES = {
    **one("caches / Hit rate", exactly(19 / 26)),
    **one("caches / Seconds of compiling", exactly(17)),
    **one("caches / Seconds saved", exactly(38)),
    **one("caches / Hit rate by cache", exactly(19 / 26), "cache=fx_graph"),
    **one("caches / Compiling by stage", exactly(17), "stage=backend"),
    "caches / Requests by result / A": {"result=hit": exactly(19), "result=miss": exactly(7)},
    **one("caches / Hit rate by model", exactly(19 / 26), "model=dlrm-26"),
    **one("caches / Seconds of compiling by model", exactly(17), "model=dlrm-26"),
    "caches / Hit rate of a job / A": {
        f"cache=fx_graph,{S}": exactly(10 / 16),
        f"cache=fx_graph,{K}": exactly(0.9),
    },
    "caches / Seconds of compiling of a job / A": {
        f"{S},stage=backend": exactly(14),
        f"{K},stage=backend": exactly(3),
    },
    **one("caches / Wall time of a job that compiling held up", exactly(30), f"component=start.compile,{S}"),
    "caches / Requests of a job / A": {
        f"cache=fx_graph,{S},result=hit": exactly(10),
        f"cache=fx_graph,{S},result=miss": exactly(6),
        f"cache=fx_graph,{K},result=hit": exactly(9),
        f"cache=fx_graph,{K},result=miss": exactly(1),
    },
    **by_ref(
        "caches / Seconds saved and remote requests of a job",
        [{S: exactly(20), K: exactly(18)}, {S: exactly(10), K: exactly(9)}],
    ),
}
CHECKPOINTS = {
    **one("checkpoints / Held time blocked by checkpoints, 24 h", exactly((4 * 12 + 2) / HELD)),
    **one("checkpoints / Held time lost for want of one, 24 h", exactly(4 * 196 / HELD)),
    **one("checkpoints / Hours at risk now", MORE_THAN_0),
    **one("checkpoints / Failed in the last hour", ONE),
    **by_ref(
        "checkpoints / How long a checkpoint blocks",
        [{"": exactly(2)}, {"": exactly(6.5)}, {"": exactly(9.65)}],
    ),
    **one("checkpoints / Mean blocking by model, last hour", exactly(2.6), "model=dlrm-26"),
    **by_ref(
        "checkpoints / Checkpoints by model, last hour",
        [{"model=dlrm-26": exactly(5)}, {"model=dlrm-26": exactly(1)}],
    ),
    **one(
        "checkpoints / Jobs that risk most, seconds of training",
        MORE_THAN_0,
        f"{WHO_LIVE['training']},team=ads",
    ),
    **both("checkpoints / Age of the last durable checkpoint", MORE_THAN_0, MORE_THAN_0),
    **both("checkpoints / Unsaved training", exactly(0), exactly(0)),
    "checkpoints / Interval, actual and best / A": {
        f"{S},kind=actual": exactly(63),
        f"{S},kind=optimal": exactly(BEST_INTERVAL_S),
    },
    **one("checkpoints / Interval over the best one", exactly(63 / BEST_INTERVAL_S), S),
    **both("checkpoints / Mean blocking of a job", exactly(3), ONE),
    **one("checkpoints / Slowing by a save in the background", exactly(3), "job_id=live-training"),
    **both("checkpoints / Size of the latest durable checkpoint", exactly(5000), exactly(1000)),
    **by_ref(
        "checkpoints / Checkpoints of a job, and those that failed",
        [{S: exactly(4), K: ONE}, {S: ONE, K: exactly(0)}],
    ),
}
EXPORTER = {
    **one("exporter / Answers", ONE),
    **one("exporter / Jobs on /metrics", exactly(7)),
    **one("exporter / Jobs left out", exactly(0)),
    **one("exporter / Broken jobs", exactly(0)),
    **one("exporter / Age of the oldest figures", ANY),
    **by_ref("exporter / Time of an answer", [{"": ANY}, {"": MORE_THAN_0}]),
    **one("exporter / Series", MORE_THAN_0),
    "exporter / Jobs known / A": {"shown=true": exactly(7), "shown=false": exactly(0)},
    **one("exporter / Versions", ONE, "version=0.1.0"),
    **one("exporter / Events taken in, per second", MORE_THAN_0),
    **one("exporter / Segments taken in, per second", MORE_THAN_0),
    **one("exporter / Time to make a segment durable", MORE_THAN_0),
    **by_ref("exporter / Not taken in, per second", 3 * [{"": ANY}]),
}
WORKED: Mapping[str, Mapping[str, Figure]] = {**FLEET, **JOB, **FAILURES, **CACHES, **CHECKPOINTS, **EXPORTER}
