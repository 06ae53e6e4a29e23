"""Taking in events of many jobs together: made durable at once, then folded, each by its job.

Any thread may call. Whoever takes in events holds all of their jobs meanwhile, in the order of their
names, so that two never wait for each other, and few of many jobs at a time, so that nobody waits long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TypeAlias

from ett_exporter.commits import MOST_AT_ONCE
from ett_exporter.elsewhere import Elsewhere
from ett_exporter.ingest import Segment
from ett_exporter.jobs import BusyError, Jobs
from ett_exporter.live import LiveJob, Taken, fresh_of
from ett_exporter.places import Kept
from ett_exporter.store import Store

OfJobs: TypeAlias = Sequence[Sequence[Segment]]
"""Segments of different jobs, those of each together."""


def by_job(segments: Iterable[Segment]) -> list[list[Segment]]:
    """The segments of each job, in order of appearance."""
    groups: dict[str, list[Segment]] = {}
    for segment in segments:
        groups.setdefault(segment.job_id, []).append(segment)
    return list(groups.values())


def together(segments: Iterable[Segment], most: int = MOST_AT_ONCE) -> Iterator[list[list[Segment]]]:
    """The segments of each job, some jobs at a time: as many as one transaction holds, but whole jobs.

    >>> segments = [Segment(job_id, "w", ()) for job_id in "aabcccd"]
    >>> [[len(of_job) for of_job in some] for some in together(segments, 3)]
    [[2, 1], [3], [1]]
    """
    some: list[list[Segment]] = []
    count = 0
    for of_job in by_job(segments):
        if some and count + len(of_job) > most:
            yield some
            some, count = [], 0
        some.append(of_job)
        count += len(of_job)
    if some:
        yield some


class Taking:
    """Takes in segments of the jobs of one exporter."""

    def __init__(self, jobs: Jobs, store: Store, elsewhere: Elsewhere | None) -> None:
        """`elsewhere` are the jobs of other replicas, None where there are none."""
        self._jobs = jobs
        self._store = store
        self._elsewhere = elsewhere

    def fitting(self, some: OfJobs, now: float) -> tuple[OfJobs, BusyError | None]:
        """The jobs before the first one that is one too many, and what is to be said of that."""
        place = 0
        try:
            for place, of_job in enumerate(some):  # noqa: B007 - where it ended is told
                self._told(of_job, now)
        except BusyError as busy:
            return some[:place], busy
        return some, None

    def take(self, some: OfJobs, now: float) -> Sequence[Taken]:
        """Keep segments of different jobs together, and fold them; what became of each job's.

        Raises:
            BusyError: a job is one too many; nothing is taken in.
            StoreError: they could not be written.
        """

        def keep() -> list[list[Kept]]:
            kept = iter(self._store.append_all([segment for of_job in some for segment in of_job], now))
            return [[next(kept) for _ in of_job] for of_job in some]

        while (took := take_together([self._told(of_job, now) for of_job in some], keep, now)) is None:
            pass
        return took

    def _told(self, of_job: Sequence[Segment], now: float) -> LiveJob | None:
        """The job to which something comes; None where it is another replica's."""
        job_id = of_job[0].job_id
        if self._elsewhere is None or self._store.owns(job_id):
            return self._jobs.told(job_id, now)
        self._elsewhere.admit(job_id, now)
        return None


def take_together(
    jobs: Sequence[LiveJob | None], keep: Callable[[], Sequence[Sequence[Kept]]], received_at: float
) -> list[Taken] | None:
    """Make events of different jobs durable by `keep`, which gives what came of each; then fold the new ones.

    A job that is None is another replica's, which folds it. None, with nothing done, where another object
    has taken the place of one of the jobs.

    Both happen while the jobs are held, so that a fold which reads its history again never meets an event
    there that it is still to be given.
    """
    with ExitStack() as held:
        own = sorted((job for job in jobs if job is not None), key=lambda job: job.job_id)
        if not all(held.enter_context(job.taking()) for job in own):
            return None
        kept = keep()
        return [
            Taken(fresh_of(each)) if job is None else job.took(each, received_at)
            for job, each in zip(jobs, kept, strict=True)
        ]
