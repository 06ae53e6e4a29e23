"""Which jobs something new came of, as the exporter numbers their changes.

Any thread may call. One small question brings everything up to date; what was read of a job whose
mark is still the same need not be read again, as long as time alone does not change it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import msgspec

from ett_dashboard.client import Question

PAGE = 10_000
MOST_JOBS = 100_000
"""Of more jobs than this it is no longer known which of them changed, only that some did."""


class Changes(msgspec.Struct, frozen=True):
    """The answer of `GET /api/v1/changes` without rows."""

    as_of: float
    cursor: str
    is_all: bool
    more: bool
    job_ids: Sequence[str]


class News:
    """What changed since the beginning; `ask` sends a question to the exporter."""

    def __init__(self, ask: Callable[[Question[Changes]], Changes]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._cursor = ""
        self._number = 0
        self._floor = 0
        self._of_job: dict[str, int] = {}

    def catch_up(self) -> float:
        """Ask what changed; returns up to when it is known, in Unix seconds of the exporter.

        Raises:
            ExporterError: no usable answer; marks stay as they are.
        """
        with self._lock:
            while True:
                parameters = {"since": self._cursor, "rows": "false", "limit": str(PAGE)}
                told = self._ask(Question("/api/v1/changes", Changes, tuple(parameters.items())))
                self._take(told)
                if not told.more:
                    return told.as_of

    def mark(self, job_id: str = "") -> int:
        """A number that changes with each change of a job; of any job where none is named."""
        return self._of_job.get(job_id, self._floor) if job_id else self._number

    def _take(self, told: Changes) -> None:
        self._cursor = told.cursor
        if told.job_ids or told.is_all:
            self._number += 1
        if told.is_all or len(self._of_job) + len(told.job_ids) > MOST_JOBS:
            self._of_job, self._floor = {}, self._number
            return
        self._of_job.update(dict.fromkeys(told.job_ids, self._number))
