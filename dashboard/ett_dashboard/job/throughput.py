"""How fast a job went over its life, as a figure. Pure.

Rates are of wall time: starts, recoveries and stalls show as gaps down to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from itertools import pairwise

import msgspec

from ett_core.components import EFFECTIVE, GROUP_COLOURS
from ett_dashboard.figures import Figure, local
from ett_dashboard.rows import FailureRow, JobDetail
from ett_dashboard.timeline import MARK, SMALL_MARK
from ett_dashboard.words import compact, duration

REPORTED_WITHIN_S = 60.0
"""All ranks but the first report once a minute: what they did since is not known yet."""
MOST_MARKS = 12
"""More failures than these are marked with dots."""
_FILL = "rgba(27,127,121,0.22)"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Rates between two moments (Unix seconds); None of what is not told."""

    begin: float
    end: float
    samples_per_s: float | None = None
    steps_per_s: float | None = None

    def rate(self, unit: str) -> float:
        """Of samples or of steps, a second."""
        return (self.samples_per_s if unit == "samples" else self.steps_per_s) or 0.0


def paces(job: JobDetail) -> list[Pace]:
    """The parts of a job's life of which all is known, in order."""
    told = job.throughput
    if told is None:
        return []
    known_until = job.end if job.finished else job.known_at
    is_whole = job.finished or (job.world_size or 0) == 1
    settled = known_until if is_whole else known_until - REPORTED_WITHIN_S
    found = []
    for place, (steps, samples) in enumerate(zip(told.steps, told.samples, strict=True)):
        begin = told.begin + place * told.width_s
        end = begin + told.width_s
        if end > settled and not job.finished:
            break
        begin, end = max(begin, job.start), min(end, max(known_until, begin))
        if end > begin:
            within_s = end - begin
            found.append(
                Pace(begin=begin, end=end, samples_per_s=samples / within_s, steps_per_s=steps / within_s)
            )
    return found


def between(points: Sequence[tuple[float, float]]) -> list[Pace]:
    """Rates of samples that were read at moments which follow each other.

    >>> between([(0.0, 9.0), (15.0, 8.0)])
    [Pace(begin=0.0, end=15.0, samples_per_s=8.0, steps_per_s=None)]
    """
    return [Pace(begin=one, end=two, samples_per_s=rate) for (one, _), (two, rate) in pairwise(points)]


def unit_of(known: Sequence[Pace]) -> str:
    """What is drawn: samples where the job counts them, else steps.

    >>> unit_of([Pace(begin=0, end=1, steps_per_s=2.0)]), unit_of([Pace(begin=0, end=1, samples_per_s=9.0)])
    ('steps', 'samples')
    """
    return "samples" if any(pace.samples_per_s for pace in known) else "steps"


def title(known: Sequence[Pace]) -> str:
    """What is drawn, in words.

    >>> title([Pace(begin=0, end=1, samples_per_s=9.0)])
    'Samples a second over time'
    """
    return f"{unit_of(known).capitalize()} a second over time"


def note(known: Sequence[Pace]) -> str:
    """What the figure holds, in a sentence.

    >>> note([Pace(begin=0, end=64, samples_per_s=9.0)])
    'Samples a second over time, in parts of 1 m 4 s; starts, recoveries and stalls count as none.'
    """
    longest_s = max(pace.end - pace.begin for pace in known)
    return f"{title(known)}, in parts of {duration(longest_s)}; starts, recoveries and stalls count as none."


def figure(
    known: Sequence[Pace], failures: Sequence[FailureRow], span: tuple[float, float], zone: tzinfo
) -> Figure:
    """Rates as steps of an area, with the job's failures; `span` (Unix seconds) is the axis of time."""
    unit = unit_of(known)
    x, y, hovers = [], [], []
    for pace in known:
        x += [local(pace.begin, zone), local(pace.end, zone)]
        y += [pace.rate(unit)] * 2
        hovers += [_hover(pace)] * 2
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": y,
            "line": {"width": 1.6, "color": GROUP_COLOURS[EFFECTIVE]},
            "fill": "tozeroy",
            "fillcolor": _FILL,
            "hovertext": hovers,
            "hoverinfo": "text+x",
        }
    ]
    if failures:
        data.append(_marks(failures, zone))
    layout = {
        "height": 210,
        "margin": {"l": 4, "r": 12, "t": 10, "b": 4},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": "zoom",
        "xaxis": {"type": "date", "range": [local(at, zone) for at in span], "automargin": True},
        "yaxis": {"rangemode": "tozero", "tickformat": "~s", "fixedrange": True, "automargin": True},
    }
    return {"data": data, "layout": layout}


def _marks(failures: Sequence[FailureRow], zone: tzinfo) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [local(failure.time, zone) for failure in failures],
        "y": [0.0] * len(failures),
        "marker": MARK if len(failures) <= MOST_MARKS else SMALL_MARK,
        "cliponaxis": False,
        "hovertext": [f"failure of attempt {failure.attempt}" for failure in failures],
        "hoverinfo": "text+x",
    }


def _hover(pace: Pace) -> str:
    told = [
        f"{compact(rate)} {name} a second"
        for name, rate in (("samples", pace.samples_per_s), ("steps", pace.steps_per_s))
        if rate is not None
    ]
    return "<br>".join([*told, f"over {duration(pace.end - pace.begin)}"])
