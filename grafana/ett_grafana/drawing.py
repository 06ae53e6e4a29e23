"""From a panel as data to the panel as Grafana's models have it. Pure.

What every panel of a kind looks like is said here once: legends shown, the house's colours,
thresholds drawn.
"""

from __future__ import annotations

import zlib
from typing import TypeAlias

from grafana_foundation_sdk.models import (
    bargauge,
    common,
    dashboard,
    piechart,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)

from ett_grafana.model import NEUTRAL, Bars, Donut, Limits, Lines, Link, Panel, Query, Stat, States, Table

DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The Prometheus that the reader chose."""
PANEL_IDS = 1_000_000
Kind: TypeAlias = tuple[str, object, object]


def panel_id(title: str) -> int:
    """A number that stays with a panel as long as its title does.

    >>> panel_id("Throughput") == panel_id("Throughput") != panel_id("State")
    True
    """
    return zlib.crc32(title.encode()) % PANEL_IDS + 1


def drawn(panel: Panel, x: int, y: int) -> dashboard.Panel:
    """The panel at a place of the grid."""
    kind, options, custom = _kind(panel)
    return dashboard.Panel(
        type_val=kind,
        id_val=panel_id(panel.title),
        title=panel.title,
        description=panel.description,
        datasource=DATASOURCE,
        grid_pos=dashboard.GridPos(h=panel.height, w=panel.width, x=x, y=y),
        targets=[_target(query, place, panel) for place, query in enumerate(panel.queries)],
        transformations=_transformations(panel) or None,
        options=options,
        field_config=dashboard.FieldConfigSource(
            defaults=_field(panel, custom), overrides=[_coloured(*pair) for pair in panel.colours.items()]
        ),
    )


def _target(query: Query, place: int, panel: Panel) -> prometheus.Dataquery:
    is_table = isinstance(panel, Table)
    as_what = prometheus.PromQueryFormat.TABLE if is_table else prometheus.PromQueryFormat.TIME_SERIES
    return prometheus.Dataquery(
        ref_id=chr(ord("A") + place),
        datasource=DATASOURCE,
        expr=query.expr,
        legend_format=query.legend or "__auto",
        editor_mode=prometheus.QueryEditorMode.CODE,
        instant=query.instant,
        range_val=not query.instant,
        format_val=as_what,
    )


def _field(panel: Panel, custom: object) -> dashboard.FieldConfig:
    limits = panel.limits
    mode = dashboard.FieldColorModeId
    colour = dashboard.FieldColor(mode=mode.THRESHOLDS if limits else mode.PALETTE_CLASSIC_BY_NAME)
    if limits and isinstance(panel, Lines):
        colour = dashboard.FieldColor(mode=mode.PALETTE_CLASSIC_BY_NAME)
    if limits is None and isinstance(panel, Stat):
        colour = dashboard.FieldColor(mode=mode.FIXED, fixed_color="text")
    return dashboard.FieldConfig(
        unit=panel.unit,
        decimals=panel.decimals,
        min_val=panel.lowest,
        max_val=panel.highest,
        no_value=panel.no_value,
        thresholds=_thresholds(limits or Limits(NEUTRAL, ())),
        color=colour,
        mappings=_mappings(panel),
        links=[_link(link) for link in panel.links],
        custom=custom,
    )


def _thresholds(limits: Limits) -> dashboard.ThresholdsConfig:
    first = dashboard.Threshold(value=None, color=limits.first)
    steps = [dashboard.Threshold(value=value, color=colour) for value, colour in limits.steps]
    return dashboard.ThresholdsConfig(mode=dashboard.ThresholdsMode.ABSOLUTE, steps=[first, *steps])


def _link(link: Link) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(
        title=link.title, type_val=dashboard.DashboardLinkType.LINK, url=link.url, target_blank=True
    )


def _mappings(panel: Panel) -> list[dashboard.ValueMapping]:
    if not isinstance(panel, States):
        return []
    results = {
        str(code): dashboard.ValueMappingResult(text=text, color=colour, index=place)
        for place, (code, (text, colour)) in enumerate(panel.states.items())
    }
    return [dashboard.ValueMap(options=results)]


def _coloured(name: str, colour: str) -> dashboard.DashboardFieldConfigSourceOverrides:
    fixed = {"mode": dashboard.FieldColorModeId.FIXED.value, "fixedColor": colour}
    return dashboard.DashboardFieldConfigSourceOverrides(
        matcher=dashboard.MatcherConfig(id_val="byName", options=name),
        properties=[dashboard.DynamicConfigValue(id_val="color", value=fixed)],
    )


def _transformations(panel: Panel) -> list[dashboard.DataTransformerConfig]:
    """Of a table: one row for each set of labels, columns in their order under their headers."""
    if not isinstance(panel, Table):
        return []
    names = [f"Value #{chr(ord('A') + place)}" for place in range(len(panel.queries))]
    names = names if len(names) > 1 else ["Value"]
    values = dict(zip(names, panel.values, strict=bool(panel.values)))
    headers = {**panel.columns, **values}
    hidden = ("Time", "__name__", "instance", "job", *(() if panel.values else names))
    organize = {
        "excludeByName": {name: True for name in hidden if name not in panel.columns},
        "indexByName": {name: place for place, name in enumerate(headers)},
        "renameByName": headers,
    }
    merge = [dashboard.DataTransformerConfig(id_val="merge", options={})] if len(names) > 1 else []
    return [*merge, dashboard.DataTransformerConfig(id_val="organize", options=organize)]


def _latest() -> common.ReduceDataOptions:
    return common.ReduceDataOptions(values=False, calcs=["lastNotNull"], fields="")


def _legend(*, is_beside: bool = False) -> common.VizLegendOptions:
    return common.VizLegendOptions(
        display_mode=common.LegendDisplayMode.LIST,
        placement=common.LegendPlacement.RIGHT if is_beside else common.LegendPlacement.BOTTOM,
        show_legend=True,
        calcs=[],
    )


def _tooltip() -> common.VizTooltipOptions:
    return common.VizTooltipOptions(mode=common.TooltipDisplayMode.MULTI, sort=common.SortOrder.DESCENDING)


def _kind(panel: Panel) -> Kind:
    """The name of Grafana's panel, its options, and what its fields look like."""
    match panel:
        case Stat():
            return _stat(panel)
        case Lines():
            return _lines(panel)
        case Bars():
            return _bars()
        case Donut():
            return _donut()
        case States():
            return _states()
        case Table():
            return _table()
    raise AssertionError(f"no panel of Grafana draws {type(panel).__name__}")


def _stat(panel: Stat) -> Kind:
    options = stat.Options(
        graph_mode=common.BigValueGraphMode.AREA if panel.sparkline else common.BigValueGraphMode.NONE,
        color_mode=common.BigValueColorMode.VALUE,
        text_mode=common.BigValueTextMode.NAME if panel.name_only else common.BigValueTextMode.AUTO,
        justify_mode=common.BigValueJustifyMode.AUTO,
        reduce_options=_latest(),
        percent_change_color_mode=common.PercentChangeColorMode.STANDARD,
        orientation=common.VizOrientation.AUTO,
    )
    return "stat", options, None


def _lines(panel: Lines) -> Kind:
    style = common.GraphThresholdsStyleMode
    stacking = common.StackingMode.NORMAL if panel.stacked else common.StackingMode.NONE
    custom = common.GraphFieldConfig(
        draw_style=common.GraphDrawStyle.LINE,
        line_width=0 if panel.stacked else 2,
        fill_opacity=85 if panel.stacked else 8,
        show_points=common.VisibilityMode.NEVER,
        line_interpolation=common.LineInterpolation.LINEAR,
        span_nulls=False,
        stacking=common.StackingConfig(mode=stacking, group="A"),
        thresholds_style=common.GraphThresholdsStyleConfig(mode=style.DASHED if panel.limits else style.OFF),
    )
    return "timeseries", timeseries.Options(legend=_legend(is_beside=panel.many), tooltip=_tooltip()), custom


def _bars() -> Kind:
    options = bargauge.Options(
        display_mode=common.BarGaugeDisplayMode.BASIC,
        value_mode=common.BarGaugeValueMode.TEXT,
        name_placement=common.BarGaugeNamePlacement.LEFT,
        show_unfilled=False,
        sizing=common.BarGaugeSizing.AUTO,
        legend=common.VizLegendOptions(
            display_mode=common.LegendDisplayMode.LIST,
            placement=common.LegendPlacement.BOTTOM,
            show_legend=False,
            calcs=[],
        ),
        reduce_options=_latest(),
        orientation=common.VizOrientation.HORIZONTAL,
    )
    return "bargauge", options, None


def _donut() -> Kind:
    options = piechart.Options(
        pie_type=piechart.PieChartType.DONUT,
        display_labels=[],
        tooltip=_tooltip(),
        reduce_options=_latest(),
        legend=piechart.PieChartLegendOptions(
            values=[piechart.PieChartLegendValues.PERCENT, piechart.PieChartLegendValues.VALUE],
            display_mode=common.LegendDisplayMode.TABLE,
            placement=common.LegendPlacement.RIGHT,
            show_legend=True,
            calcs=[],
        ),
    )
    return "piechart", options, piechart.FieldConfig()


def _states() -> Kind:
    options = statetimeline.Options(
        show_value=common.VisibilityMode.AUTO,
        align_value=common.TimelineValueAlignment.LEFT,
        legend=_legend(),
        tooltip=_tooltip(),
    )
    return "state-timeline", options, statetimeline.FieldConfig(line_width=0, fill_opacity=85)


def _table() -> Kind:
    custom = common.TableFieldOptions(
        align=common.FieldTextAlignment.AUTO, cell_options=common.TableAutoCellOptions(), filterable=True
    )
    return "table", table.Options(cell_height=common.TableCellHeight.SM), custom
