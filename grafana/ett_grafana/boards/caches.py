"""The board of compile caches: a hit rate is no proof, so the seconds of compiling stand beside it."""

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
    Lines,
    Panel,
    Query,
    Section,
    Stat,
    Table,
    higher_is_better,
)
from ett_grafana.queries import caches as queries
from ett_grafana.queries import job as of_job

RESULT_COLOURS = {"hit": GOOD, "miss": BAD, "bypass": WARNING}
WARM_RATIO = 0.9


def board(config: Config) -> Board:
    """The board of compile caches."""
    return Board(
        name="caches",
        title="ettwatch / Compile caches",
        description="Hit rates of compile caches by model and job, beside the seconds of compiling.",
        app_page="caches",
        variables=(common.CLUSTER, common.MODEL, common.JOB),
        annotations=(
            Annotation("Restarts", WARNING, of_job.RESTARTED_NOW, "{{job_id}} started again"),
            common.DEPLOYS,
        ),
        sections=(
            Section("All jobs, last hour", _fleet(config)),
            Section("By model", _models(config)),
            Section("Chosen jobs, beside each other", _jobs(config)),
        ),
        since="now-24h",
        config=config,
    )


def _fleet(config: Config) -> tuple[Panel, ...]:
    return (
        Stat(
            title="Hit rate",
            description="Hits over hits and misses, of all caches.",
            queries=(Query(queries.HIT_RATE_NOW),),
            unit="percentunit",
            limits=higher_is_better(config.thresholds.cache_hit_ratio, WARM_RATIO),
            width=8,
            sparkline=True,
        ),
        Stat(
            title="Seconds of compiling",
            description=help_of("ett_job_compile_seconds_total"),
            queries=(Query(queries.COMPILING),),
            unit="s",
            width=8,
        ),
        Stat(
            title="Seconds saved",
            description=help_of("ett_job_compile_cache_saved_seconds_total"),
            queries=(Query(queries.SAVED),),
            unit="s",
            width=8,
        ),
        Lines(
            title="Hit rate by cache",
            description="Hits over hits and misses; bypasses ask no cache.",
            queries=(Query(queries.HIT_RATE, "{{cache}}"),),
            unit="percentunit",
            lowest=0,
            highest=1,
            limits=higher_is_better(config.thresholds.cache_hit_ratio, WARM_RATIO),
        ),
        Lines(
            title="Compiling by stage",
            description=f"{help_of('ett_job_compile_seconds_total')} `native` is what a hit does not save.",
            queries=(Query(queries.SECONDS, "{{stage}}"),),
            unit="s",
            stacked=True,
        ),
        Lines(
            title="Requests by result",
            description=help_of("ett_job_compile_cache_requests_total"),
            queries=(Query(queries.REQUESTS, "{{result}}"),),
            unit="short",
            stacked=True,
            colours=RESULT_COLOURS,
        ),
    )


def _models(config: Config) -> tuple[Panel, ...]:
    return (
        Bars(
            title="Hit rate by model",
            description=f"Below {config.thresholds.cache_hit_ratio:.0%} a cache that should be warm is cold.",
            queries=(Query(queries.HIT_RATE_BY_MODEL, "{{model}}", instant=True),),
            height=6,
            unit="percentunit",
            lowest=0,
            highest=1,
            width=12,
            limits=higher_is_better(config.thresholds.cache_hit_ratio, WARM_RATIO),
        ),
        Bars(
            title="Seconds of compiling by model",
            description=help_of("ett_job_compile_seconds_total"),
            queries=(Query(queries.SECONDS_BY_MODEL, "{{model}}", instant=True),),
            height=6,
            unit="s",
            width=12,
        ),
    )


def _jobs(config: Config) -> tuple[Panel, ...]:
    return (
        Bars(
            title="Hit rate of a job",
            description="Hits over hits and misses of the chosen jobs in the time range.",
            queries=(Query(queries.JOB_HIT_RATE, "{{job_id}} {{cache}}", instant=True),),
            height=6,
            unit="percentunit",
            lowest=0,
            highest=1,
            limits=higher_is_better(config.thresholds.cache_hit_ratio, WARM_RATIO),
            links=common.app_link("Caches in the app", "caches"),
            no_value="nothing was compiled in this time",
        ),
        Bars(
            title="Seconds of compiling of a job",
            description=help_of("ett_job_compile_seconds_total"),
            queries=(Query(queries.JOB_SECONDS, "{{job_id}} {{stage}}", instant=True),),
            height=6,
            unit="s",
        ),
        Bars(
            title="Wall time of a job that compiling held up",
            description="Components of the partition: compiling, and loading caches.",
            queries=(Query(queries.JOB_COMPILE_TIME, "{{job_id}} {{component}}", instant=True),),
            height=6,
            unit="s",
            no_value="compiling held nothing up",
        ),
        Table(
            title="Requests of a job",
            description=help_of("ett_job_compile_cache_requests_total"),
            queries=(Query(queries.JOB_REQUESTS, instant=True),),
            unit="short",
            decimals=0,
            columns={"job_id": "Job", "cache": "Cache", "result": "Result"},
            values=("Requests",),
            links=common.job_links(common.OF_ROW)[:1],
        ),
        Bars(
            title="Seconds saved and remote requests of a job",
            description=f"{help_of('ett_job_compile_cache_saved_seconds_total')} "
            f"{help_of('ett_job_compile_remote_requests_total')}",
            queries=(
                Query(queries.JOB_SAVED, "{{job_id}} seconds saved", instant=True),
                Query(queries.JOB_REMOTE, "{{job_id}} remote requests", instant=True),
            ),
            unit="short",
            width=12,
        ),
    )
