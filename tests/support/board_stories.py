"""Jobs in known seconds for the boards: two that ended, worked by hand, and five that run, one in each state.

Both ended jobs are of cluster `c1`, the others of `live`; each is told in stages, so that counters grow
while they are scraped. Worked figures stand beside the tests that ask for them.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ett_core import events as ev

SLURM, KUBERNETES = "slurm-c1-4711", "k8s-train-dlrm"
BESIDE = 34
"""The minute of the job that trains in which a save is on its way: its step takes 57 s instead of 54."""
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus."


class Story:
    """Events of one job; each is told by a rank or (rank -1) its launcher, seconds after the beginning."""

    def __init__(self, job_id: str, begin: float, node: str = "n1", **labels: str) -> None:
        self.job_id, self.begin, self.node, self.labels = job_id, begin, node, labels
        self.accelerators = 1
        self._seqs: dict[str, Iterator[int]] = defaultdict(itertools.count)
        self._new: list[ev.AnyEvent] = []

    def tell(self, at: float, kind: type[ev.Event], attempt: int = 0, rank: int = 0, **fields: Any) -> None:
        writer = f"{self.job_id}-a{attempt}r{rank}"
        who = {"job_id": self.job_id, "writer": writer, "seq": next(self._seqs[writer]), "attempt": attempt}
        self._new.append(kind(**who, rank=rank, node=self.node, time=self.begin + at, **fields))

    def start(self, at: float, attempt: int = 0, rank: int = 0) -> None:
        self.tell(
            at,
            ev.AttemptStart,
            attempt,
            rank,
            world_size=1,
            accelerators=self.accelerators,
            accelerator_type="H200",
            labels=self.labels,
        )

    def phase(self, name: str, begin: float, end: float, attempt: int = 0) -> None:
        self.tell(begin, ev.PhaseBegin, attempt, phase=name)
        self.tell(end, ev.PhaseEnd, attempt, phase=name)

    def report(self, at: float, step: int, attempt: int = 0, wait_s: float = 6.0) -> None:
        """One minute of training, some of which waited for data: one step."""
        step_s = 60.0 - wait_s
        seconds = ev.StepSeconds(count=1, sum=step_s, max=step_s)
        self.tell(
            at,
            ev.Progress,
            attempt,
            step=step,
            steps=1,
            samples=600,
            data_wait_s=wait_s,
            step_seconds=seconds,
        )

    def save(self, at: float, took_s: float, step: int, attempt: int = 0) -> None:
        self.phase("checkpoint", at, at + took_s, attempt)
        self.tell(at + took_s, ev.Checkpoint, attempt, step=step, mode="async", blocking_s=took_s)

    def compiled(self, at: float, hits: int, misses: int, backend_s: float, attempt: int = 0) -> None:
        self.tell(at, ev.Cache, attempt, cache="fx_graph", hits=hits, misses=misses, saved_s=2.0 * hits)
        self.tell(at, ev.Compile, attempt, stage_seconds={"backend": backend_s}, remote_requests=hits)

    def take(self) -> bytes:
        """The lines that were told since this was last called."""
        new, self._new = self._new, []
        return b"".join(ev.encode(event) + b"\n" for event in new)


class Ended:
    """The two jobs of cluster c1: `stages` are told one after the other, with scrapes between them."""

    def __init__(self, now: float) -> None:
        who = {"job_name": "dlrm", "model": "dlrm-26", "cluster": "c1"}
        self.slurm = Story(SLURM, now - 2400, team="ads", scheduler="slurm", **who)
        self.kubernetes = Story(KUBERNETES, now - 2000, team="search", scheduler="kubernetes", **who)
        self.slurm.accelerators, self.kubernetes.accelerators = 4, 2

    def stages(self) -> Iterator[bytes]:
        self.slurm.start(0, rank=-1)
        self.slurm.tell(2399, ev.Heartbeat, rank=-1)  # silent for so long, it would count as lost
        yield self.slurm.take()
        self._first_attempt(self.slurm)
        yield self.slurm.take()
        self._fails_and_recovers(self.slurm)
        self._short(self.kubernetes)
        yield self.slurm.take() + self.kubernetes.take()

    @staticmethod
    def _first_attempt(job: Story) -> None:
        job.start(0)
        job.phase("model_init", 10, 30)
        job.phase("compile", 30, 60)
        job.compiled(60, hits=2, misses=6, backend_s=12.0)
        job.tell(60, ev.FirstBatch, step=0)
        job.report(120, 1)
        job.report(180, 2)
        job.save(180, 2.0, 2)
        job.tell(190, ev.CheckpointDurable, step=2, bytes=4000)
        job.report(242, 3)

    @staticmethod
    def _fails_and_recovers(job: Story) -> None:
        job.report(302, 4)
        job.save(302, 4.0, 4)
        job.tell(310, ev.CheckpointFailed, step=4, message="no space left on device")
        job.report(366, 5)
        job.tell(399, ev.Evidence, rank=-1, source="kernel", text=XID)
        job.tell(400, ev.Failure, rank=-1, of_rank=0, signal=6)
        job.tell(410, ev.AttemptEnd, rank=-1, status="failed")
        job.start(430, 1, rank=-1)
        job.start(430, 1)
        job.phase("model_init", 440, 455, 1)
        job.phase("checkpoint_load", 455, 460, 1)
        job.compiled(460, hits=8, misses=0, backend_s=2.0, attempt=1)
        job.tell(460, ev.FirstBatch, 1, step=2)
        job.report(520, 3, 1)
        job.save(520, 3.0, 3, 1)
        job.tell(530, ev.CheckpointDurable, 1, step=3, bytes=4500)
        job.report(583, 4, 1)
        job.save(583, 3.0, 4, 1)
        job.tell(593, ev.CheckpointDurable, 1, step=4, bytes=5000)
        job.report(646, 5, 1)
        job.tell(650, ev.AttemptEnd, 1, status="succeeded")
        job.tell(650, ev.JobEnd, 1, -1, status="succeeded")

    @staticmethod
    def _short(job: Story) -> None:
        job.start(0, rank=-1)
        job.start(0)
        job.compiled(20, hits=9, misses=1, backend_s=3.0)
        job.tell(20, ev.FirstBatch, step=0)
        job.report(80, 1)
        job.report(140, 2)
        job.save(140, 1.0, 2)
        job.tell(145, ev.CheckpointDurable, step=2, bytes=1000)
        job.tell(150, ev.AttemptEnd, status="succeeded")
        job.tell(150, ev.JobEnd, 0, -1, status="succeeded")


def running(now: float) -> Iterator[bytes]:
    """Jobs that train, stall, recover in a crash loop, are unobserved, and are lost at `now`, in stages."""
    who = {"team": "ads", "cluster": "live", "model": "gpt"}
    names = ("live-training", "live-stalled", "live-recovering", "live-unobserved", "live-lost")
    training, stalled, recovering, unobserved, lost = (
        Story(name, now - 3000, "n2", job_name=name, **who) for name in names
    )
    unobserved.start(0, rank=-1)
    unobserved.tell(2999, ev.Heartbeat, rank=-1)
    yield unobserved.take()
    for job in (training, stalled, lost):
        job.start(0)
        job.tell(20, ev.FirstBatch, step=0)
    for minute in range(1, 50):
        training.report(20 + 60 * minute, minute, wait_s=3.0 if minute == BESIDE else 6.0)
    training.save(2000, 1.0, 33)
    training.tell(2010, ev.CheckpointDurable, step=33, bytes=100, mode="async")
    for minute in range(1, 11):
        stalled.report(20 + 60 * minute, minute)
        lost.report(20 + 60 * minute, minute)
    stalled.tell(2999, ev.Heartbeat)
    _crash_loop(recovering)
    yield b"".join(job.take() for job in (training, stalled, recovering, lost))


def _crash_loop(job: Story) -> None:
    """Twice the same GPU falls off the bus of node n1 before a step was made."""
    job.node = "n1"
    for attempt, begin in ((0, 0.0), (1, 1000.0)):
        job.start(begin, attempt, rank=-1)
        job.start(begin, attempt)
        job.tell(begin + 50, ev.PhaseBegin, attempt, phase="model_init")
        job.tell(begin + 99, ev.Evidence, attempt, -1, source="kernel", text=XID)
        job.tell(begin + 100, ev.Failure, attempt, -1, of_rank=0, signal=6)
        job.tell(begin + 110, ev.AttemptEnd, attempt, -1, status="failed")
    job.start(2900, 2, rank=-1)
    job.start(2900, 2)
    job.tell(2950, ev.PhaseBegin, 2, phase="model_init")
    job.tell(2999, ev.Heartbeat, 2)
