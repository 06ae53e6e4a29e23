"""A board as a page: each panel where it lies on Grafana's grid, drawn from the answers to its queries."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plotly.offline import get_plotlyjs

CELL_PX, ROW_PX, GAP_PX = 1400 / 24, 34, 8
PALETTE = ("#3366a0", "#7a5195", "#c26a3d", "#4f8f4a", "#a0567a", "#5b7f95", "#8c8440", "#6b6bb0")
STYLE = """
body{margin:0;background:#f4f5f5;font:13px Inter,'DejaVu Sans',sans-serif;color:#24292e}
main{position:relative;width:1400px;padding:12px 8px}
.row{position:absolute;font-weight:600;font-size:14px;padding:8px 4px}
.panel{position:absolute;background:#fff;border:1px solid #e0e2e4;border-radius:3px;overflow:hidden}
.panel h2{font-size:13px;font-weight:600;margin:8px 10px 0;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.stats{display:flex;height:calc(100% - 30px);align-items:center;justify-content:space-around}
.stat{text-align:center}.stat b{font-size:30px;font-weight:600;display:block}.stat span{font-size:11px;color:#6a737b}
.none{color:#8a9299;text-align:center;padding-top:12%}
table{border-collapse:collapse;width:100%;font-size:12px;margin-top:4px}
th{text-align:left;color:#3366a0;font-weight:600;padding:4px 10px;border-bottom:1px solid #e0e2e4}
td{padding:4px 10px;border-bottom:1px solid #eff1f2;white-space:nowrap;max-width:190px;overflow:hidden;
text-overflow:ellipsis}
.bar{display:grid;grid-template-columns:45% 1fr 78px;align-items:center;margin:3px 10px;font-size:12px}
.bar span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.bar i{display:block;height:15px}
.bar b{text-align:right;font-weight:600}
"""


def page_of(board: Mapping[str, Any], answered: Iterable[tuple[Mapping[str, Any], Sequence[Any]]]) -> str:
    """The whole page as HTML; it sets `window.drawn` once every chart is there."""
    parts, charts, lowest = [], [], 0
    for panel, answers in answered:
        at = panel["gridPos"]
        lowest = max(lowest, at["y"] + at["h"])
        place = (
            f"left:{at['x'] * CELL_PX + 8:.0f}px;top:{at['y'] * ROW_PX + 52:.0f}px;"
            f"width:{at['w'] * CELL_PX - GAP_PX:.0f}px;height:{at['h'] * ROW_PX - GAP_PX:.0f}px"
        )
        title = html.escape(panel["title"])
        if panel["type"] == "row":
            parts.append(f'<div class="row" style="{place}">&#9662; {title}</div>')
            continue
        body, chart = _DRAWN[panel["type"]](panel, answers)
        if chart is not None:
            body = f'<div id="c{panel["id"]}" style="height:{at["h"] * ROW_PX - GAP_PX - 32}px"></div>'
            charts.append([f"c{panel['id']}", *chart])
        if not any(result for _, result in answers):
            no_value = panel["fieldConfig"]["defaults"].get("noValue", "No data")
            body, charts = (
                f'<div class="none">{html.escape(no_value)}</div>',
                charts[: len(charts) - bool(chart)],
            )
        parts.append(f'<div class="panel" style="{place}"><h2>{title}</h2>{body}</div>')
    script = (
        f"const charts={_in_script(charts)};Promise.all(charts.map(c=>Plotly.newPlot(c[0],c[1],c[2],"
        "{staticPlot:true,displayModeBar:false}))).then(()=>{window.drawn=true})"
    )
    return (
        f"<meta charset=utf-8><style>{STYLE}</style><script>{get_plotlyjs()}</script>"
        f'<main style="height:{lowest * ROW_PX + 44:.0f}px"><div style="font-size:17px;font-weight:600;'
        f'padding:4px">{html.escape(board["title"])}</div>{"".join(parts)}</main><script>{script}</script>'
    )


def _in_script(told: Any) -> str:
    """JSON that does not end the script in which it stands, whatever it says."""
    return json.dumps(told).replace("<", "\\u003c")


def _as_label(name: str) -> str:
    """A name as Plotly takes it, which reads a little HTML."""
    return html.escape(name, quote=False)


def _named(target: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    legend, labels = target["legendFormat"], row["metric"]
    if legend == "__auto":
        return ", ".join(v for k, v in labels.items() if not k.startswith("__")) or "value"
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), legend).strip()


def _value(row: Mapping[str, Any]) -> float:
    return float(row["value"][1] if "value" in row else row["values"][-1][1])


def _series(answers: Sequence[Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(_named(target, row), row) for target, result in answers for row in result]


def _colours(panel: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    fixed = {
        each["matcher"]["options"]: each["properties"][0]["value"]["fixedColor"]
        for each in panel["fieldConfig"]["overrides"]
    }
    others = iter(PALETTE * 9)
    return {name: fixed.get(name) or next(others) for name in names}


def _limit_colour(panel: Mapping[str, Any], value: float) -> str:
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """A value in its unit, much as Grafana writes it."""
    if unit == "percentunit":
        return f"{100 * value:.{decimals if decimals is not None else 1}f}%"
    if unit == "s":
        for size, name in ((86_400, "days"), (3600, "hours"), (60, "mins")):
            if abs(value) >= size:
                return f"{value / size:.1f} {name}"
        return f"{value:.3g} s"
    if unit == "bytes":
        for power, name in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
            if abs(value) >= 1024**power:
                return f"{value / 1024**power:.3g} {name}"
    scaled, suffix = (value / 1000, " K") if unit == "short" and abs(value) >= 1000 else (value, "")
    ending = {"watt": " W", "celsius": " °C"}.get(unit, unit.removeprefix("suffix:") if ":" in unit else "")
    return (f"{scaled:.{decimals}f}" if decimals is not None else f"{scaled:.4g}") + suffix + ending


def _unit(panel: Mapping[str, Any]) -> tuple[str, int | None]:
    defaults = panel["fieldConfig"]["defaults"]
    return defaults["unit"], defaults.get("decimals")


def _stat(panel: Mapping[str, Any], answers: Sequence[Any]) -> tuple[str, None]:
    plain = panel["fieldConfig"]["defaults"]["color"]["mode"] == "fixed"
    found = []
    for name, row in _series(answers)[:3]:
        colour = "#24292e" if plain else _limit_colour(panel, _value(row))
        label = "" if name == "value" or len(_series(answers)) == 1 else f"<span>{html.escape(name)}</span>"
        found.append(
            f'<div class="stat"><b style="color:{colour}">{shown(_value(row), *_unit(panel))}</b>{label}</div>'
        )
    return f'<div class="stats">{"".join(found)}</div>', None


def _bars(panel: Mapping[str, Any], answers: Sequence[Any]) -> tuple[str, None]:
    rows = [(name, _value(row)) for name, row in _series(answers)]
    largest = max(
        [panel["fieldConfig"]["defaults"].get("max") or 0, *(value for _, value in rows)], default=0
    )
    fixed = bool(panel["fieldConfig"]["overrides"])
    colours = _colours(panel, [name for name, _ in rows])
    room = max(int((panel["gridPos"]["h"] * ROW_PX - 44) / 21), 1)
    found = []
    for name, value in rows[:room]:
        limited = panel["fieldConfig"]["defaults"]["color"]["mode"] == "thresholds"
        colour = colours[name] if fixed else _limit_colour(panel, value) if limited else PALETTE[0]
        width = 100 * value / largest if largest else 0
        found.append(
            f'<div class="bar"><span>{html.escape(name)}</span><i style="width:{width:.1f}%;background:{colour}">'
            f"</i><b>{shown(value, *_unit(panel))}</b></div>"
        )
    return "".join(found), None


def _table(panel: Mapping[str, Any], answers: Sequence[Any]) -> tuple[str, None]:
    organize = panel["transformations"][-1]["options"]
    columns = sorted(organize["indexByName"], key=organize["indexByName"].get)
    head = "".join(f"<th>{html.escape(organize['renameByName'].get(name, name))}</th>" for name in columns)
    rows = []
    for _, result in answers:
        for row in result:
            cells = {**row["metric"], "Value": shown(_value(row), *_unit(panel))}
            rows.append("".join(f"<td>{html.escape(cells.get(name, ''))}</td>" for name in columns))
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>", None


def _layout(panel: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    axis = {"gridcolor": "#eceef0", "zeroline": False, "linecolor": "#d5d8db"}
    return {
        "margin": {"l": 52, "r": 12, "t": 8, "b": 22},
        "font": {"size": 11, "color": "#5a6268"},
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        "legend": {"orientation": "h", "y": -0.13, "yanchor": "top", "font": {"size": 11}},
        "xaxis": {**axis, "type": "date", "tickformat": "%H:%M", "nticks": 7},
        "yaxis": {**axis, "rangemode": "tozero"},
        **more,
    }


def _lines(panel: Mapping[str, Any], answers: Sequence[Any]) -> tuple[str, tuple[list[Any], dict[str, Any]]]:
    defaults = panel["fieldConfig"]["defaults"]
    series, custom = _series(answers), defaults["custom"]
    colours = _colours(panel, [name for name, _ in series])
    stacked = custom["stacking"]["mode"] == "normal"
    traces = []
    for name, row in series:
        points = row["values"]
        trace = {
            "name": _as_label(name),
            "x": [1000 * at for at, _ in points],
            "y": [float(value) for _, value in points],
            "mode": "lines",
            "line": {"width": 0 if stacked else 2, "color": colours[name]},
        }
        if stacked:
            trace |= {"stackgroup": "one", "fillcolor": colours[name]}
        traces.append(trace)
    layout = _layout(panel, showlegend=True)
    if panel["options"]["legend"]["placement"] == "right":
        layout["legend"] = {"font": {"size": 10}, "x": 1.01, "y": 1}
    if "max" in defaults:
        layout["yaxis"] |= {"range": [defaults.get("min", 0), defaults["max"]]}
    if defaults["unit"] == "percentunit":
        layout["yaxis"]["tickformat"] = ".0%"
    if defaults["unit"] == "bytes":
        layout["yaxis"]["tickformat"] = ".2s"
    if defaults["unit"] == "s":
        top = max((y for trace in traces for y in trace["y"]), default=0)
        size, name = (3600, " h") if top > 7200 else (60, " min") if top > 120 else (1, " s")
        for trace in traces:
            trace["y"] = [y / size for y in trace["y"]]
        layout["yaxis"]["ticksuffix"] = name
    else:
        size = 1
    layout["shapes"] = [
        {
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": step["value"] / size, "y1": step["value"] / size,
            "line": {"color": step["color"], "width": 1, "dash": "dash"},
        }
        for step in defaults["thresholds"]["steps"]
        if step["value"] is not None and custom["thresholdsStyle"]["mode"] != "off"
        and step["value"] <= 2 * max((y * size for trace in traces for y in trace["y"]), default=0)
    ]  # fmt: skip
    return "", (traces, layout)


def _donut(panel: Mapping[str, Any], answers: Sequence[Any]) -> tuple[str, tuple[list[Any], dict[str, Any]]]:
    rows = [(name, _value(row)) for name, row in _series(answers)]
    colours = _colours(panel, [name for name, _ in rows])
    trace = {
        "type": "pie",
        "hole": 0.62,
        "sort": False,
        "labels": [_as_label(name) for name, _ in rows],
        "values": [value for _, value in rows],
        "marker": {"colors": [colours[name] for name, _ in rows]},
        "textinfo": "none",
    }
    legend = {"font": {"size": 10}, "x": 1.02, "y": 1}
    return "", ([trace], _layout(panel, legend=legend, margin={"l": 8, "r": 8, "t": 8, "b": 8}))


def _states(panel: Mapping[str, Any], answers: Sequence[Any]) -> tuple[str, tuple[list[Any], dict[str, Any]]]:
    texts = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    traces, seen = [], set()
    for name, row in _series(answers):
        values = row["values"]
        begin = 0
        for place in range(1, len(values) + 1):
            if place < len(values) and values[place][1] == values[begin][1]:
                continue
            state = texts[str(int(float(values[begin][1])))]
            last = values[min(place, len(values) - 1)][0]
            traces.append({
                "type": "bar", "orientation": "h", "y": [_as_label(name)], "x": [1000 * (last - values[begin][0])],
                "base": [1000 * values[begin][0]], "name": state["text"], "legendgroup": state["text"],
                "showlegend": state["text"] not in seen, "marker": {"color": state["color"], "line": {"width": 1, "color": "#fff"}},
            })  # fmt: skip
            seen.add(state["text"])
            begin = place
    layout = _layout(panel, barmode="overlay", bargap=0.3, margin={"l": 180, "r": 12, "t": 8, "b": 46})
    layout["legend"]["y"] = -0.45
    layout["yaxis"] = {"showgrid": False}
    return "", (traces, layout)


_DRAWN: Mapping[str, Callable[..., tuple[str, Any]]] = {
    "stat": _stat,
    "bargauge": _bars,
    "table": _table,
    "timeseries": _lines,
    "piechart": _donut,
    "state-timeline": _states,
}
