"""Plotly figures of failures as plain dictionaries. Pure; words of jobs are escaped here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from html import escape

from ett_core.colours import DOMAIN_COLOURS
from ett_core.fleet.outbreaks import Outbreak
from ett_dashboard.failures.frames import DOMAINS, UNKNOWN, EvidenceLine, Part, domain_of
from ett_dashboard.failures.rows import FailureGroup
from ett_dashboard.failures.words import LAUNCHER, meaning, struck
from ett_dashboard.figures import Figure, bars, local
from ett_dashboard.words import (
    HOUR_S,
    accelerator_hours,
    compact,
    duration,
    hours,
    many,
    ratio,
    when,
)

ROLE_COLOURS: Mapping[str, str] = {
    "root": "#b3386e",
    "cascade": "#e0a100",
    "teardown": "#8a8f98",
    "": "#8a8f98",
}
ROLE_SYMBOLS: Mapping[str, str] = {"root": "x", "cascade": "circle", "teardown": "triangle-down"}
MOST_CLASSES = 12
NOTE_HEIGHT = 17
OUTBREAK_COLOUR = "#b3386e"
TEXT_ROOM = 2.2
"""Bars end at 1 of so much width: what is left holds their words."""


def pareto(groups: Sequence[FailureGroup], *, by_count: bool = False) -> Figure:
    """Classes of failures, the largest on top: what they cost, and what they make up together."""
    shown = groups[:MOST_CLASSES]
    values = [float(group.count) if by_count else group.lost_accelerator_s / HOUR_S for group in shown]
    return bars(
        [escape(group.key) or UNKNOWN for group in shown],
        values,
        texts=[_pareto_text(group, by_count=by_count) for group in shown],
        hovers=[_group_hover(group) for group in shown],
        hues=[DOMAIN_COLOURS[domain_of(group.key)] for group in shown],
        room=TEXT_ROOM,
    )


def over_time(
    parts: Sequence[Part],
    outbreaks: Sequence[Outbreak],
    span: tuple[float, float],
    zone: tzinfo,
    *,
    by_count: bool,
) -> Figure:
    """Failures in equal parts of the time of `span`, stacked by whose they are; outbreaks are shaded."""
    data = [
        _domain_trace(domain, members, zone, by_count=by_count)
        for domain in DOMAINS
        if (members := [part for part in parts if part.domain == domain])
    ]
    marks = [_mark(outbreak, place, span, zone) for place, outbreak in enumerate(outbreaks)]
    layout = {
        "height": 300,
        "margin": {"l": 4, "r": 12, "t": 10 + NOTE_HEIGHT * max(len(outbreaks), 1), "b": 4},
        "barmode": "stack",
        "bargap": 0,
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": "zoom",
        "shapes": [shape for shape, _ in marks],
        "annotations": [note for _, note in marks],
        "xaxis": {"type": "date", "automargin": True, "range": [local(moment, zone) for moment in span]},
        "yaxis": {
            "title": {"text": "failures" if by_count else "accelerator-hours lost", "font": {"size": 12}},
            "rangemode": "tozero",
            "fixedrange": True,
            "automargin": True,
        },
    }
    return {"data": data, "layout": layout}


def evidence(lines: Sequence[EvidenceLine], zone: tzinfo) -> Figure:
    """Who told of a failure when: one mark a line, over ranks; the root is the cross."""
    known = [line for line in lines if line.rank is not None]
    names = {-1: LAUNCHER}
    ranks = sorted({line.rank for line in known if line.rank is not None})
    lanes = {rank: lane for lane, rank in enumerate(ranks)}
    data = []
    for role in ("", "teardown", "cascade", "root"):
        members = [line for line in known if (line.role if line.role in ROLE_SYMBOLS else "") == role]
        if members:
            data.append(_role_trace(role, members, lanes, zone))
    few = len(ranks) <= MOST_CLASSES
    layout = {
        "height": min(70 + 24 * max(len(ranks), 2), 330),
        "margin": {"l": 4, "r": 12, "t": 8, "b": 4},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": "zoom",
        "xaxis": {"automargin": True, "ticksuffix": " s", "zeroline": True},
        "yaxis": {
            "tickvals": list(lanes.values()) if few else [0, len(ranks) - 1],
            "ticktext": [
                names.get(rank, f"rank {rank}") for rank in (ranks if few else (ranks[0], ranks[-1]))
            ],
            "range": [len(ranks) - 0.4, -0.6],
            "fixedrange": True,
            "automargin": True,
            "ticks": "",
            "zeroline": False,
        },
    }
    return {"data": data, "layout": layout}


def _pareto_text(group: FailureGroup, *, by_count: bool) -> str:
    size = many(group.count, "failure") if by_count else hours(group.lost_accelerator_s)
    together = "" if group.cumulative_ratio is None else f" · together {ratio(group.cumulative_ratio)}"
    return f"{size}{together}"


def _group_hover(group: FailureGroup) -> str:
    share = "" if group.lost_ratio is None else f", {ratio(group.lost_ratio)} of all"
    back = (
        ""
        if group.ttr_median_s is None
        else f"<br>half were back in the loop within {duration(group.ttr_median_s)}"
    )
    money = "" if group.cost is None else f"<br>{compact(group.cost)} in money"
    return (
        f"<b>{escape(group.key) or UNKNOWN}</b> · {struck(group)}"
        f"<br>{accelerator_hours(group.lost_accelerator_s)}{share}{money}{back}<br>{escape(meaning(group.key))}"
    )


def _domain_trace(domain: str, parts: Sequence[Part], zone: tzinfo, *, by_count: bool) -> Figure:
    return {
        "type": "bar",
        "name": domain,
        "x": [local((part.begin + part.end) / 2, zone) for part in parts],
        "width": [920 * (part.end - part.begin) for part in parts],
        "y": [part.count if by_count else part.lost_accelerator_s / HOUR_S for part in parts],
        "marker": {"color": DOMAIN_COLOURS[domain], "line": {"width": 0}},
        "hovertext": [_part_hover(part, zone) for part in parts],
        "hoverinfo": "text",
    }


def _part_hover(part: Part, zone: tzinfo) -> str:
    classes = "<br>".join(f"{escape(name)} {count}" for name, count in part.classes[:6])
    return (
        f"<b>{part.domain}</b> {when(part.begin, zone)} to {when(part.end, zone)}<br>"
        f"{many(part.count, 'failure')}, {accelerator_hours(part.lost_accelerator_s)}<br>{classes}"
    )


def _mark(outbreak: Outbreak, place: int, span: tuple[float, float], zone: tzinfo) -> tuple[Figure, Figure]:
    begin, end = max(outbreak.since, span[0]), span[1] if outbreak.until is None else outbreak.until
    x0, x1 = local(begin, zone), local(max(end, begin), zone)
    shape = {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": x0,
        "x1": x1,
        "y0": 0,
        "y1": 1,
        "fillcolor": OUTBREAK_COLOUR,
        "opacity": 0.16,
        "line": {"width": 1, "color": OUTBREAK_COLOUR},
    }
    late = begin - span[0] > (span[1] - span[0]) / 2
    note = {
        "text": f"<b>{escape(outbreak.failure_class)}</b> strikes {many(outbreak.jobs, 'job')}",
        "x": x1 if late else x0,
        "xref": "x",
        "xanchor": "right" if late else "left",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": NOTE_HEIGHT * place,
        "showarrow": False,
        "font": {"size": 12},
    }
    return shape, note


def _role_trace(role: str, lines: Sequence[EvidenceLine], lanes: Mapping[int, int], zone: tzinfo) -> Figure:
    size = 12 if role == "root" else 8
    return {
        "type": "scatter",
        "mode": "markers",
        "name": role or "told",
        "x": [line.after_s for line in lines],
        "y": [lanes[line.rank] for line in lines if line.rank is not None],
        "marker": {
            "symbol": ROLE_SYMBOLS.get(role, "circle-open"),
            "size": size,
            "color": ROLE_COLOURS[role],
        },
        "hovertext": [_line_hover(line, zone) for line in lines],
        "hoverinfo": "text",
    }


def _line_hover(line: EvidenceLine, zone: tzinfo) -> str:
    first = line.text.partition("\n")[0]
    shown = first if len(first) <= 110 else first[:109] + "…"  # noqa: PLR2004 - the width of a hover
    role = f"{line.role}, " if line.role else ""
    return f"<b>{escape(line.where)}</b> {role}{local(line.time, zone)[11:]}<br>{escape(shown)}"
