"""How much memory does a live job take in the exporter, and what is it made of?

Folds jobs of 8 ranks with 10 attempts, a week old, whose leader reports every 5 s (others once a
minute) and which save every 5 minutes, as segments come: by minutes, the ranks in turn. Each is viewed
every minute, as scrapes do. Prints the bytes of all objects that a job refers to, its view included, each
once, those of its lines on /metrics, and for one job those of each part of its state. With `--loaded N`,
also what the resident set of the process grows by where N such jobs are restored from a snapshot, told and
viewed for some minutes more.

    python benchmarks/exporter/memory.py --days 7 [--loaded 1000]
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

from msgspec.structs import replace

from ett_core import events as ev
from ett_core.accounting.job import DEFAULTS
from ett_core.events import AnyEvent
from ett_exporter.archive import FileArchive
from ett_exporter.live import LiveJob
from ett_exporter.places import Kept, Place, Snapshot, Stored
from ett_exporter.shown import Shown
from ett_exporter.taking import take_together
from ett_exporter.views import JobView

BEGIN = 1_764_000_000.0
MINUTE_S = 60.0
WARM_UP = 20
"""Jobs that are restored before it counts."""
MINUTES_MORE = 4
"""Minutes that restored jobs are told of before it counts."""
REPORT_S = 5.0
SAVE_S = 300.0
RANKS = 8
KEPT = (type, ModuleType, FunctionType)


class Told:
    """Writes the events of one job down, minute by minute."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.source = random.Random(job_id)  # noqa: S311 - a story, no secret
        self.seqs: dict[str, int] = {}
        self.step = 0

    def event(self, kind: type[AnyEvent], attempt: int, rank: int, at: float, **fields: object) -> AnyEvent:
        """The next event of a rank, as it comes over the wire: nothing is shared with others."""
        writer = f"{self.job_id}-{attempt}-{rank}"
        seq = self.seqs[writer] = self.seqs.get(writer, -1) + 1
        about = {"writer": writer, "seq": seq, "attempt": attempt, "rank": rank, "node": f"node-{rank}"}
        return ev.decode(ev.encode(kind(job_id=self.job_id, time=at, **about, **fields)))

    def minutes(self, attempts: int, days: float) -> Iterator[list[AnyEvent]]:
        """What arrives minute by minute."""
        length_s = days * 86_400.0 / attempts
        for attempt in range(attempts):
            begin = BEGIN + attempt * length_s
            yield self._start(attempt, begin)
            for minute in range(2, int(length_s / MINUTE_S)):
                yield self._minute(attempt, begin + minute * MINUTE_S)
            if attempt + 1 < attempts:
                yield [self.event(ev.Failure, attempt, 3, begin + length_s - 30, exception="CUDA error")]

    def _start(self, attempt: int, at: float) -> list[AnyEvent]:
        started = []
        for rank in range(RANKS):
            say = {"attempt": attempt, "rank": rank}
            started += [
                self.event(
                    ev.AttemptStart, at=at, world_size=RANKS, accelerators=RANKS, labels={"team": "t"}, **say
                ),
                self.event(ev.PhaseBegin, at=at + 2, phase="model_init", **say),
                self.event(ev.PhaseEnd, at=at + 20, phase="model_init", **say),
                self.event(ev.PhaseBegin, at=at + 20, phase="checkpoint_load", **say),
                self.event(ev.PhaseEnd, at=at + 40, phase="checkpoint_load", resumed_step=self.step, **say),
                self.event(ev.FirstBatch, at=at + 60, step=self.step, **say),
            ]
        return started

    def _minute(self, attempt: int, at: float) -> list[AnyEvent]:
        told: list[AnyEvent] = []
        every = int(MINUTE_S / REPORT_S)
        for part in range(every):
            self.step += 10
            moment = at + part * REPORT_S + self.source.random() * 0.5
            told.append(self._report(attempt, 0, moment, 10))
        if at % SAVE_S < MINUTE_S:
            told += self._save(attempt, moment + 0.2)
        for rank in range(1, RANKS):
            told.append(self._report(attempt, rank, moment + self.source.random() * 0.1, 10 * every))
        return told

    def _report(self, attempt: int, rank: int, at: float, steps: int) -> AnyEvent:
        longest = 0.45 + self.source.random() * 0.1
        timed = ev.StepSeconds(count=steps, sum=steps * 0.45, max=longest, buckets={151: steps - 1, 153: 1})
        waited = self.source.random() * 0.2
        return self.event(
            ev.Progress,
            attempt,
            rank,
            at,
            step=self.step,
            steps=steps,
            samples=64.0 * steps,
            data_wait_s=waited,
            step_seconds=timed,
        )

    def _save(self, attempt: int, at: float) -> list[AnyEvent]:
        return [
            self.event(ev.PhaseBegin, attempt, 0, at, phase="checkpoint"),
            self.event(ev.PhaseEnd, attempt, 0, at + 1, phase="checkpoint"),
            self.event(ev.Checkpoint, attempt, 0, at + 1, step=self.step, mode="async", blocking_s=1.0),
            self.event(ev.CheckpointDurable, attempt, 0, at + 3, step=self.step, mode="async", bytes=10**9),
        ]


def size_of(*roots: object, without: Iterable[object] = ()) -> int:
    """Bytes of objects and of all that they refer to, each once."""
    seen = {id(each) for each in without}
    total, left = 0, list(roots)
    while left:
        found = left.pop()
        if id(found) in seen or isinstance(found, KEPT):
            continue
        seen.add(id(found))
        total += sys.getsizeof(found)
        left += gc.get_referents(found)
        if isinstance(found, dict):
            left += found.keys()
    return total


def lines_of(view: JobView) -> int:
    """Bytes of the lines of a job on /metrics, and of what they are made of, beside those of one like it."""
    shown = Shown(10**9)
    other = replace(view, account=replace(view.account, job_id="another"))
    sizes = []
    for each in (other, view):
        shown.put(each)
        shown.chunks.refresh()
        sizes.append(size_of(shown, without=(other, view)))
    return sizes[1] - sizes[0]


def parts_of(job: LiveJob) -> dict[str, int]:
    """Bytes by part of the state of one job; what several parts share is counted for each."""
    folds = job._folds  # noqa: SLF001 - what it weighs
    found = {
        f"{name}.{part}": size_of(getattr(state, part), without=(folds._archive, DEFAULTS))  # noqa: SLF001
        for name, state in (("fold", folds.fold), ("details", folds.details))
        for kind in type(state).__mro__
        for part in getattr(kind, "__slots__", ())
    }
    found["view"] = size_of(job.known_view)
    return {name: size for name, size in sorted(found.items(), key=lambda item: -item[1]) if size > 500}


class NoPast:
    """The past of a job that is new."""

    def events(self) -> Iterable[AnyEvent]:
        """None."""
        return ()

    def count(self) -> int:
        """None."""
        return 0

    def snapshot(self) -> Snapshot | None:
        """None."""
        return None

    def is_cut(self, known: Snapshot) -> bool:
        """Nothing is deleted."""
        del known
        return False

    def after(self, place: Place) -> Iterable[Stored]:
        """None."""
        del place
        return ()

    def delivered(self) -> Place | None:
        """There are no replicas."""
        return None


class Spent:
    """Processor seconds that went into something, and how often it was done."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.times = 0

    def on(self, work: Callable[[], object], times: int) -> None:
        """Do it."""
        began_s = time.process_time()
        work()
        self.seconds += time.process_time() - began_s
        self.times += times

    @property
    def each_us(self) -> float:
        """Microseconds each time."""
        return self.seconds / self.times * 1e6


class Folded(NamedTuple):
    """A job that was told and viewed minute by minute, with what its events and its views took."""

    job: LiveJob
    events: Spent
    views: Spent
    before: Snapshot
    """As it was before the last minutes."""
    last_minutes: Sequence[Sequence[AnyEvent]]


def folded(job_id: str, attempts: int, days: float, archive: FileArchive) -> Folded:
    """Tell a job minute by minute."""
    job, events, views = LiveJob(job_id, 0.0, NoPast(), archive), Spent(), Spent()
    minutes = list(Told(job_id).minutes(attempts, days))
    for place, minute in enumerate(minutes):
        if place == len(minutes) - MINUTES_MORE:
            before = job.snapshot()
        kept = Kept(minute, Place(0, place + 1))
        events.on(partial(take_together, [job], partial(_same, kept), 0.0), len(minute))
        views.on(partial(job.view, minute[-1].time + 1), 1)
    assert before is not None  # noqa: S101 - it was told something
    return Folded(job, events, views, before, minutes[-MINUTES_MORE:])


def _same(kept: Kept) -> list[list[Kept]]:
    return [[kept]]


class OnlySnapshot(NoPast):
    """The past of a job of which nothing came after its snapshot."""

    def __init__(self, kept: Snapshot | None) -> None:
        self._kept = kept

    def snapshot(self) -> Snapshot | None:
        """It."""
        return self._kept


def loaded_kb(before: bytes, minutes: Sequence[Sequence[bytes]], jobs: int) -> float:
    """Growth of the resident set, in kB a job, of jobs from a snapshot; in a process of their own."""
    past, archive = OnlySnapshot(Snapshot("job", Place(0, 1), (), before)), FileArchive()
    held: list[LiveJob] = []
    for number in range(-WARM_UP, jobs):
        if number == 0:
            gc.collect()
            resident = resident_bytes()
        held.append(LiveJob("job-0", 0.0, past, archive))
        for place, minute in enumerate(minutes):
            told = [ev.decode(event) for event in minute]
            take_together(held[-1:], partial(_same, Kept(told, Place(1, place + 1))), 0.0)
            held[-1].view(told[-1].time + 1)
    gc.collect()
    return (resident_bytes() - resident) / jobs / 1e3


def resident_bytes() -> int:
    """What the process holds in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--attempts", type=int, default=10)
    parser.add_argument("--loaded", type=int, default=0, help="also restore so many of the last job")
    parser.add_argument("--parts", action="store_true", help="also print the parts of one job")
    chosen = parser.parse_args()
    print("| attempts | days | events | memory, kB | lines, kB | on disk, kB | an event, us | a view, us |")
    print("|---|---|---|---|---|---|---|---|")
    for number in range(chosen.jobs):
        archive = FileArchive()
        known = folded(f"job-{number}", chosen.attempts, chosen.days, archive)
        events, views = known.events, known.views
        in_memory = size_of(known.job, without=(archive, DEFAULTS))
        assert known.job.known_view is not None  # noqa: S101 - it was viewed
        lines = lines_of(known.job.known_view)
        a_job = f"{in_memory / 1e3:.1f} | {lines / 1e3:.1f} | {archive.bytes_used / 1e3:.1f}"
        times = f"{events.each_us:.1f} | {views.each_us:.0f}"
        print(f"| {chosen.attempts} | {chosen.days:g} | {events.times:,} | {a_job} | {times} |", flush=True)
    if chosen.loaded:
        minutes = [[ev.encode(event) for event in minute] for minute in known.last_minutes]
        with get_context("spawn").Pool(1) as pool:
            grown_kb = pool.apply(loaded_kb, (known.before.blob, minutes, chosen.loaded))
        print(f"{chosen.loaded} jobs from a snapshot: {grown_kb:.0f} kB a job")
    if chosen.parts:
        for name, size in parts_of(known.job).items():
            print(f"    {name:<28} {size / 1e3:9.1f} kB")


if __name__ == "__main__":
    main()
