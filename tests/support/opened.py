"""A service over a store whose clock stands where a test sets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ett_core.events import AnyEvent
from ett_exporter.answers import page_answer
from ett_exporter.clock_readings import STEADY_S, Reading
from ett_exporter.service import Service
from ett_exporter.settings import Settings
from ett_exporter.store import Store

NOW = 1_764_000_200.0
DAY_S = 86_400.0


class Opened:
    """A service at some moment; `now` moves on."""

    def __init__(self, store: Store, now: float = NOW, **settings: Any) -> None:
        self.now = now
        self.store = store
        self.service = Service(store, Settings(**settings), clock=lambda: self.now)

    def send(self, story: Any) -> list[int]:
        """How many lines of each writer of a story were taken."""
        return [self.service.ingest(body).accepted for body in story.bodies().values()]

    def answer(self, job_id: str, *times: float | None) -> Any:
        """What the query API says of a job."""
        page = self.service.page(job_id, self.now, *times)
        assert page is not None
        return msgspec.to_builtins(page_answer(page))

    def clean(self, go_on: Callable[[], bool] = lambda: True) -> None:
        """What the keeper does once a minute, of a clock that made no leap for a week."""
        self.store.write_clock_reading(Reading(self.now, self.now - STEADY_S))
        self.service.upkeep.close_jobs(self.now)
        self.service.upkeep.prune(self.now)
        self.service.upkeep.merge_segments(self.now, go_on)

    def kind(self, job_id: str) -> type:
        """What a job is in memory."""
        return type(self.service.jobs.by_id[job_id])

    def segments(self, job_id: str) -> int:
        """How many rows hold the events of a job."""
        return sum(1 for _ in self.store.events(job_id))


def started_again(story: Any, opened: Opened) -> list[AnyEvent]:
    """The same once more, by other processes, as attempts that follow."""
    name = f"{opened.now:.0f}-"
    return [
        msgspec.structs.replace(event, attempt=event.attempt + int(opened.now), writer=name + event.writer)
        for event in story("nightly", opened.now - 300).events
    ]
