"""Live jobs without a store: told events in this process, and read as the service reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from plausible import EPOCH

from ett_core.events import AnyEvent
from ett_exporter.live import LiveJob
from ett_exporter.places import Kept, Place
from ett_exporter.roster import Roster
from ett_exporter.taking import take_together


class Past:
    """The past of a job that was told nothing before."""

    def __init__(self):
        self.told = []

    def events(self):
        return self.told

    def count(self):
        return len(self.told)

    def snapshot(self):
        return None

    def after(self, _place):
        return ()

    def delivered(self):
        return None


class OneJob(Past):
    """A service that has one live job, which was told nothing before; counts how often it is read."""

    def __init__(self, name="job"):
        super().__init__()
        self.job = LiveJob(name, 0.0, self)
        self.read = 0

    def tell(self, events):
        self.told += events
        take_together([self.job], lambda: [[Kept(events, Place(0, len(self.told)))]], 0.0)

    def cut(self, _job_id, now, edges):
        self.read += 1
        return self.job.cut(now, edges)

    def stands(self, _job_id, serial):
        return self.job.stands(serial)

    def spans(self, _job_id, now, edges):
        self.read += 1
        return self.job.spans(now, edges)


class SomeJobs:
    """A service of several jobs, each as `OneJob`, whose views are in a roster; time stands still."""

    def __init__(self, names: Sequence[str] = (), on_state: Callable[[str], None] = lambda _: None) -> None:
        self.now = EPOCH
        self.roster = Roster(on_state)
        self.jobs: dict[str, OneJob] = {}
        for name in names:
            self._job(name)

    def clock(self) -> float:
        return self.now

    @property
    def read(self) -> int:
        """How often any job was read."""
        return sum(one.read for one in self.jobs.values())

    def tell(self, name: str, events: Sequence[AnyEvent]) -> None:
        self._job(name).tell([replace(event, job_id=name) for event in events])

    def renew(self) -> None:
        """Make every view new."""
        self.roster.renew(self.now, float("inf"))

    def _job(self, name: str) -> OneJob:
        if name not in self.jobs:
            self.jobs[name] = OneJob(name)
            self.roster.add(self.jobs[name].job, is_old=False)
        return self.jobs[name]

    def cut(self, job_id, now, edges):
        return self.jobs[job_id].cut(job_id, now, edges)

    def stands(self, job_id, serial):
        return self.jobs[job_id].stands(job_id, serial)

    def spans(self, job_id, now, edges):
        return self.jobs[job_id].spans(job_id, now, edges)
