"""The board of the fleet: how it is now, where its time goes, which jobs need somebody."""

from __future__ import annotations

from ett_core.accounting import STATES
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
    Limits,
    Lines,
    Panel,
    Query,
    Section,
    Stat,
    Table,
    Variable,
    higher_is_better,
    lower_is_better,
)
from ett_grafana.queries import failures
from ett_grafana.queries import fleet as queries

WINDOWS = ("1h", "24h", "7d")
WHO = {"job_id": "Job", "job_name": "Name", "team": "Team", "model": "Model", "cluster": "Cluster"}


def board(config: Config) -> Board:
    """The board of the fleet."""
    window = Variable(
        name="window",
        label="Window",
        description="The trailing window that figures of the fleet are of.",
        options=WINDOWS,
        chosen=config.fleet_window,
    )
    return Board(
        name="fleet",
        title="ettwatch / Fleet",
        description="How much of the held time trains, where the rest goes, and which jobs need somebody.",
        app_page="",
        variables=(common.CLUSTER, common.TEAM, window),
        annotations=(
            Annotation("Failures", BAD, failures.FAILED_NOW, "{{failure_class}} in {{cluster}}"),
            common.DEPLOYS,
        ),
        sections=(
            Section("Now", _now(config)),
            Section("Where the time goes", _time(config)),
            Section("Jobs", _jobs()),
            Section("Starts, recoveries, failures", _events(config)),
        ),
        since="now-24h",
        config=config,
    )


def _now(config: Config) -> tuple[Panel, ...]:
    limits = config.thresholds
    return (
        Stat(
            title="Effective training time",
            description=f"{help_of('ett_fleet_effective_ratio')} Over the chosen window, of held time.",
            queries=(Query(queries.EFFECTIVE),),
            unit="percentunit",
            decimals=1,
            limits=higher_is_better(limits.effective_low_ratio, limits.effective_good_ratio),
            sparkline=True,
        ),
        Stat(
            title="Jobs in trouble",
            description="Running jobs that are lost, stalled, recovering or unobserved.",
            queries=(Query(queries.IN_TROUBLE),),
            unit="short",
            limits=lower_is_better(1),
        ),
        Stat(
            title="Jobs at work",
            description="Jobs that start, compile, train, save, evaluate or publish.",
            queries=(Query(queries.AT_WORK),),
            unit="short",
        ),
        Stat(
            title="Accelerators held",
            description=help_of("ett_job_accelerators"),
            queries=(Query(queries.ACCELERATORS),),
            unit="short",
        ),
        Stat(
            title="Hours at risk now",
            description="Training that would be lost if every job died now, times its accelerators.",
            queries=(Query(queries.AT_RISK_HOURS),),
            unit="short",
            decimals=1,
        ),
        Stat(
            title="Failures in the last hour",
            description=help_of("ett_fleet_failures_total"),
            queries=(Query(queries.FAILURES_HOUR),),
            unit="short",
            decimals=0,
            limits=Limits(GOOD, ((0.5, WARNING),)),
            links=common.app_link("Failures in the app", "failures"),
        ),
    )


def _time(config: Config) -> tuple[Panel, ...]:
    limits = config.thresholds
    return (
        Lines(
            title="Share of held time by group",
            description="Every held second of the window is effective, idle, lost to failures or unknown; "
            "together 100 %.",
            queries=tuple(Query(queries.group(name), name) for name in GROUPS),
            unit="percentunit",
            width=12,
            stacked=True,
            lowest=0,
            highest=1,
            colours=GROUP_COLOURS,
        ),
        Bars(
            title="Where hours are lost, accelerator-hours",
            description=f"{help_of('ett_fleet_component_seconds')} Training that counts is left out.",
            queries=(Query(queries.losses(config), "{{component}}", instant=True),),
            unit="short",
            decimals=1,
            width=12,
            colours=common.COMPONENT_COLOURS,
        ),
        Lines(
            title="Effective share by cluster",
            description=help_of("ett_fleet_effective_ratio"),
            queries=(Query(queries.EFFECTIVE_OF_CLUSTERS, "{{cluster}}"),),
            unit="percentunit",
            width=12,
            lowest=0,
            highest=1,
            limits=higher_is_better(limits.effective_low_ratio, limits.effective_good_ratio),
        ),
        Lines(
            title="Accelerators by team, final time",
            description=help_of("ett_fleet_final_accelerator_seconds_total"),
            queries=(Query(queries.FINAL_BY_TEAM, "{{team}}"),),
            many=True,
            unit="short",
            width=12,
            stacked=True,
        ),
    )


def _jobs() -> tuple[Panel, ...]:
    links = common.job_links(common.OF_ROW)
    return (
        Table(
            title="Jobs that need somebody",
            description=help_of("ett_job_state"),
            queries=(Query(queries.TROUBLE, instant=True),),
            unit="none",
            width=12,
            columns={**WHO, "state": "State"},
            values=(),
            links=links,
            no_value="No running job is lost, stalled, recovering or unobserved.",
        ),
        Table(
            title="Jobs that lost most, hours",
            description="Wall time that was no training that counts.",
            queries=(Query(queries.LOST_MOST, instant=True),),
            unit="short",
            decimals=1,
            width=12,
            columns=WHO,
            values=("Hours lost",),
            links=links,
        ),
        Lines(
            title="Jobs by state",
            description=help_of("ett_fleet_jobs"),
            queries=(Query(queries.JOBS_BY_STATE, "{{state}}"),),
            many=True,
            unit="short",
            width=24,
            stacked=True,
            colours={state: common.state_colour(state) for state in STATES},
        ),
    )


def _events(config: Config) -> tuple[Panel, ...]:
    limits = config.thresholds

    def quantiles(family: str) -> tuple[Query, ...]:
        return tuple(Query(queries.quantile(share, family), f"p{share * 100:g}") for share in (0.5, 0.9))

    return (
        Lines(
            title="Time to start",
            description=help_of("ett_fleet_time_to_start_seconds"),
            queries=quantiles("ett_fleet_time_to_start_seconds"),
            unit="s",
            lowest=0,
            limits=lower_is_better(limits.start_s),
        ),
        Lines(
            title="Time to recover",
            description=help_of("ett_fleet_time_to_recover_seconds"),
            queries=quantiles("ett_fleet_time_to_recover_seconds"),
            unit="s",
            lowest=0,
            limits=lower_is_better(limits.recover_s),
        ),
        Lines(
            title="Lost to failures in the last hour, accelerator-hours",
            description=help_of("ett_fleet_lost_accelerator_seconds_total"),
            queries=(Query(queries.LOST_BY_CLASS_HOURS, "{{failure_class}}"),),
            many=True,
            unit="short",
            stacked=True,
            links=common.app_link("Failures in the app", "failures"),
            no_value="no failure",
        ),
    )
