"""The board of the exporters' own health: whether the figures of the other boards can be trusted."""

from __future__ import annotations

from ett_grafana.boards import common
from ett_grafana.boards.common import help_of
from ett_grafana.config import Config
from ett_grafana.model import (
    BAD,
    GOOD,
    Board,
    Limits,
    Lines,
    Panel,
    Query,
    Section,
    Stat,
    Table,
    Variable,
    lower_is_better,
)
from ett_grafana.queries import exporter as queries

INSTANCE = "{{instance}}"


def board(config: Config) -> Board:
    """The board of the exporters."""
    instance = Variable(
        name="instance",
        label="Exporter",
        description="Exporters, by the address at which they are scraped.",
        query="label_values(ett_exporter_build_info, instance)",
        is_multi=True,
        has_all=True,
    )
    return Board(
        name="exporter",
        title="ettwatch / Exporter health",
        description="Whether the exporters answer, keep up, and take in what jobs send.",
        app_page="",
        variables=(instance,),
        annotations=(common.DEPLOYS,),
        sections=(
            Section("Now", _now(config)),
            Section("Keeping up", _pace(config)),
            Section("Ingest", _ingest()),
        ),
        config=config,
    )


def _now(config: Config) -> tuple[Panel, ...]:
    return (
        Stat(
            title="Answers",
            description="1 where the last scrape got an answer.",
            queries=(Query(queries.up(config), INSTANCE),),
            unit="none",
            width=6,
            limits=Limits(BAD, ((1, GOOD),)),
        ),
        Stat(
            title="Jobs on /metrics",
            description=help_of("ett_exporter_jobs"),
            queries=(Query(queries.JOBS_SHOWN),),
            unit="short",
            width=6,
        ),
        Stat(
            title="Jobs left out",
            description=help_of("ett_exporter_jobs_left_out"),
            queries=(Query(queries.LEFT_OUT),),
            unit="short",
            width=6,
            limits=lower_is_better(1, 1),
        ),
        Stat(
            title="Broken jobs",
            description=help_of("ett_exporter_broken_jobs"),
            queries=(Query(queries.BROKEN),),
            unit="short",
            width=6,
            limits=Limits(GOOD, ((1, BAD),)),
        ),
    )


def _pace(config: Config) -> tuple[Panel, ...]:
    return (
        Lines(
            title="Age of the oldest figures",
            description=help_of("ett_exporter_view_age_seconds"),
            queries=(Query(queries.VIEW_AGE, INSTANCE),),
            unit="s",
            lowest=0,
            limits=lower_is_better(config.thresholds.view_age_s),
        ),
        Lines(
            title="Time of an answer",
            description=f"{help_of('ett_exporter_scrape_seconds')} And the scrape as Prometheus saw it.",
            queries=(
                Query(queries.SCRAPE, f"{INSTANCE} by itself"),
                Query(queries.scrape_took(config), f"{INSTANCE} seen from outside"),
            ),
            unit="s",
            lowest=0,
            limits=lower_is_better(config.thresholds.scrape_s),
        ),
        Lines(
            title="Series",
            description=help_of("ett_exporter_series"),
            queries=(Query(queries.SERIES, INSTANCE),),
            unit="short",
            lowest=0,
        ),
        Lines(
            title="Jobs known",
            description=help_of("ett_exporter_jobs"),
            queries=(Query(queries.JOBS, "{{instance}} shown={{shown}}"),),
            unit="short",
            width=12,
            stacked=True,
        ),
        Table(
            title="Versions",
            description=help_of("ett_exporter_build_info"),
            queries=(Query(queries.VERSIONS, instant=True),),
            unit="none",
            width=12,
            columns={"instance": "Exporter", "version": "Version"},
            values=(),
        ),
    )


def _ingest() -> tuple[Panel, ...]:
    return (
        Lines(
            title="Events taken in, per second",
            description=help_of("ett_exporter_ingested_events_total"),
            queries=(Query(queries.EVENTS, INSTANCE),),
            unit="short",
            lowest=0,
        ),
        Lines(
            title="Segments taken in, per second",
            description=help_of("ett_exporter_ingested_segments_total"),
            queries=(Query(queries.SEGMENTS, INSTANCE),),
            unit="short",
            lowest=0,
        ),
        Lines(
            title="Time to make a segment durable",
            description=help_of("ett_exporter_store_write_seconds"),
            queries=(Query(queries.WRITE_MEAN, INSTANCE),),
            unit="s",
            lowest=0,
        ),
        Lines(
            title="Not taken in, per second",
            description=f"{help_of('ett_exporter_rejected_lines_total')} "
            f"{help_of('ett_exporter_refused_requests_total')} "
            f"{help_of('ett_exporter_duplicate_events_total')}",
            queries=(
                Query(queries.REJECTED, f"{INSTANCE} lines that were no events"),
                Query(queries.REFUSED, f"{INSTANCE} requests refused"),
                Query(queries.DUPLICATES, f"{INSTANCE} events held already"),
            ),
            unit="short",
            width=24,
            lowest=0,
        ),
    )
