"""A process of its own for each test of an adapter, inside the process of the tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from ett_core.accounting import JobAccount, JobFold
from ett_core.events import AnyEvent, decode
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.adapters.process import Process
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import identity_from_env
from ett_trainer_hooks.journal import Journal


@dataclass
class Played:
    """A training process, played by this one: real recorders and journals, an end when told."""

    process: Process
    read: Callable[[], list[AnyEvent]]

    @property
    def events(self) -> list[AnyEvent]:
        return self.read()

    def of(self, kind: str) -> list[AnyEvent]:
        return [event for event in self.events if event.kind == kind]

    def phases(self) -> list[str]:
        return [event.phase for event in self.of("phase_begin")]

    def account(self) -> JobAccount:
        """The account of the job, whose parts are checked to add up."""
        return accounted(self.events)


def accounted(events: list[AnyEvent]) -> JobAccount:
    fold = JobFold(events[0].job_id)
    fold.add(events)
    account = fold.account(events[-1].time)
    assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=1e-6)
    return account


@pytest.fixture
def played(tmp_path) -> Iterator[Callable[..., Played]]:
    """Plays the next attempt of the job; what an attempt before it said is read along."""
    journals: list[Journal] = []

    def play(**variables: str) -> Played:
        environ = {"ETT_JOB_ID": "job", "ETT_ATTEMPT": str(len(journals)), **variables}

        def make(around) -> Recorder:
            identity = msgspec.structs.replace(identity_from_env(around), process_started_at=None)
            clock = Clock()
            path = tmp_path / "journal" / f"{identity.writer}-1.jsonl"
            journal = Journal(path, identity, clock=clock, guard=Guard())
            journals.append(journal)
            recorder = Recorder(identity=identity, journal=journal, clock=clock)
            recorder.start()
            return recorder

        def read() -> list[AnyEvent]:
            for journal in journals:
                journal.flush(10.0)
            lines = [line for journal in journals for line in journal.path.read_bytes().splitlines()]
            return sorted(map(decode, lines), key=lambda event: (event.time, event.writer, event.seq))

        (tmp_path / "journal").mkdir(exist_ok=True)
        return Played(Process(make, environ), read)

    yield play
    for journal in journals:
        journal.close()


@dataclass
class Stopwatch:
    """Seconds that a program measured itself, by name."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        began_s = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began_s


@dataclass
class Loop:
    """What a program measured of its own loop, from its first batch to its end."""

    stopwatch: Stopwatch
    began: dict[str, float] = field(default_factory=dict)
    began_s: float = 0.0
    lasted_s: float = 0.0

    def first_batch(self) -> None:
        if not self.began_s:
            self.began = dict(self.stopwatch.seconds)
            self.began_s = time.monotonic()

    def end(self) -> None:
        self.lasted_s = time.monotonic() - self.began_s

    def agrees(self, **parts: float) -> None:
        """Each part holds what was measured of it, and no more than that and what nobody measured."""
        seen = {name: self.stopwatch.seconds[name] - self.began.get(name, 0.0) for name in parts}
        rest_s = self.lasted_s - sum(seen.values())
        wrong = {
            name: (parts[name], seen[name], rest_s)
            for name in parts
            if not seen[name] * 0.98 - 0.002 <= parts[name] <= seen[name] + rest_s + 0.01
        }
        assert not wrong, "the part, what was measured of it, what nobody measured"


@pytest.fixture
def loop(stopwatch) -> Loop:
    return Loop(stopwatch)


@pytest.fixture
def stopwatch() -> Stopwatch:
    return Stopwatch()


@pytest.fixture
def spend():
    """Spends seconds of work."""

    def work(seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            pass

    return work


@pytest.fixture
def saves(tmp_path) -> Path:
    return tmp_path / "saves"
