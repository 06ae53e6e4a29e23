"""The board of failures: what they cost, on which node, and what fails more than before."""

from __future__ import annotations

from ett_core.colours import DOMAIN_COLOURS
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
from ett_grafana.queries import failures as queries

CLASS = "{{failure_class}}"
LINKS = common.app_link("Failures in the app", "failures?failure_class=${__field.labels.failure_class}")


def board(config: Config) -> Board:
    """The board of failures."""
    return Board(
        name="failures",
        title="ettwatch / Failures",
        description="What failures cost by cause, on which nodes they begin, what fails more than before.",
        app_page="failures",
        variables=(common.CLUSTER,),
        annotations=(
            Annotation("Failures", BAD, queries.FAILED_NOW, "{{failure_class}} in {{cluster}}"),
            common.DEPLOYS,
        ),
        sections=(
            Section("In this time", _figures(config)),
            Section("What fails and what it costs", _causes()),
            Section("More than before", _regressions(config)),
            Section("Suspect nodes", _nodes(config)),
        ),
        since="now-24h",
        config=config,
    )


def _figures(config: Config) -> tuple[Panel, ...]:
    return (
        Stat(
            title="Failures",
            description=help_of("ett_fleet_failures_total"),
            queries=(Query(queries.COUNT, instant=True),),
            unit="short",
            decimals=0,
            width=6,
        ),
        Stat(
            title="Lost, accelerator-hours",
            description=help_of("ett_fleet_lost_accelerator_seconds_total"),
            queries=(Query(queries.LOST_HOURS, instant=True),),
            unit="short",
            decimals=1,
            width=6,
        ),
        Stat(
            title="Of infrastructure or platform",
            description="Share of the failures whose cause is not the workload's.",
            queries=(Query(queries.NOT_OURS, instant=True),),
            unit="percentunit",
            width=6,
            no_value="no failure",
        ),
        Stat(
            title="Suspect nodes",
            description=f"Nodes with at least {config.thresholds.node_failures} failures of its own kinds.",
            queries=(Query(queries.suspects(config), instant=True),),
            unit="short",
            width=6,
            limits=lower_is_better(1),
        ),
    )


def _causes() -> tuple[Panel, ...]:
    return (
        Bars(
            title="Lost by class, accelerator-hours",
            description=help_of("ett_fleet_lost_accelerator_seconds_total"),
            queries=(Query(queries.LOST_BY_CLASS, CLASS, instant=True),),
            unit="short",
            decimals=1,
            width=12,
            colours=common.CLASS_COLOURS,
            links=LINKS,
            no_value="no failure",
        ),
        Bars(
            title="Failures by class",
            description=help_of("ett_fleet_failures_total"),
            queries=(Query(queries.COUNT_BY_CLASS, CLASS, instant=True),),
            unit="short",
            decimals=0,
            width=12,
            colours=common.CLASS_COLOURS,
            links=LINKS,
            no_value="no failure",
        ),
        Lines(
            title="Failures of the last hour by domain",
            description="Whose the causes were: the workload's, the infrastructure's, the platform's.",
            queries=(Query(queries.BY_DOMAIN, "{{domain}}"),),
            unit="short",
            width=12,
            stacked=True,
            colours=DOMAIN_COLOURS,
        ),
        Lines(
            title="Failures of the last hour by class",
            description="Each moment shows the failures of the hour before it.",
            queries=(Query(queries.BY_CLASS, CLASS),),
            many=True,
            unit="short",
            width=12,
            stacked=True,
        ),
    )


def _regressions(config: Config) -> tuple[Panel, ...]:
    slower = config.thresholds.slower_factor
    return (
        Lines(
            title="Failures of a class, times usual",
            description=f"The last hour over the mean of the last {config.history}: a service that breaks "
            "makes many jobs fail in one way.",
            queries=(Query(queries.times_usual(config), CLASS),),
            many=True,
            unit="suffix: x",
            decimals=1,
            width=12,
            lowest=0,
            limits=Limits(GOOD, ((2, WARNING), (5, BAD))),
            links=common.app_link("Regressions in the app", "regressions"),
        ),
        Lines(
            title="Time to start of a model, times usual",
            description=f"The median over running jobs against its own mean of the last {config.history}.",
            queries=(Query(queries.start_times_usual(config), "{{model}} on {{cluster}}"),),
            many=True,
            unit="suffix: x",
            decimals=1,
            width=12,
            lowest=0,
            limits=lower_is_better(slower, 2 * slower),
            links=common.app_link("Regressions in the app", "regressions"),
        ),
    )


def _nodes(config: Config) -> tuple[Panel, ...]:
    return (
        Bars(
            title="Failures of the node's own kinds",
            description=f"{help_of('ett_node_failures_total')} Only of kinds whose place is the node "
            "(hardware, drivers, network); since the exporter started.",
            queries=(Query(queries.NODES, "{{node}}", instant=True),),
            unit="short",
            decimals=0,
            width=12,
            limits=Limits(GOOD, ((config.thresholds.node_failures, BAD),)),
            links=common.app_link("Failures of the node in the app", "failures?node=${__field.labels.node}"),
            no_value="no node failed",
        ),
        Table(
            title="Nodes and what failed on them",
            description="A node that fails in one way again and again is rarely the job's fault.",
            queries=(Query(queries.NODES_BY_CLASS, instant=True),),
            unit="short",
            width=12,
            columns={"node": "Node", "failure_class": "Class"},
            values=("Failures",),
            no_value="no node failed",
        ),
    )
