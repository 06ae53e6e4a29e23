"""The clock of the exporter's machine leaps, and is put right: nothing is deleted, nothing told is wrong."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from opened import DAY_S, NOW, Opened

from ett_core import events as ev
from ett_exporter.api import make_app
from ett_exporter.closed import ClosedJob
from ett_exporter.exposition import Exposition
from ett_exporter.live import LiveJob
from ett_exporter.store import Store

MINUTE_S = 60.0
LEAP_S = 100 * DAY_S
QUESTIONS = (
    *(f"/api/v1/{name}" for name in ("jobs", "failures", "nodes", "runs", "families", "caches", "intervals")),
    *(f"/api/v1/fleet?window={window}" for window in ("1h", "24h", "7d")),
    "/api/v1/what-if",
    "/api/v1/regressions",
    *(
        f"/api/v1/jobs/{job}{part}"
        for job in ("over", "live", "late")
        for part in ("", "/timeline", "/attempts")
    ),
)


class Exporter(Opened):
    """A service that also works between questions, whose senders say when they sent."""

    def __init__(self, path: Path) -> None:
        super().__init__(Store(str(path)))
        self._app = make_app(self.service)
        self.exposition = Exposition(self.service)

    def tell(self, pieces: Iterator[bytes], right: float) -> None:
        """Take in the next piece, sent at the moment `right`."""
        piece = next(pieces, b"")
        if piece:
            self.service.ingest(piece, clock_offset_s=right - self.now)

    def work(self) -> None:
        """What goes on beside: all views are made, and a scrape is answered."""
        self.service.renew(self.now)
        self.exposition.answer()
        self.clean()

    def answers(self) -> dict[str, Any]:
        """What the query API says to all questions."""
        return {path: asyncio.run(self._ask(path)) for path in QUESTIONS}

    async def _ask(self, path: str) -> Any:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
            answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.content)


def pieces_of(story: Any) -> list[bytes]:
    """The lines of a story in the order of their times, each alone."""
    return [ev.encode(event) + b"\n" for event in sorted(story.events, key=lambda event: event.time)]


@pytest.mark.parametrize("leap_s", [LEAP_S, 3600.0, -LEAP_S, -3600.0])
def test_once_the_clock_is_right_again_all_answers_are_those_of_one_that_never_leapt(tmp_path, story, leap_s):
    """Jobs that were over, went on, or ended while the clock was wrong: the API says the same."""
    with ExitStack() as stack:
        plain, leapt = (Exporter(tmp_path / name) for name in ("plain", "leapt"))
        for exporter in (plain, leapt):
            stack.enter_context(closing(exporter.store))
        begin = NOW - 3600.0
        live, late = iter(pieces_of(story("live", begin))), iter(pieces_of(story("late", begin)))
        for exporter in (plain, leapt):
            exporter.now = begin + 200.0
            exporter.send(story("over", begin))
        for turn in range(120):
            right = begin + 200.0 + 10.0 * turn
            is_wrong = 55 <= turn < 61
            told = (next(live, b""), next(late, b"") if turn >= 35 else b"")
            for exporter in (plain, leapt):
                exporter.now = right + (leap_s if is_wrong and exporter is leapt else 0.0)
                for piece in told:
                    exporter.tell(iter([piece]), right)
                if turn % 30 == 0 or 54 <= turn <= 61:
                    exporter.work()
        for exporter in (plain, leapt):
            exporter.now = begin + 3000.0
            exporter.work()
        ours, theirs = leapt.answers(), plain.answers()
        for path in QUESTIONS:
            assert ours[path] == theirs[path], path
        figures = [
            re.sub(rb"(?m)^ett_exporter_.*\n", b"", e.exposition.answer().body) for e in (leapt, plain)
        ]
        assert b"ett_job_" not in figures[1]
        assert b"ett_job_" not in figures[0]


def looked(opened: Opened, *moments: float) -> int:
    """What is left of job `a` after the upkeep has worked at these moments."""
    for opened.now in moments:
        opened.service.upkeep.close_jobs(opened.now)
        opened.service.upkeep.prune(opened.now)
    return opened.segments("a")


def each_day(begin: float, days: int) -> list[float]:
    return [begin + day * DAY_S for day in range(1, days + 1)]


def test_a_clock_that_leaps_deletes_nothing(database, story, caplog):
    """Whether it leaps while the exporter runs or before a start, once or twice; it is told once a leap."""
    with closing(Store(database)) as store:
        opened = Opened(store)
        opened.send(story("a"))
        held = looked(opened, *each_day(NOW, 10))
        leapt = NOW + 10 * DAY_S + LEAP_S
        assert looked(opened, *(leapt + MINUTE_S * minute for minute in range(30))) == held
        (said,) = [record.getMessage() for record in caplog.records]
        assert (
            said == "the clock leapt 100.0 days ahead since it was read last; nothing is deleted for a week"
        )
    with closing(Store(database)) as store:
        again = Opened(store, leapt + 3600.0)
        assert looked(again, *each_day(leapt, 5)) == held
        assert looked(again, *each_day(leapt + LEAP_S, 5)) == held
        assert looked(again, *each_day(NOW + 11 * DAY_S, 60)) == held
        assert "days back since" in caplog.records[-1].getMessage()


def test_a_clock_that_went_well_for_a_week_is_deleted_by(database, story):
    """The retention holds where exporters are started again and are off over weekends, or leapt long ago."""
    with closing(Store(database)) as store:
        opened = Opened(store)
        opened.send(story("a"))
        held = looked(opened, *each_day(NOW, 5))
        assert held
    with closing(Store(database)) as store:
        again = Opened(store)
        assert looked(again, *(NOW + day * DAY_S for day in range(7, 90, 3))) == held
        assert looked(again, NOW + 91 * DAY_S) == 0
        again.send(story("b", NOW + 91 * DAY_S))
        leapt = NOW + 91 * DAY_S + LEAP_S
        looked(again, leapt, *each_day(leapt, 6))
        assert again.segments("b")
        looked(again, leapt + 7 * DAY_S)
        assert again.segments("b") == 0


def test_a_job_that_ended_while_the_clock_was_ahead_is_let_go_of(tmp_path, story):
    """It leaves /metrics and the memory after its grace, not after the leap; so does one that fell silent."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store, NOW + LEAP_S)
        told = {name: story(name, NOW - 200.0, ended=name == "ended") for name in ("ended", "silent")}
        for each in told.values():
            opened.send(each)
        exposition = Exposition(opened.service)
        opened.now = NOW + LEAP_S + 600.0
        opened.clean()
        opened.now = NOW + 660.0
        opened.clean()
        opened.service.renew(opened.now)
        assert b'job_id="ended"' not in exposition.answer().body
        assert opened.service.view("silent", opened.now).account.state == "lost"
        opened.now = NOW + DAY_S
        opened.clean()
        assert opened.service.view("silent", opened.now).account.finished
        opened.now = NOW + 8 * DAY_S
        opened.clean()
        assert [opened.kind(name) for name in told] == [ClosedJob, ClosedJob]


def test_jobs_come_back_into_the_windows_when_the_clock_does(tmp_path, story):
    """What a clock that had leapt ahead put behind every window is in them again."""
    with closing(Store(str(tmp_path / "ett"))) as store:
        opened = Opened(store)
        opened.send(story("a"))
        opened.now = NOW + LEAP_S
        opened.clean()
        assert opened.kind("a") is ClosedJob
        opened.now = NOW + 600.0
        opened.clean()
        assert opened.kind("a") is LiveJob
        assert opened.service.view("a", opened.now).windows["24h"]
