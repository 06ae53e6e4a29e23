"""The board of checkpoints: what they cost, and what would be lost without them."""

from __future__ import annotations

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
    Limits,
    Lines,
    Panel,
    Query,
    Section,
    Stat,
    Table,
    lower_is_better,
)
from ett_grafana.queries import checkpoints as queries
from ett_grafana.queries import job as of_job

BY_JOB = "{{job_id}}"
LINKS = common.app_link("Checkpoints in the app", "checkpoints")


def board(config: Config) -> Board:
    """The board of checkpoints."""
    return Board(
        name="checkpoints",
        title="ettwatch / Checkpoints",
        description="What checkpoints cost, how far their interval is from the best, what would be lost now.",
        app_page="checkpoints",
        variables=(common.CLUSTER, common.MODEL, common.JOB),
        annotations=(
            Annotation("Failures", BAD, of_job.FAILED_NOW, "{{job_id}} failed: {{domain}}"),
            Annotation("Restarts", WARNING, of_job.RESTARTED_NOW, "{{job_id}} started again"),
            common.DEPLOYS,
        ),
        sections=(
            Section("All jobs", _fleet(config)),
            Section("Chosen jobs", _jobs(config)),
        ),
        config=config,
    )


def _fleet(config: Config) -> tuple[Panel, ...]:
    return (
        Stat(
            title="Held time blocked by checkpoints, 24 h",
            description="Share of held accelerator time in which a checkpoint blocked the trainer.",
            queries=(Query(queries.BLOCKED_SHARE),),
            unit="percentunit",
            decimals=2,
            width=6,
            no_value="none",
        ),
        Stat(
            title="Held time lost for want of one, 24 h",
            description="Share of held accelerator time whose training was lost: its steps were not saved.",
            queries=(Query(queries.LOST_SHARE),),
            unit="percentunit",
            decimals=2,
            width=6,
            no_value="none",
        ),
        Stat(
            title="Hours at risk now",
            description="Training that would be lost if every job died now, times its accelerators.",
            queries=(Query(queries.AT_RISK_HOURS),),
            unit="short",
            decimals=1,
            width=6,
        ),
        Stat(
            title="Failed in the last hour",
            description=help_of("ett_job_checkpoint_failures_total"),
            queries=(Query(queries.FAILED),),
            unit="short",
            decimals=0,
            width=6,
            limits=Limits(GOOD, ((0.5, BAD),)),
        ),
        Lines(
            title="How long a checkpoint blocks",
            description=help_of("ett_fleet_checkpoint_blocking_seconds"),
            queries=tuple(Query(queries.quantile(share), f"p{share * 100:g}") for share in (0.5, 0.9, 0.99)),
            unit="s",
            lowest=0,
        ),
        Lines(
            title="Mean blocking by model, last hour",
            description=help_of("ett_job_checkpoint_blocking_seconds"),
            queries=(Query(queries.BLOCKING_MEAN, "{{model}}"),),
            unit="s",
            lowest=0,
        ),
        Lines(
            title="Checkpoints by model, last hour",
            description="Checkpoints begun; those that will never be durable apart.",
            queries=(Query(queries.COUNT, "{{model}}"), Query(queries.FAILED_BY_MODEL, "{{model}} failed")),
            unit="short",
            lowest=0,
        ),
        Table(
            title="Jobs that risk most, seconds of training",
            description=help_of("ett_job_unsaved_exposure_seconds"),
            queries=(Query(queries.RISK_MOST, instant=True),),
            unit="s",
            width=24,
            columns={
                "job_id": "Job",
                "job_name": "Name",
                "team": "Team",
                "model": "Model",
                "cluster": "Cluster",
            },
            values=("Unsaved",),
            limits=lower_is_better(config.thresholds.unsaved_exposure_s),
            links=common.job_links(common.OF_ROW),
        ),
    )


def _jobs(config: Config) -> tuple[Panel, ...]:
    factor = config.thresholds.interval_factor
    off = Limits(WARNING, ((1 / factor, GOOD), (factor, WARNING)))
    return (
        Lines(
            title="Age of the last durable checkpoint",
            description=help_of("ett_job_checkpoint_last_durable_timestamp_seconds"),
            queries=(Query(queries.AGE, BY_JOB),),
            unit="s",
            lowest=0,
            limits=lower_is_better(config.thresholds.unsaved_exposure_s),
            links=LINKS,
        ),
        Lines(
            title="Unsaved training",
            description=help_of("ett_job_unsaved_exposure_seconds"),
            queries=(Query(queries.UNSAVED, BY_JOB),),
            unit="s",
            lowest=0,
            limits=lower_is_better(config.thresholds.unsaved_exposure_s),
        ),
        Lines(
            title="Interval, actual and best",
            description=help_of("ett_job_checkpoint_interval_seconds"),
            queries=(Query(queries.INTERVAL, "{{job_id}} {{kind}}"),),
            unit="s",
            lowest=0,
            links=LINKS,
        ),
        Bars(
            title="Interval over the best one",
            description=f"Far off below {1 / factor:g} or above {factor:g}.",
            queries=(Query(queries.INTERVAL_OFF, BY_JOB, instant=True),),
            width=6,
            height=4,
            unit="suffix: x",
            decimals=1,
            limits=off,
            no_value="no failure yet, so no best interval",
        ),
        Bars(
            title="Mean blocking of a job",
            description=help_of("ett_job_checkpoint_blocking_seconds"),
            queries=(Query(queries.JOB_BLOCKING, BY_JOB, instant=True),),
            width=6,
            height=4,
            unit="s",
            no_value="no checkpoint in this time",
        ),
        Bars(
            title="Slowing by a save in the background",
            description=help_of("ett_job_checkpoint_slowed_seconds"),
            queries=(Query(queries.SLOWED, BY_JOB, instant=True),),
            width=6,
            height=4,
            unit="s",
            no_value="nobody can tell: the best interval knows of blocking alone",
        ),
        Bars(
            title="Size of the latest durable checkpoint",
            description=help_of("ett_job_checkpoint_bytes"),
            queries=(Query(queries.BYTES, BY_JOB, instant=True),),
            width=6,
            height=4,
            unit="bytes",
        ),
        Bars(
            title="Checkpoints of a job, and those that failed",
            description=help_of("ett_job_checkpoint_failures_total"),
            queries=(
                Query(queries.JOB_COUNT, "{{job_id}} begun", instant=True),
                Query(queries.JOB_FAILED, "{{job_id}} failed", instant=True),
            ),
            unit="short",
            decimals=0,
            width=24,
            height=4,
        ),
    )
