"""The timeline of a job as a Plotly figure: its stretches as bars, a lane an attempt. Pure.

What a viewer zoomed into is drawn finer than the rest, and its attempts fill the height of the chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone, tzinfo
from html import escape
from math import floor, log2
from typing import NamedTuple

from ett_core.colours import component_colour
from ett_core.components import meaning_of
from ett_dashboard.client import Question, in_path
from ett_dashboard.figures import Figure, local
from ett_dashboard.frames import Bar, bars
from ett_dashboard.rows import FailureRow, Stretches, StretchRow
from ett_dashboard.words import duration, plain

LANE_HEIGHT = 0.78
LANE_PX, HEAD_PX, MOST_PX = 40, 92, 430
FEWEST_LANES = 6
"""So many lanes share the height at least, where a job has them."""
MOST_TICKS = 14
MANY_LANES = 30
MARK_COLOUR = "#7a1140"
MARK = {"symbol": "x", "size": 12, "color": "#ffffff", "line": {"width": 2, "color": MARK_COLOUR}}
SMALL_MARK = {"symbol": "circle", "size": 4, "color": MARK_COLOUR, "line": {"width": 0}}
"""Where there are many lanes, a mark must leave what it marks to be seen."""
FINE_COLUMNS, AROUND_COLUMNS = 400, 150
"""In so many parts what is seen of a job is drawn, and all of a job beside that."""
KEPT_AT_MOST_S = 30.0
FINE_STRETCHES = 2000
SAME_MOMENT_S = 1e-3


class Seen(NamedTuple):
    """The part of the time that a viewer looks at, in Unix seconds."""

    begin: float
    end: float


class Ways(NamedTuple):
    """Where a click on an attempt (by its number) and on a failure leads."""

    to_attempt: Callable[[int], str]
    to_failure: Callable[[FailureRow], str]


def seen_of(told: object, zone: tzinfo) -> Seen | None:
    """The part that a chart says it shows: two moments in milliseconds as its axis counts them.

    >>> seen_of([1000.0, 2500.0], timezone.utc), seen_of(["x"], timezone.utc), seen_of(None, timezone.utc)
    (Seen(begin=1.0, end=2.5), None, None)
    """
    try:
        begin, end = (_unix(float(moment), zone) for moment in told)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return Seen(begin, end) if begin < end else None


def _unix(local_ms: float, zone: tzinfo) -> float:
    return datetime.fromtimestamp(local_ms / 1000, timezone.utc).replace(tzinfo=zone).timestamp()


def finer(
    job_id: str, whole: Sequence[StretchRow], seen: Seen | None, *, is_over: bool = False
) -> Question[Stretches] | None:
    """What to ask for to draw what is seen, and half as much on either side; None where the whole will do.

    It begins and ends with stretches of the whole, so that it can take their place.
    """
    if seen is None or not whole:
        return None
    room_s = (seen.end - seen.begin) / 2
    inside = [s for s in whole if s.end > seen.begin - room_s and s.start < seen.end + room_s]
    if not inside or len(inside) == len(whole):
        return None
    first, last = inside[0], inside[-1]
    when = {"begin": repr(first.start)} | ({} if last is whole[-1] else {"end": repr(last.end)})
    column_s = max((seen.end - seen.begin) / FINE_COLUMNS, SAME_MOMENT_S)
    kept_s = min(2.0 ** floor(log2(column_s)), KEPT_AT_MOST_S)
    path = f"/api/v1/jobs/{in_path(job_id)}/timeline"
    return Question(
        path, Stretches, (*when.items(), ("limit", str(FINE_STRETCHES))), kept_s, job_id if is_over else ""
    )


def drawn(whole: Sequence[StretchRow], part: Sequence[StretchRow], seen: Seen | None) -> list[Bar]:
    """The bars of a timeline, of which `part` is known finer."""
    finest = 1 / _lane_px(whole, seen)
    if seen is None or not part:
        return bars(whole, finest=finest)
    begin, end = part[0].start, part[-1].end
    before = [stretch for stretch in whole if stretch.end <= begin + SAME_MOMENT_S]
    after = [stretch for stretch in whole if stretch.start >= end - SAME_MOMENT_S]
    span_s = whole[-1].end - whole[0].start
    around = [bar for side in (before, after) for bar in bars(side, AROUND_COLUMNS, finest, span_s)]
    return around + bars(part, FINE_COLUMNS, finest, seen.end - seen.begin)


def figure(
    shown: Sequence[Bar],
    failures: Sequence[FailureRow],
    zone: tzinfo,
    seen: Seen | None = None,
    ways: Ways | None = None,
) -> Figure:
    """Attempts over time, one lane each, cut by component; failures as crosses on their lane."""
    lanes = {attempt: lane for lane, attempt in enumerate(sorted({bar.attempt for bar in shown}))}
    first, last = _lanes_seen([(bar.start, bar.end, lanes[bar.attempt]) for bar in shown], len(lanes), seen)
    components = dict.fromkeys(bar.component for bar in shown)
    data = [_component_trace([b for b in shown if b.component == c], lanes, zone, ways) for c in components]
    marks = [failure for failure in failures if failure.attempt in lanes]
    if marks:
        data.append(_failure_trace(marks, lanes, zone, ways, is_small=last - first >= MANY_LANES))
    ticks = [*lanes][first : last + 1 : (last - first) // MOST_TICKS + 1]
    layout = {
        "height": height_px(len(lanes)),
        "margin": {"l": 4, "r": 12, "t": 8, "b": 4},
        "barmode": "overlay",
        "bargap": 0,
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": "zoom",
        "xaxis": {"type": "date", "automargin": True},
        "yaxis": {
            "tickvals": [lanes[attempt] for attempt in ticks],
            "ticktext": [f"attempt {attempt}" for attempt in ticks],
            "range": [last + 0.5, first - 0.62],
            "fixedrange": True,
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
            "ticks": "",
        },
    }
    return {"data": data, "layout": layout}


def height_px(lanes: int) -> int:
    """How high the timeline of so many attempts is."""
    return min(HEAD_PX + LANE_PX * max(lanes, 1), MOST_PX)


def _lane_px(whole: Sequence[StretchRow], seen: Seen | None) -> float:
    """How high the bars of a lane are, in pixels."""
    lanes = {attempt: lane for lane, attempt in enumerate(sorted({s.attempt for s in whole}))}
    first, last = _lanes_seen([(s.start, s.end, lanes[s.attempt]) for s in whole], len(lanes), seen)
    return max(LANE_HEIGHT * height_px(len(lanes)) / (last - first + 1), 1.0)


def _lanes_seen(spans: Sequence[tuple[float, float, int]], lanes: int, seen: Seen | None) -> tuple[int, int]:
    """The first and the last lane that the chart shows; `spans` hold begin, end and lane."""
    if seen is None:
        return 0, max(lanes - 1, 0)
    inside = [lane for begin, end, lane in spans if end > seen.begin and begin < seen.end]
    first, last = min(inside, default=0), max(inside, default=lanes - 1)
    missing = max(min(FEWEST_LANES, lanes) - (last - first + 1), 0)
    first = max(min(first - missing // 2, lanes - (last - first + 1) - missing), 0)
    return first, max(last, first + min(FEWEST_LANES, lanes) - 1)


def _component_trace(
    shown: Sequence[Bar], lanes: Mapping[int, int], zone: tzinfo, ways: Ways | None
) -> Figure:
    component = shown[0].component
    links = {} if ways is None else {"customdata": [ways.to_attempt(bar.attempt) for bar in shown]}
    return {
        "type": "bar",
        "name": component,
        "x": [local((bar.start + bar.end) / 2, zone) for bar in shown],
        "width": [round(1000 * (bar.end - bar.start), 3) for bar in shown],
        "base": [round(lanes[bar.attempt] + LANE_HEIGHT * (0.5 - bar.low), 4) for bar in shown],
        "y": [round(-LANE_HEIGHT * (bar.high - bar.low), 4) for bar in shown],
        "marker": {"color": component_colour(component), "line": {"width": 0}},
        "hovertext": [_bar_hover(bar, zone) for bar in shown],
        "hoverinfo": "text",
        **links,
    }


def _failure_trace(
    failures: Sequence[FailureRow],
    lanes: Mapping[int, int],
    zone: tzinfo,
    ways: Ways | None,
    *,
    is_small: bool,
) -> Figure:
    links = {} if ways is None else {"customdata": [ways.to_failure(failure) for failure in failures]}
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "failure",
        "x": [local(failure.time, zone) for failure in failures],
        "y": [lanes[failure.attempt] for failure in failures],
        "marker": SMALL_MARK if is_small else MARK,
        "hovertext": [_failure_hover(failure) for failure in failures],
        "hoverinfo": "text",
        **links,
    }


def _bar_hover(bar: Bar, zone: tzinfo) -> str:
    begin, end = (datetime.fromtimestamp(at, zone).strftime("%H:%M:%S") for at in (bar.start, bar.end))
    name, took = escape(bar.component), duration(bar.seconds)
    head = f"<b>{name}</b> {took}<br>attempt {bar.attempt}, {begin} to {end}"
    if len(bar.within) < 2:  # noqa: PLR2004 - nothing but itself
        return f"{head}<br>{meaning_of(bar.component)}"
    parts = sorted(bar.within.items(), key=lambda item: -item[1])
    return head + "".join(f"<br>{escape(name)} {amount:,.1f} s" for name, amount in parts)


def _failure_hover(failure: FailureRow) -> str:
    cause = escape(plain(failure.cause or "cause unknown", 90))
    return (
        f"<b>failure</b> of attempt {failure.attempt}<br>{cause}<br>"
        f"{duration(failure.unsaved_s)} of training lost, back in the loop after {duration(failure.ttr_s)}"
    )
