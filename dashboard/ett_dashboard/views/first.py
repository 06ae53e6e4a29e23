"""What is seen of a page before the app has drawn it: the bar on top, and what Fleet and Job say at once.

Told by the same pieces as the page itself, from the same shared readings, without Streamlit: any thread may
call. Only what is fresh within a moment is told. Of the viewer no more is known than the address says: times
are in the zone of the address or of the app, else in UTC.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import TypeAlias

from ett_dashboard import markup, table, timeline
from ett_dashboard.document import FirstView
from ett_dashboard.fleet import markup as fleet_markup
from ett_dashboard.fleet import questions
from ett_dashboard.job.markup import partition, partition_head, standing, start, starts_head
from ett_dashboard.job.waterfall import starts
from ett_dashboard.live import SharedReads
from ett_dashboard.settings import of_app
from ett_dashboard.views import details, fleet, frame, job, job_over_time, job_starts, job_timeline
from ett_dashboard.views.page import Page

logger = logging.getLogger(__name__)
WITHIN_S = 0.3
"""For so long what is asked of the exporter is waited for; then the page begins without it."""
HEAD = ".ett-head, .ett-name, .ett-quiet"
Told: TypeAlias = tuple[list[str], str]
"""Pieces of HTML, and what finds in the page that they are drawn there."""


def first_view(
    page: Page, pages: Sequence[Page], asked: Mapping[str, str], reads: Callable[[], SharedReads]
) -> FirstView:
    """What is seen first of a page at an address that asks for this."""
    bar = markup.navigation([(one.title, one.path) for one in pages], page.path, asked)
    source = of_app().source
    note = "" if source.is_whole else markup.from_metrics(source.url)
    pieces, until = _at_once(page, asked, reads) or ([markup.page_head(page.title, "on its way")], HEAD)
    above = f'<div class="ett-above">{bar}</div>'
    return FirstView("".join(f"<div>{piece}</div>" for piece in (above, note, *pieces) if piece), until)


def _at_once(page: Page, asked: Mapping[str, str], reads: Callable[[], SharedReads]) -> Told | None:
    tell = _TOLD.get(page.path)
    try:
        return tell(asked, reads()) if tell else None
    except Exception:
        logger.exception("no first view of %s", page.title)  # the app, which comes next, may still be drawn
        return None


def _fleet(asked: Mapping[str, str], reads: SharedReads) -> Told | None:
    window, weighing = fleet.weighed(asked)
    is_there = reads.soon(fleet.questions_of(asked, weighing), within_s=WITHIN_S)
    order, most = fleet.order_and_most(asked)
    if not is_there:
        return None
    urgent = reads.ask(questions.jobs(asked, most=fleet.FEW_ROWS))
    shown = reads.ask(questions.jobs(asked, order, most))
    if urgent.value is None or shown.value is None or urgent.error or shown.error or not shown.value.jobs:
        return None
    windows = {name: reads.ask(questions.window(name, weighing, asked)) for name in questions.PARTS}
    columns, rows = fleet.listed(shown.value, asked)
    pieces = [
        *map(_room, ("2.6rem", "2rem")),
        markup.page_head("Fleet", frame.as_of_in(_zone(asked), urgent.value.as_of)),
        fleet_markup.standing(urgent.value, windows, window, weighing, asked),
        fleet_markup.jobs_head(shown.value.total, order),
        table.as_html(columns, rows, caption="Jobs"),
    ]
    return pieces, ".ett-table tbody tr"


def _job(asked: Mapping[str, str], reads: SharedReads) -> Told | None:
    job_id = asked.get("id", "")
    if not job_id or not reads.soon((), job_id, within_s=WITHIN_S):
        return None
    reading, is_whole = reads.job(job_id), of_app().source.is_whole
    told = reading.value
    if told is None or reading.error:
        return None
    if is_whole:
        reads.begin(details.questions_of(told))
    over_time = job_timeline if is_whole else job_over_time
    pieces = [
        _room("2.6rem"),
        standing(told, job.elsewhere(job_id, asked, _zone(asked))),
        over_time.head(frame.as_of_in(_zone(asked), told.known_at)),
        _room(f"{timeline.height_px(len({stretch.attempt for stretch in told.timeline}))}px"),
        partition_head(),
        f'<div class="ett-columns"><div></div><div>{partition(told, asked)}</div></div>',
    ]
    known = starts(told) if is_whole else []
    if known:
        chosen = job_starts.chosen_of(known, asked)
        columns, rows = job_starts.listed(known, chosen, asked)
        table_of = table.as_html(columns, rows, caption="Attempts")
        pieces += [starts_head(), start(told, chosen), table_of]
    return pieces, ".st-key-timeline [data-drawn]" if is_whole and told.timeline else HEAD


def _room(height: str) -> str:
    """Where the app will draw something that is made by scripts."""
    return f'<div class="ett-room" style="height:{height}"></div>'


def _zone(asked: Mapping[str, str]) -> tzinfo:
    return frame.zone_of(asked.get("zone"), of_app().zone)


_TOLD: Mapping[str, Callable[[Mapping[str, str], SharedReads], Told | None]] = {"": _fleet, "job": _job}
