"""Jobs that tell a story: events of real shape, written by one launcher and two ranks."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from processes import PATIENCE_S, serving

from ett_core.events import (
    AnyEvent,
    AttemptEnd,
    AttemptStart,
    Cache,
    Checkpoint,
    CheckpointDurable,
    Compile,
    CompileInput,
    Decision,
    Evidence,
    Failure,
    FirstBatch,
    JobEnd,
    PhaseBegin,
    PhaseEnd,
    Progress,
    StepSeconds,
    encode,
)
from ett_core.step_times import bucket_of

get, send = partial(httpx.get, timeout=PATIENCE_S), partial(httpx.post, timeout=PATIENCE_S)
"""What httpx waits for by itself is no promise: machines are slow and have much to do."""
START_PHASES = {
    "device_init": 2.0,
    "process_group": 3.0,
    "model_init": 6.0,
    "sharding_plan": 4.0,
    "data_warmup": 3.0,
    "compile": 14.0,
}


class Story:
    """Events of one job, each stamped `at` seconds after `begin`."""

    def __init__(self, job_id: str, begin: float, **labels: str) -> None:
        self.job_id, self.begin, self.labels = job_id, begin, labels
        self.step = 0
        self.versions = {"torch": "2.13.0"}
        self._seqs: dict[str, Iterator[int]] = {}
        self._new: list[AnyEvent] = []

    def take(self) -> dict[str, bytes]:
        """The lines told since the last call, by writer, as one request each."""
        new, self._new = self._new, []
        writers = dict.fromkeys(event.writer for event in new)
        return {w: b"".join(encode(e) + b"\n" for e in new if e.writer == w) for w in writers}

    def tell(
        self, kind: Callable[..., AnyEvent], at: float, attempt: int, rank: int = 0, **fields: Any
    ) -> None:
        """One event of a rank (-1: the launcher)."""
        writer = "launcher" if rank < 0 else f"a{attempt}r{rank}"
        writer = f"{writer}-{self.job_id}"
        seq = next(self._seqs.setdefault(writer, itertools.count()))
        self._new.append(
            kind(
                job_id=self.job_id,
                writer=writer,
                seq=seq,
                attempt=attempt,
                rank=rank,
                node="node-a",
                time=self.begin + at,
                **fields,
            )
        )

    def start(self, at: float, attempt: int, resumed_step: int = 0, speed: float = 1.0) -> float:
        """An attempt up to its first batch; returns the second at which its loop begins."""
        common = {"world_size": 2, "accelerators": 2, "accelerator_type": "CPU", "labels": self.labels}
        if attempt == 0:
            common["allocated_at"] = self.begin
        self.tell(AttemptStart, at, attempt, -1, **common, process_started_at=self.begin + at)
        now = at + 4.0 * speed
        for rank in (0, 1):
            self.tell(
                AttemptStart,
                now,
                attempt,
                rank,
                **common,
                process_started_at=self.begin + at + 0.5,
                versions=self.versions,
            )
        phases = {**START_PHASES, **({"checkpoint_load": 5.0} if attempt else {})}
        for phase, seconds in phases.items():
            for rank in (0, 1):
                self.tell(PhaseBegin, now, attempt, rank, phase=phase)
                self.tell(PhaseEnd, now + seconds * speed, attempt, rank, phase=phase)
            now += seconds * speed
        for rank in (0, 1):
            self.tell(FirstBatch, now + 0.3 * rank, attempt, rank, step=resumed_step)
        self.step = resumed_step
        return now + 0.3

    def train(self, begin: float, end: float, attempt: int, every: float = 10.0, save: int = 6) -> float:
        """A loop that reports every few seconds and saves after every `save` reports."""
        now = begin
        for report in itertools.count(1):
            if now + every > end:
                return now
            now += every
            self._report(now, attempt, every)
            if report % save == 0:
                now = self.save(now, attempt)
        raise AssertionError

    def go_on(self, attempt: int) -> None:
        """A report of the loop that was made this moment, of the latest second."""
        self._report(time.time() - self.begin, attempt, 1.0)

    def _report(self, at: float, attempt: int, within_s: float) -> None:
        """Fifty steps, which with their waits for data took so long."""
        self.step += 50
        wait_s = 0.08 * within_s
        each_s = (within_s - wait_s) / 50
        took = StepSeconds(count=50, sum=50 * each_s, max=each_s, buckets={bucket_of(each_s): 50})
        self.tell(
            Progress,
            at,
            attempt,
            step=self.step,
            steps=50,
            samples=51200,
            data_wait_s=wait_s,
            step_seconds=took,
        )

    def save(self, at: float, attempt: int) -> float:
        """A checkpoint that blocks for 1.5 s and is durable 4 s after it began."""
        self.tell(PhaseBegin, at, attempt, phase="checkpoint", step=self.step)
        self.tell(PhaseEnd, at + 1.5, attempt, phase="checkpoint", step=self.step)
        self.tell(
            Checkpoint, at + 1.5, attempt, step=self.step, mode="async", blocking_s=1.5, bytes=5 * 2**20
        )
        self.tell(CheckpointDurable, at + 4.0, attempt, step=self.step, mode="async", duration_s=4.0)
        return at + 1.5

    def compiled(self, at: float, attempt: int, hits: int, misses: int) -> None:
        """What compiling took and found in the caches."""
        stages = {"dynamo": 1.2, "inductor": 3.4, "native": 8.0 if misses else 0.4}
        self.tell(Compile, at, attempt, graph="0/0", stage_seconds=stages)
        self.tell(Cache, at, attempt, cache="fx_graph", hits=hits, misses=misses)
        self.tell(Cache, at, attempt, cache="aot_autograd", hits=hits, misses=misses, bypasses=1)

    def fail(self, at: float, attempt: int, text: str = "Killed process 4711 (python)") -> None:
        """Rank 1 dies by SIGKILL; the launcher tells of it."""
        self.tell(Evidence, at, attempt, -1, source="kernel", text=text)
        self.tell(Failure, at, attempt, -1, signal=9, of_rank=1, message="rank 1 was killed by signal 9")
        self.tell(AttemptEnd, at + 2.0, attempt, -1, status="failed", exit_code=-9)

    def succeed(self, at: float, attempt: int) -> None:
        """The attempt and the job end well."""
        for rank in (0, 1):
            self.tell(AttemptEnd, at, attempt, rank, status="succeeded", exit_code=0)
        self.tell(AttemptEnd, at + 1.0, attempt, -1, status="succeeded", exit_code=0)
        self.tell(JobEnd, at + 1.0, attempt, -1, status="succeeded")


def recovered(job_id: str, begin: float, until: float, **labels: str) -> Story:
    """A job that trained, lost a rank after 400 s, recovered and trains on."""
    story = Story(job_id, begin, **labels)
    loop = story.start(12.0, 0)
    story.compiled(loop, 0, hits=0, misses=3)
    story.train(loop, 400.0, 0)
    durable = story.step // 300 * 300
    story.fail(400.0, 0)
    loop = story.start(410.0, 1, resumed_step=durable, speed=0.6)
    story.compiled(loop, 1, hits=3, misses=0)
    story.train(loop, until, 1)
    return story


def deciding(job_id: str, begin: float, until: float, hostile: str = "") -> Story:
    """The same job with a pipeline that tells what it decided, and with sizes that vary."""
    story = recovered(job_id, begin, until)
    for rank in (0, 1):
        for nth, size in enumerate((1024, 1000, 512)):
            story.tell(
                Compile,
                450.0 + nth,
                1,
                rank,
                graph=f"0/{nth}",
                code=f"forward{hostile} (model.py:41)",
                recompile_reason=f"0/0: tensor 'x' size mismatch at index 0. expected 1024, actual {size}"
                if nth
                else None,
                inputs=(CompileInput("L['x']", (size, 13), "torch.float32 cpu"),),
                stage_seconds={"dynamo": 0.4, "inductor": 5.1},
            )
        why = f"a save blocks 1.5 s and the job fails every 6.7 h{hostile}"
        story.tell(
            Decision, 455.0 + rank, 1, rank, what="checkpoint interval", why=why, values={"interval_s": 93.0}
        )
    story.tell(
        Decision, 405.0, 0, -1, what="restart", why="the command exited with status 1; restart 1 of 3 in 5 s"
    )
    return story


@contextmanager
def exporting(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A real exporter with a fresh store."""
    with serving("exporter", "--database", str(folder / "ett.sqlite")) as served:
        yield served


def post(url: str, story: Story) -> None:
    """Send what a story has told since the last time, as the shipper does; lists of jobs tell it from now on.

    They are of views up to a second old, older on a busy machine; to ask for a job renews its view.
    """
    for lines in story.take().values():
        answer = send(f"{url}/api/v1/segments", content=lines, headers={"X-Ett-Sent-At": str(time.time())})
        assert answer.status_code == 200, answer.text
        assert answer.json()["rejected"] == []
    assert get(f"{url}/api/v1/jobs/{quote(story.job_id)}").status_code == 200
