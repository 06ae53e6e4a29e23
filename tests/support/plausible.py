"""Histories that a real job could write, drawn from a seeded source."""

from __future__ import annotations

import random

from ett_core import events as ev
from ett_core.events import AnyEvent

EPOCH = 1_764_000_000.0
INIT_PHASES = ("device_init", "process_group", "model_init", "sharding_plan", "data_warmup", "mine")
LOOP_PHASES = ("checkpoint", "checkpoint", "evaluation", "compile", "profiling")


class History:
    """Writes a plausible history of a job down, one attempt after the other."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.events: list[AnyEvent] = []
        self.sequences: dict[str, int] = {}
        self.attempt = 0
        self.start = 0
        self.starts = 0
        self.step = 0
        self.durable = [0]
        self.speaks_of_steps = source.choice(("start", "load", "batch", "sometimes", "never"))
        self.saves = source.random() < 0.75
        self.times_steps = source.random() < 0.6

    def chance(self, share: float) -> bool:
        return self.source.random() < share

    def after(self, moment: float, most: float) -> float:
        """A moment on a grid of half seconds, at most so much later."""
        return moment + self.source.randint(0, int(most * 2)) / 2

    def say(self, kind: type[AnyEvent], rank: int, at: float, **fields: object) -> None:
        writer = f"w{self.start}:{rank}"
        seq = self.sequences[writer] = self.sequences.get(writer, -1) + 1
        self.events.append(
            kind(
                job_id="job",
                writer=writer,
                seq=seq,
                attempt=self.attempt,
                rank=rank,
                time=EPOCH + at,
                **fields,
            )
        )

    def job(self) -> tuple[list[AnyEvent], float]:
        at, attempts = 0.0, self.source.choice((1, 1, 2, 2, 3, 4))
        for self.start in range(attempts):
            at = self.one_attempt(at, is_last=self.start == attempts - 1)
            self.attempt += self.source.choice((1, 1, 1, 0, 1000))
            at = max(at - self.source.choice((0, 0, 0, 0, 3, 15)), 0.0)
            at = self.after(at, self.source.choice((0, 10, 40, 700)))
        if self.chance(0.25):
            status = self.source.choice(("succeeded", "succeeded", "failed", "cancelled"))
            self.say(ev.JobEnd, -1, at, status=status)
        if self.chance(0.15):
            self.skew()
        if self.chance(0.2):
            kept = [e for e in self.events if self.chance(0.93)]
            self.events = kept or self.events
        last = max(e.time for e in self.events)
        return self.events, last + self.source.choice((0, 0, 3, 50, 300, 1000, 30_000))

    def skew(self) -> None:
        """One writer's clock is off, and the receiver says so."""
        writer = self.source.choice(sorted(self.sequences))
        offset = self.source.choice((1.5, 3600.0, -40.0, 5.5))
        for index, event in enumerate(self.events):
            if event.writer == writer:
                self.events[index] = moved(event, offset)
        clock = {"job_id": "job", "writer": "receiver", "attempt": 0, "rank": -1, "of_writer": writer}
        if self.chance(0.3):
            self.events.append(ev.Clock(seq=0, time=EPOCH + 1, offset_s=77.0, **clock))
        self.events.append(ev.Clock(seq=1, time=EPOCH + 2, offset_s=offset, **clock))

    def one_attempt(self, at: float, *, is_last: bool) -> float:
        """Writes one attempt down that begins at `at` and says when it was over."""
        ranks = range(self.source.choice((1, 1, 2, 3)))
        resumed = self.resume()
        allocated = None
        if self.chance(0.4):
            allocated = self.source.choice((at, max(at - 5, 0.0), 0.0))
        begin = self.after(at, 6)
        if self.chance(0.35):
            self.say(ev.AttemptStart, -1, begin, **self.starting(allocated, begin))
        ready = {rank: self.initialise(rank, begin, allocated, resumed) for rank in ranks}
        latest = max(ready.values())
        if self.chance(0.12):
            return self.over(ranks, self.after(latest, 80), is_last=is_last)
        loop = latest
        for rank in ranks:
            loop = max(loop, self.first_step(rank, ready[rank], resumed))
        return self.over(ranks, self.train(ranks, loop), is_last=is_last)

    def resume(self) -> int:
        """The step that the next attempt continues from, mostly a durable one."""
        last = self.step
        self.step = self.source.choice((max(self.durable), max(self.durable), 0, last, max(last - 3, 0)))
        return self.step

    def says_step(self, where: str) -> bool:
        if self.speaks_of_steps == "sometimes":
            return self.chance(0.3)
        return self.speaks_of_steps == where

    def starting(self, allocated: float | None, at: float) -> dict:
        fields = {}
        if allocated is not None:
            fields["allocated_at"] = EPOCH + allocated
        if self.chance(0.3):
            fields["process_started_at"] = EPOCH + max(at - self.source.randint(0, 4), 0.5)
        return fields

    def initialise(self, rank: int, at: float, allocated: float | None, resumed: int) -> float:
        begin = at = self.after(at, 3)
        if self.chance(0.95):
            step = {"resumed_step": resumed} if self.says_step("start") else {}
            self.say(ev.AttemptStart, rank, at, **self.starting(allocated, at), **step)
        if self.chance(0.1):
            self.say(ev.PhaseBegin, rank, at, phase="whole_program")
        for _ in range(self.source.randint(0, 3)):
            at = self.phase(rank, self.after(at, 2), self.source.choice(INIT_PHASES), 8)
        if self.chance(0.3):
            self.phase(rank, max(at - 6, begin), self.source.choice(INIT_PHASES), 12, track="side")
        if self.chance(0.2):
            self.phase(rank, max(at - 3, begin), "compile", 20, track="compiler")
        if self.chance(0.4) or self.says_step("load"):
            load_at, at = at, self.after(at, 5)
            said = {"resumed_step": resumed} if self.says_step("load") else {}
            self.say(ev.PhaseBegin, rank, load_at, phase="checkpoint_load")
            self.say(ev.PhaseEnd, rank, at, phase="checkpoint_load", **said)
        return at

    def phase(self, rank: int, at: float, name: str, most: float, track: str = "main") -> float:
        self.say(ev.PhaseBegin, rank, at, phase=name, track=track)
        end = self.after(at, most)
        if most > 0.1 and self.chance(0.15):
            at = self.after(at, most / 2)
            end = max(end, self.phase(rank, at, self.source.choice(INIT_PHASES), most / 2, track))
        if self.chance(0.95):
            self.say(ev.PhaseEnd, rank, end, phase=name, track=track)
        return end

    def first_step(self, rank: int, at: float, resumed: int) -> float:
        at = self.after(at, 2)
        if self.chance(0.95):
            self.say(ev.FirstBatch, rank, at, **({"step": resumed} if self.says_step("batch") else {}))
        for _ in range(self.source.choice((0, 0, 0, 1, 2))):
            at = self.phase(rank, self.after(at, 1), "compile", 12)
        return at

    def train(self, ranks: range, at: float) -> float:
        done = dict.fromkeys(ranks, self.step)
        for _ in range(self.source.randint(0, 6)):
            at = self.one_report(ranks, at, done)
            if self.chance(0.4):
                at = self.loop_phase(ranks, at)
            if self.chance(0.05):
                self.say(ev.Failure, self.source.choice(ranks), at + 0.5)
        return at

    def one_report(self, ranks: range, at: float, done: dict[int, int]) -> float:
        length = self.source.choice((1, 3, 10, 20, 50, 100))
        steps = self.source.choice((0, 1, 1, 3, 5, 10))
        at = self.after(at, length)
        self.step += steps
        for rank in ranks:
            new = self.step - done[rank]
            if self.chance(0.97 if rank == 0 else 0.3):
                waited = self.source.choice((0.0, 0.0, 0.5, 5.0))
                timed = {"step_seconds": self.timed(length, new)} if self.times_steps else {}
                moment = at if rank == 0 else self.after(at, 1)
                self.say(ev.Progress, rank, moment, step=self.step, steps=new, data_wait_s=waited, **timed)
                done[rank] = self.step
        return at

    def timed(self, length: float, steps: int) -> ev.StepSeconds:
        longest = length * self.source.choice((0.1, 0.5, 0.9, 1.0))
        return ev.StepSeconds(count=steps, sum=float(max(length, longest)), max=longest)

    def loop_phase(self, ranks: range, at: float) -> float:
        name = self.source.choice(LOOP_PHASES)
        if name == "checkpoint" and not self.saves:
            return at
        self.phase(ranks[-1], at, "upload", 30, track="saver")
        end = self.phase(0, at, name, 8)
        if name == "checkpoint" and self.chance(0.8):
            rank = self.source.choice(ranks)
            later = self.after(end, self.source.choice((0, 4, 60)))
            self.say(ev.CheckpointDurable, rank, later, step=self.step)
            self.durable.append(self.step)
        return end

    def over(self, ranks: range, at: float, *, is_last: bool) -> float:
        at = self.after(at, self.source.choice((0, 2, 10, 90)))
        how = self.source.choice(
            ("succeeded", "failure", "failure", "end", "silence", "heartbeat", "decided")
        )
        if how == "succeeded" and not is_last and self.chance(0.5):
            how = "failure"
        if how == "failure":
            self.say(ev.Failure, self.source.choice((*ranks, -1)), at)
            if self.chance(0.3):
                survivor = self.source.choice(ranks)
                self.say(ev.Progress, survivor, self.after(at, 4), step=self.step + 1, steps=1)
        elif how == "heartbeat":
            self.say(ev.Heartbeat, self.source.choice((*ranks, -1)), at)
        if how == "silence" or self.chance(0.2):
            return at
        for rank in (*ranks, -1):
            if self.chance(0.7):
                self.say(ev.AttemptEnd, rank, self.after(at, 2), status=self.status(how))
        return self.after(at, 4)

    def status(self, how: str) -> str:
        if how == "decided":
            return self.source.choice(("cancelled", "cancelled", "timed_out"))
        if how == "succeeded":
            return "succeeded"
        return self.source.choice(("failed", "failed", "preempted"))


def moved(event: AnyEvent, offset: float) -> AnyEvent:
    """The event as a clock that is ahead would have told it."""
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    fields["time"] += offset
    if fields.get("process_started_at") is not None:
        fields["process_started_at"] += offset
    return type(event)(**fields)


def plausible(source: random.Random) -> tuple[list[AnyEvent], float]:
    return History(source).job()
