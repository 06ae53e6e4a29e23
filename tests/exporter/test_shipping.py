"""The shipper of a job and a real exporter that is down for an hour."""

from __future__ import annotations

import signal
import threading
import tracemalloc

from ett_core.events import AttemptEnd, AttemptStart, FirstBatch, Progress
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.journal.parts import Sizes
from ett_trainer_hooks.journal.segments import acked_path, journals_in
from ett_trainer_hooks.shipping.shipper import Shipper
from ett_trainer_hooks.shipping.transport import poster

HOUR_S = 3600.0


class Rank:
    """A rank that trains, and writes a journal in parts."""

    def __init__(self, directory):
        self.steps = 0
        self._clock = Clock()
        identity = Identity(job_id="job", writer="w", node="n0")
        sizes = Sizes(part_bytes=20_000, max_bytes=10**8)
        self._journal = Journal(directory / "w-1.jsonl", identity, clock=self._clock, sizes=sizes)
        self._journal.put(AttemptStart, self._clock.now(), world_size=1)
        self._journal.put(FirstBatch, self._clock.now())

    def train(self, steps):
        for _ in range(steps):
            self.steps += 1
            self._journal.put(Progress, self._clock.now(), step=self.steps, steps=1, samples=32)
        assert self._journal.flush(30.0)

    def end(self):
        self._journal.put(AttemptEnd, self._clock.now(), status="succeeded")
        assert self._journal.close()


def an_hour_of(rank, shipper):
    """Train and ship for an hour of the shipper's clock; its tries, and the memory that it took."""
    now_s, tries, before = 0.0, 0, 0
    tracemalloc.start()
    try:
        while now_s < HOUR_S:
            rank.train(10)
            now_s += shipper.ship()
            tries += 1
            if tries == 20:
                before, _ = tracemalloc.get_traced_memory()
        return tries, tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_an_exporter_that_is_down_for_an_hour_costs_disk_and_nothing_else(exporters, tmp_path):
    """Killed and started again on its database: nothing is lost, nothing is counted twice."""
    directory, database = tmp_path / "journal", str(tmp_path / "ett.sqlite")
    running = [exporters("--database", database)]
    warnings = []

    def post(lines, sent_at):
        return poster(running[-1].url)(lines, sent_at)

    shipper = Shipper(directory, post, "http://exporter", guard=Guard(warnings.append), chance=lambda: 0.5)
    rank = Rank(directory)
    rank.train(300)
    shipper.ship()
    assert running[0].job("job")["samples"] == 300 * 32
    running[0].process.send_signal(signal.SIGKILL)
    running[0].process.wait(60)

    tries, memory = an_hour_of(rank, shipper)
    assert 100 < tries < 250
    assert memory < 100_000
    assert shipper.unsent_bytes() > 1000 * 100
    assert len(warnings) == 1

    rank.end()
    running.append(exporters("--database", database))
    stop = threading.Event()
    stop.set()
    assert shipper.run(stop, drain_s=30.0)
    job = running[1].job("job")
    assert (job["samples"], job["step"]) == (rank.steps * 32, rank.steps)
    assert shipper.tally.known == shipper.tally.rejected == 0

    for path in journals_in(directory):
        acked_path(path).unlink()
    lines = shipper.tally.lines
    assert shipper.run(stop, drain_s=30.0)
    assert shipper.tally.known == shipper.tally.lines - lines == lines
    assert running[1].job("job")["samples"] == rank.steps * 32
