"""The board of one job, or of a few beside each other."""

from __future__ import annotations

from ett_core.components import GROUP_COLOURS, GROUPS
from ett_grafana.boards import common
from ett_grafana.boards.common import help_of
from ett_grafana.config import Config
from ett_grafana.model import (
    BAD,
    GOOD,
    WARNING,
    Annotation,
    Bars,
    Board,
    Donut,
    Limits,
    Lines,
    Panel,
    Query,
    Section,
    Stat,
    States,
    Table,
    higher_is_better,
    lower_is_better,
)
from ett_grafana.queries import caches, checkpoints, hardware
from ett_grafana.queries import job as queries

LINKS = common.job_links(common.OF_SERIES)[:1]
BY_JOB = "{{job_id}}"


def board(config: Config) -> Board:
    """The board of a job."""
    return Board(
        name="job",
        title="ettwatch / Job",
        description="How a job is, where every second of it went, what it risks, and the hardware under it.",
        app_page="",
        variables=(common.CLUSTER, common.JOB),
        annotations=(
            Annotation("Failures", BAD, queries.FAILED_NOW, "{{job_id}} failed: {{domain}}"),
            Annotation("Restarts", WARNING, queries.RESTARTED_NOW, "{{job_id}} started again"),
            common.DEPLOYS,
        ),
        sections=(
            Section("Now", _now(config)),
            Section("Where the time went", _time(config)),
            Section("Progress and risk", _progress(config)),
            Section("Failures, checkpoints, compilation", _costs(config)),
            Section("Hardware, where its exporters are scraped", _hardware()),
        ),
        config=config,
    )


def _now(config: Config) -> tuple[Panel, ...]:
    limits = config.thresholds
    return (
        States(
            title="State",
            description=help_of("ett_job_state"),
            queries=(Query(queries.STATE, BY_JOB),),
            unit="none",
            width=24,
            height=4,
            states={code: (state, common.state_colour(state)) for code, state in queries.CODES.items()},
            links=LINKS,
        ),
        Stat(
            title="Effective training time",
            description="Share of wall time spent on training that survives.",
            queries=(Query(queries.EFFECTIVE, BY_JOB),),
            unit="percentunit",
            decimals=1,
            limits=higher_is_better(limits.effective_low_ratio, limits.effective_good_ratio),
            links=LINKS,
        ),
        Stat(
            title="Unsaved now",
            description=help_of("ett_job_unsaved_exposure_seconds"),
            queries=(Query(queries.UNSAVED, BY_JOB),),
            unit="s",
            limits=lower_is_better(limits.unsaved_exposure_s),
        ),
        Stat(
            title="Since the last step",
            description=help_of("ett_job_last_progress_timestamp_seconds"),
            queries=(Query(queries.SINCE_PROGRESS, BY_JOB),),
            unit="s",
        ),
        Stat(
            title="Time to start",
            description=help_of("ett_job_time_to_start_seconds"),
            queries=(Query(queries.TO_START, BY_JOB),),
            unit="s",
            limits=lower_is_better(limits.start_s),
        ),
        Stat(
            title="Attempt",
            description=help_of("ett_job_attempt"),
            queries=(Query(queries.ATTEMPT, BY_JOB),),
            unit="none",
        ),
        Stat(
            title="Failures in a row",
            description=help_of("ett_job_failures_in_a_row"),
            queries=(Query(queries.IN_A_ROW, "{{job_id}} {{failure_class}}"),),
            unit="none",
            limits=lower_is_better(2, limits.crash_loop_attempts),
            no_value="none",
        ),
        Table(
            title="What it is",
            description=help_of("ett_job_info"),
            queries=(Query(queries.INFO, instant=True),),
            unit="none",
            width=24,
            height=4,
            columns={
                "job_id": "Job",
                "job_name": "Name",
                "team": "Team",
                "model": "Model",
                "cluster": "Cluster",
                "accelerator_type": "Accelerator",
                "scheduler": "Scheduler",
                "purpose": "Purpose",
            },
            values=(),
            links=common.job_links(common.OF_ROW)[:1],
        ),
    )


def _time(config: Config) -> tuple[Panel, ...]:
    limits = config.thresholds
    return (
        Donut(
            title="Every second by component",
            description=help_of("ett_job_component_seconds"),
            queries=(Query(queries.BY_COMPONENT, "{{component}}", instant=True),),
            unit="s",
            colours=common.COMPONENT_COLOURS,
            links=LINKS,
        ),
        Lines(
            title="Share of wall time by group",
            description="Everything up to each moment, as it was known then; together 100 %.",
            queries=tuple(Query(queries.group(name), name) for name in GROUPS),
            unit="percentunit",
            stacked=True,
            lowest=0,
            highest=1,
            colours=GROUP_COLOURS,
        ),
        Lines(
            title="Effective share by window",
            description=help_of("ett_job_effective_ratio"),
            queries=(Query(queries.EFFECTIVE_BY_WINDOW, "{{job_id}} {{window}}"),),
            unit="percentunit",
            lowest=0,
            highest=1,
            limits=higher_is_better(limits.effective_low_ratio, limits.effective_good_ratio),
        ),
    )


def _progress(config: Config) -> tuple[Panel, ...]:
    return (
        Lines(
            title="Throughput, samples per second",
            description=help_of("ett_job_samples_total"),
            queries=(Query(queries.SAMPLES, BY_JOB),),
            unit="short",
            width=6,
            lowest=0,
        ),
        Lines(
            title="Step",
            description=help_of("ett_job_step"),
            queries=(Query(queries.STEP, BY_JOB),),
            unit="short",
            width=6,
        ),
        Lines(
            title="Unsaved training",
            description=f"{help_of('ett_job_unsaved_exposure_seconds')} "
            f"{help_of('ett_job_unsaved_training_seconds')}",
            queries=(
                Query(queries.UNSAVED, "{{job_id}} at risk"),
                Query(queries.LOST, "{{job_id}} lost so far"),
            ),
            unit="s",
            width=6,
            lowest=0,
            limits=lower_is_better(config.thresholds.unsaved_exposure_s),
        ),
        Lines(
            title="Wall time and held time",
            description=f"{help_of('ett_job_wall_seconds')} {help_of('ett_job_held_seconds')}",
            queries=(Query(queries.WALL, "{{job_id}} wall"), Query(queries.HELD, "{{job_id}} held")),
            unit="s",
            width=6,
            lowest=0,
        ),
    )


def _costs(config: Config) -> tuple[Panel, ...]:
    return (
        Bars(
            title="Failures by domain of their cause",
            description=help_of("ett_job_failures_total"),
            queries=(Query(queries.FAILURES, "{{job_id}} {{domain}}", instant=True),),
            height=5,
            unit="short",
            decimals=0,
            width=6,
            limits=Limits(GOOD, ((0.5, BAD),)),
            links=common.app_link("Failures in the app", "failures"),
        ),
        Bars(
            title="Mean time to recover",
            description=help_of("ett_job_time_to_recover_seconds"),
            queries=(Query(queries.TO_RECOVER, BY_JOB, instant=True),),
            height=5,
            unit="s",
            width=6,
            limits=lower_is_better(config.thresholds.recover_s),
            no_value="no recovery in this time",
        ),
        Bars(
            title="Mean blocking of a checkpoint",
            description=help_of("ett_job_checkpoint_blocking_seconds"),
            queries=(Query(checkpoints.JOB_BLOCKING, BY_JOB, instant=True),),
            height=5,
            unit="s",
            width=6,
            no_value="no checkpoint in this time",
        ),
        Bars(
            title="Hit rate of compile caches",
            description=help_of("ett_job_compile_cache_requests_total"),
            queries=(Query(caches.JOB_HIT_RATE, "{{job_id}} {{cache}}", instant=True),),
            height=5,
            unit="percentunit",
            lowest=0,
            highest=1,
            width=6,
            limits=higher_is_better(config.thresholds.cache_hit_ratio, 0.9),
            links=common.app_link("Caches in the app", "caches"),
            no_value="nothing was compiled in this time",
        ),
    )


def _hardware() -> tuple[Panel, ...]:
    by_host = "{{job_id}} {{Hostname}}"
    return (
        Lines(
            title="GPU busy",
            description="Mean over the GPUs of the job on each host, from DCGM exporter.",
            queries=(Query(hardware.GPU_BUSY, by_host),),
            unit="percentunit",
            lowest=0,
            highest=1,
            width=6,
        ),
        Lines(
            title="GPU memory in use",
            description="Frame buffer of the GPUs of the job on each host, from DCGM exporter.",
            queries=(Query(hardware.GPU_MEMORY, by_host),),
            unit="bytes",
            width=6,
        ),
        Lines(
            title="GPU power",
            description="Power of the GPUs of the job on each host, from DCGM exporter.",
            queries=(Query(hardware.GPU_POWER, by_host),),
            unit="watt",
            width=6,
        ),
        Lines(
            title="Hottest GPU",
            description="Highest temperature among the GPUs of the job on each host, from DCGM exporter.",
            queries=(Query(hardware.GPU_HOTTEST, by_host),),
            unit="celsius",
            width=6,
        ),
        Table(
            title="Xid errors of GPUs",
            description="The latest Xid error of a GPU of the job, from DCGM exporter; 0 is not shown.",
            queries=(Query(hardware.GPU_XID, instant=True),),
            height=5,
            unit="none",
            width=6,
            columns={"Hostname": "Host", "gpu": "GPU", "job_id": "Job"},
            values=("Xid",),
            no_value="no Xid error",
        ),
        Table(
            title="Pods and their nodes",
            description="Pods of the job, from kube-state-metrics.",
            queries=(Query(hardware.PODS, instant=True),),
            height=5,
            unit="none",
            width=8,
            columns={"pod": "Pod", "node": "Node", "namespace": "Namespace", "job_id": "Job"},
            values=(),
        ),
        Bars(
            title="Restarts of containers",
            description="Restarts of the containers of the job's pods, from kube-state-metrics.",
            queries=(Query(hardware.POD_RESTARTS, "{{pod}}", instant=True),),
            height=5,
            unit="short",
            decimals=0,
            width=5,
            limits=Limits(GOOD, ((0.5, WARNING),)),
        ),
        Table(
            title="Nodes that are not ready",
            description="Nodes with pods of the job that Kubernetes does not call ready.",
            queries=(Query(hardware.NODES_NOT_READY, instant=True),),
            height=5,
            unit="none",
            width=5,
            columns={"node": "Node"},
            values=(),
            no_value="all are ready",
        ),
        Lines(
            title="Host memory under Slurm",
            description="Memory of the job on each node, from slurm-job-exporter.",
            queries=(Query(hardware.SLURM_MEMORY, "{{job_id}} {{instance}}"),),
            unit="bytes",
            width=12,
        ),
        Lines(
            title="GPU busy under Slurm",
            description="Mean over the GPUs of the job on each node, from slurm-job-exporter.",
            queries=(Query(hardware.SLURM_GPU_BUSY, "{{job_id}} {{instance}}"),),
            unit="percentunit",
            lowest=0,
            highest=1,
            width=12,
        ),
    )
