"""Fill an exporter with very many jobs, and keep them going.

Each job has one leader that reports, two attempts with a failure between them, caches that were cold
and then warm, and saves. `--live` goes on: every job reports and saves by the clock, a few fail.

    python benchmarks/app/feed.py --exporter http://127.0.0.1:9410 --jobs 10000 --live
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from ett_core import events as ev

SENDERS = 4
AT_ONCE = 100
"""Jobs in one request."""
REPORT_EVERY_S = 30.0
CAUSES = ("CUDA out of memory. Tried to allocate 2 GiB", "uncorrectable ECC error encountered", "bad sample")
HOUR_S = 3600.0


class Job:
    """One job: what it has told so far."""

    def __init__(self, number: int, now: float) -> None:
        """Begin it at some moment of the day before `now` (Unix seconds)."""
        self.chance = random.Random(number)  # noqa: S311 - the same jobs each time
        self.number, self.step, self.attempt, self.seq = number, 0, 0, 0
        self.job_id = f"bench/{number:06d}"
        self.begin = now - self.chance.uniform(0.5, 23) * HOUR_S
        self.is_over = number % 5 == 0

    def tell(self, kind: type[ev.AnyEvent], at: float, **fields: object) -> bytes:
        """One event as a line."""
        about = {"job_id": self.job_id, "writer": f"w{self.number}", "rank": 0, "attempt": self.attempt}
        self.seq += 1
        node = f"n{self.number % 500}"
        return ev.encode(kind(**about, seq=self.seq, node=node, time=at, **fields)) + b"\n"

    def past(self, now: float) -> Iterator[bytes]:
        """Everything up to now."""
        middle = self.begin + (now - self.begin) * self.chance.uniform(0.3, 0.7)
        yield from self.start(self.begin, is_warm=False)
        yield from self.train(self.begin + 200, middle)
        yield from self.fail(middle + 1)
        self.attempt = 1
        yield from self.start(middle + 60, is_warm=self.number % 7 != 0)
        yield from self.train(middle + 260, now)
        if self.is_over:
            yield self.tell(ev.AttemptEnd, now - 1, status="succeeded")
            yield self.tell(ev.JobEnd, now - 1, status="succeeded")

    def start(self, at: float, *, is_warm: bool) -> Iterator[bytes]:
        """An attempt up to its first batch, 200 s after its beginning at most."""
        labels = {
            "job_name": f"{'dlrm' if self.number % 3 else 'llm'} {self.number:06d}",
            "cluster": f"c{self.number % 5}",
            "team": f"team-{self.number % 40}",
            "model": f"m{self.number % 12}",
        }
        yield self.tell(
            ev.AttemptStart,
            at,
            world_size=8,
            accelerators=8,
            accelerator_type="H200",
            labels=labels,
            versions={"torch": "2.13.0"},
            config_hash=f"{self.number:08x}",
        )
        moment = at
        lengths = {"model_init": 30.0, "data_warmup": 20.0, "compile": 15.0 if is_warm else 120.0}
        for phase, length_s in lengths.items():
            yield self.tell(ev.PhaseBegin, moment, phase=phase)
            moment += length_s
            yield self.tell(ev.PhaseEnd, moment, phase=phase)
        hits = 95 if is_warm else 2
        for cache in ("fx_graph", "aot_autograd"):
            yield self.tell(ev.Cache, moment, cache=cache, hits=hits, misses=100 - hits, bytes=10**7)
        yield self.tell(ev.FirstBatch, moment, step=self.step)

    def train(self, begin: float, end: float) -> Iterator[bytes]:
        """A loop of twenty reports, every fifth with a save."""
        length_s = (end - begin) / 20
        for report in range(1, 21):
            yield self.report(begin + report * length_s, 100)
            if report % 5 == 0:
                yield from self.save(begin + report * length_s)

    def report(self, at: float, steps: int) -> bytes:
        """Steps done."""
        self.step += steps
        waited_s = self.chance.uniform(0, 2)
        return self.tell(
            ev.Progress, at, step=self.step, steps=steps, samples=64.0 * steps, data_wait_s=waited_s
        )

    def save(self, at: float) -> Iterator[bytes]:
        """A checkpoint that blocks for 2 s."""
        yield self.tell(ev.PhaseBegin, at, phase="checkpoint")
        yield self.tell(ev.PhaseEnd, at + 2, phase="checkpoint")
        yield self.tell(ev.Checkpoint, at + 2, step=self.step, mode="async", blocking_s=2.0, bytes=10**9)
        yield self.tell(ev.CheckpointDurable, at + 9, step=self.step, mode="async", bytes=10**9)

    def fail(self, at: float) -> Iterator[bytes]:
        """The end of an attempt by one of a few causes."""
        cause = CAUSES[self.number % len(CAUSES)]
        yield self.tell(ev.Failure, at, exception="RuntimeError", message=cause, exit_code=1)
        yield self.tell(ev.AttemptEnd, at + 5, status="failed", exit_code=1)


def send(http: httpx.Client, body: bytes) -> None:
    """Give lines to the exporter; wait where it asks to."""
    while True:
        answer = http.post("/api/v1/events", content=body)
        if answer.status_code not in (429, 503):
            answer.raise_for_status()
            return
        time.sleep(float(answer.headers.get("Retry-After", 1)))


def main() -> None:
    """Fill, and go on where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--exporter", default="http://127.0.0.1:9410")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--live", action="store_true", help="every job goes on reporting until Ctrl-C")
    parser.add_argument(
        "--made",
        type=Path,
        help="file that says when the store was filled; where it is there, nothing is sent again",
    )
    chosen = parser.parse_args()
    is_made = chosen.made is not None and chosen.made.exists()
    now = float(chosen.made.read_text()) if is_made else time.time()
    jobs = [Job(number, now) for number in range(chosen.jobs)]
    with httpx.Client(base_url=chosen.exporter, timeout=120.0, trust_env=False) as http:
        began = time.monotonic()

        def fill(begin: int) -> None:
            lines = b"".join(line for job in jobs[begin : begin + AT_ONCE] for line in job.past(now))
            if not is_made:
                send(http, lines)

        with ThreadPoolExecutor(SENDERS) as pool:
            list(pool.map(fill, range(0, len(jobs), AT_ONCE)))
        told = f"{len(jobs):,} jobs, {sum(job.seq for job in jobs):,} events, "
        told += "there already" if is_made else f"sent in {time.monotonic() - began:.0f} s"
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()
        if chosen.made and not is_made:
            chosen.made.write_text(repr(now))
        if chosen.live:
            go_on(http, [job for job in jobs if not job.is_over])


def go_on(http: httpx.Client, jobs: list[Job]) -> None:
    """Let a part of the jobs report each second, so that each reports every `REPORT_EVERY_S` seconds."""
    parts = int(REPORT_EVERY_S)
    tick = 0
    while True:
        began = time.monotonic()
        members = jobs[tick % parts :: parts]
        at = time.time()
        lines = [job.report(at, 10) for job in members]
        lines += [line for job in members if job.chance.random() < 0.05 for line in job.save(at + 0.1)]
        send(http, b"".join(lines))
        tick += 1
        time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))


if __name__ == "__main__":
    main()
