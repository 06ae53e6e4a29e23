"""From a board as data to the JSON that Grafana reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common, dashboard, prometheus

from ett_core.boards import BOARD_TAG, board_uid
from ett_grafana.drawing import DATASOURCE, drawn, panel_id
from ett_grafana.model import COLUMNS, Annotation, Board, Panel, Section, Variable

ALL = ".*"
GRAFANA = common.DataSourceRef(type_val="grafana", uid="-- Grafana --")
MOMENTS = 100
"""Annotations of Grafana's own that a board shows at most."""


def text_of(board: Board) -> str:
    """The file of a board."""
    return json.dumps(_dashboard(board), cls=JSONEncoder, indent=2) + "\n"


def _dashboard(board: Board) -> dashboard.Dashboard:
    return dashboard.Dashboard(
        uid=board_uid(board.name),
        title=board.title,
        description=board.description,
        tags=[BOARD_TAG],
        editable=False,
        graph_tooltip=dashboard.DashboardCursorSync.CROSSHAIR,
        time=dashboard.DashboardDashboardTime(from_val=board.since, to="now"),
        refresh=board.config.refresh,
        panels=list(_placed(board.sections)),
        templating=dashboard.DashboardDashboardTemplating(list_val=list(_variables(board))),
        annotations=dashboard.AnnotationContainer(list_val=[_annotation(each) for each in board.annotations]),
        links=list(_links(board)),
    )


def _placed(sections: Iterable[Section]) -> Iterator[dashboard.Panel | dashboard.RowPanel]:
    """Sections below each other; the panels of one from left to right, a new line where one is full."""
    y = 0
    for section in sections:
        yield dashboard.RowPanel(
            title=section.title,
            id_val=panel_id(f"row {section.title}"),
            grid_pos=dashboard.GridPos(h=1, w=COLUMNS, x=0, y=y),
        )
        y += 1
        for line in _lines(section.panels):
            x = 0
            for panel in line:
                yield drawn(panel, x, y)
                x += panel.width
            y += max(panel.height for panel in line)


def _lines(panels: Sequence[Panel]) -> Iterator[list[Panel]]:
    line: list[Panel] = []
    for panel in panels:
        if line and sum(each.width for each in line) + panel.width > COLUMNS:
            yield line
            line = []
        line.append(panel)
    if line:
        yield line


def _variables(board: Board) -> Iterator[dashboard.VariableModel]:
    kinds = dashboard.VariableType
    yield dashboard.VariableModel(
        type_val=kinds.DATASOURCE,
        name="datasource",
        label="Data source",
        description="The Prometheus (or what answers like one) that scrapes the exporters.",
        query="prometheus",
        refresh=dashboard.VariableRefresh.ON_DASHBOARD_LOAD,
        options=[],
    )
    yield dashboard.VariableModel(
        type_val=kinds.CONSTANT,
        name="app",
        label="App",
        description="Where the app of ettwatch is reached; links lead there.",
        query=board.config.app_url.rstrip("/"),
        hide=dashboard.VariableHide.HIDE_VARIABLE,
    )
    for variable in board.variables:
        yield _query_variable(variable) if variable.query else _custom_variable(variable)


def _query_variable(variable: Variable) -> dashboard.VariableModel:
    everything = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])
    return dashboard.VariableModel(
        type_val=dashboard.VariableType.QUERY,
        name=variable.name,
        label=variable.label,
        description=variable.description,
        query=variable.query,
        definition=variable.query,
        datasource=DATASOURCE,
        multi=variable.is_multi,
        include_all=variable.has_all,
        all_value=ALL if variable.has_all else None,
        current=everything if variable.has_all else None,
        refresh=dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED,
        sort=dashboard.VariableSort.ALPHABETICAL_ASC,
    )


def _custom_variable(variable: Variable) -> dashboard.VariableModel:
    def option(value: str) -> dashboard.VariableOption:
        return dashboard.VariableOption(selected=value == variable.chosen, text=value, value=value)

    return dashboard.VariableModel(
        type_val=dashboard.VariableType.CUSTOM,
        name=variable.name,
        label=variable.label,
        description=variable.description,
        query=",".join(variable.options),
        options=[option(value) for value in variable.options],
        current=option(variable.chosen),
    )


def _annotation(annotation: Annotation) -> dashboard.AnnotationQuery:
    if annotation.tags:
        # Grafana's own annotations are asked for by tags; the models know only queries of data sources.
        target = dashboard.AnnotationTarget(
            limit=MOMENTS, match_any=False, tags=list(annotation.tags), type_val="tags"
        )
        return dashboard.AnnotationQuery(
            name=annotation.name,
            datasource=GRAFANA,
            icon_color=annotation.colour,
            target=target,  # type: ignore[arg-type]
        )
    return dashboard.AnnotationQuery(
        name=annotation.name,
        datasource=DATASOURCE,
        icon_color=annotation.colour,
        expr=annotation.expr,
        title_format=annotation.title,
        target=prometheus.Dataquery(ref_id=annotation.name, expr=annotation.expr, datasource=DATASOURCE),
    )


def _links(board: Board) -> Iterator[dashboard.DashboardLink]:
    yield dashboard.DashboardLink(
        title="In the app",
        type_val=dashboard.DashboardLinkType.LINK,
        icon="external link",
        tooltip="The same in the app of ettwatch",
        url=f"${{app}}/{board.app_page}",
        target_blank=True,
    )
    yield dashboard.DashboardLink(
        title="Boards",
        type_val=dashboard.DashboardLinkType.DASHBOARDS,
        icon="dashboard",
        tooltip="The other boards of ettwatch",
        tags=[BOARD_TAG],
        as_dropdown=True,
        keep_time=True,
        include_vars=True,
    )
