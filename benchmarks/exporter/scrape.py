"""A real Prometheus scrapes very many live jobs while senders go on: how long do both take?

    python benchmarks/exporter/scrape.py [--jobs 10000] [--seconds 60] [--every 10]

One exporter process holds the jobs; senders post segments of 20 events at a steady rate, each for a
job of its own, first alone, then while Prometheus (Debian's, on this machine) scrapes. What a
sender waits counts from the moment at which its request was due. The rival is a Starlette handler
on the same server that keeps each line as a row and answers /metrics with the encoder of
prometheus_client, in a worker thread, over as many samples, which never change and cost nothing
else; it accounts for nothing. Every figure of scrapes is Prometheus's own.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ingest import RIVAL, Server, exporter, running

from ett_core import events as ev

SENDERS = 8
MEMORY = "/dev/shm"  # noqa: S108 - a file system in memory
"""Prometheus writes there, as if it had another disk than the exporter."""
FIRST_S = 10.0
"""In which the first scrape is made, begun at the latest by Prometheus after its interval."""
A_SEGMENT = 20
A_SECOND = 100
HEADERS = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
RIVAL_METRICS = """
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from starlette.responses import Response

class Ready:
    def __init__(self, samples):
        self.families = []
        for number in range(40):
            family = GaugeMetricFamily(f"rival_{number}", "A figure.", labels=["job_id"])
            for job in range(samples // 40):
                family.add_metric([f"job-{job:06d}"], 1e5 * number + job / 7)
            self.families.append(family)
    def collect(self):
        return self.families

registry = CollectorRegistry()
registry.register(Ready(int(sys.argv[2])))

async def metrics(request):
    text = await run_in_threadpool(generate_latest, registry)
    if "gzip" in request.headers.get("accept-encoding", ""):
        packed = await run_in_threadpool(gzip.compress, text, 1)
        return Response(packed, media_type="text/plain; version=0.0.4", headers={"Content-Encoding": "gzip"})
    return Response(text, media_type="text/plain; version=0.0.4")
"""


class Waits(NamedTuple):
    """Seconds that requests took from when they were due, in order of size."""

    seconds: Sequence[float]

    def at(self, share: float) -> float:
        """Milliseconds that this share of the requests did not exceed."""
        return 1e3 * self.seconds[min(int(share * len(self.seconds)), len(self.seconds) - 1)]


class Found(NamedTuple):
    """Waits of senders: alone, beside the first scrape, beside later ones; what Prometheus says."""

    alone: Waits
    first: Waits
    beside: Waits
    history: dict[str, list[float]]


class Jobs:
    """Live jobs of eight ranks, their leaders telling; each goes on from where it was."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._told = dict.fromkeys(range(count), 0)
        self._chance = random.Random(5)  # noqa: S311 - the same jobs each time

    def first(self, number: int) -> bytes:
        """What a job tells first: two attempts that compile, report and save, the first one failed."""
        begin = time.time() - self._chance.uniform(900, 80_000)
        labels = {"cluster": f"c{number % 5}", "team": f"t{number % 40}", "model": f"m{number % 12}"}
        start = {"world_size": 8, "accelerators": 8, "accelerator_type": "H200", "labels": labels}
        compiled = {"stage_seconds": {"backend": 9.0, "frontend": 2.5}, "native_compile_s": 3.0}
        lines = []
        for attempt, span_s in ((0, 250.0), (1, time.time() - begin - 305.0)):
            at, end = begin + 300.0 * attempt, begin + 300.0 * attempt + span_s
            told: list[tuple[type[ev.Event], float, dict[str, Any]]] = [
                (ev.AttemptStart, at, start),
                (ev.PhaseBegin, at + 1, {"phase": "model_init"}),
                (ev.PhaseEnd, at + 20, {"phase": "model_init"}),
                (ev.Compile, at + 30, compiled),
                (ev.Cache, at + 30, {"cache": "fx_graph", "hits": 3, "misses": 9}),
                (ev.FirstBatch, at + 40, {}),
                *((ev.Progress, at + (end - at) * n / 10, report(50 * n)) for n in range(2, 10)),
                (ev.Checkpoint, end - 10, {"step": 400, "mode": "sync", "blocking_s": 2.0}),
                (ev.CheckpointDurable, end - 5, {"step": 400, "bytes": 10**9}),
            ]
            if attempt == 0:
                told.append((ev.AttemptEnd, end, {"status": "failed"}))
            lines += [self._line(number, kind, moment, attempt, fields) for kind, moment, fields in told]
        return b"".join(lines)

    def next(self, number: int) -> bytes:
        """The next events of a job."""
        now, step = time.time(), 10 * self._told[number]
        moments = (now + n / 1000 for n in range(A_SEGMENT))
        return b"".join(self._line(number, ev.Progress, at, 1, report(step)) for at in moments)

    def _line(
        self, number: int, kind: type[ev.Event], at: float, attempt: int, fields: dict[str, Any]
    ) -> bytes:
        self._told[number] += 1
        job_id = f"team/job-{number:06d}"
        where = {"job_id": job_id, "writer": f"w{number:06d}", "seq": self._told[number], "rank": 0}
        return ev.encode(kind(**where, attempt=attempt, time=at, node=f"n{number % 500}", **fields)) + b"\n"


def report(step: int) -> dict[str, Any]:
    """The figures of ten steps."""
    timed = ev.StepSeconds(count=10, sum=4.7, max=0.52, buckets={180: 6, 181: 4})
    return {"step": step, "steps": 10, "samples": 640.0, "data_wait_s": 0.2, "step_seconds": timed}


def post(connection: HTTPConnection, path: str, body: bytes) -> None:
    """Send one body; it must be taken."""
    connection.request("POST", path, gzip.compress(body, 1), HEADERS)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {said[:200]!r}")


def fill(port: int, jobs: Jobs) -> None:
    """Tell of every job once."""

    def send(own: int) -> None:
        with closing(HTTPConnection("127.0.0.1", port, timeout=600)) as connection:
            for number in range(own, jobs.count, SENDERS):
                post(connection, "/api/v1/segments", jobs.first(number))

    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(send, range(SENDERS)))


def stream(port: int, jobs: Jobs, seconds: float) -> Waits:
    """Send segments at a steady rate, and how long each took from when it was due."""
    pick = random.Random(9)  # noqa: S311 - any job will do
    order = [pick.sample(range(own, jobs.count, SENDERS), jobs.count // SENDERS) for own in range(SENDERS)]
    begin = time.perf_counter()

    def send(own: int) -> list[float]:
        found = []
        with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
            for turn, number in enumerate(itertools.cycle(order[own])):
                due = begin + (turn * SENDERS + own) / A_SECOND
                if due > begin + seconds:
                    return found
                body = jobs.next(number)
                time.sleep(max(due - time.perf_counter(), 0.0))
                post(connection, "/api/v1/segments", body)
                found.append(time.perf_counter() - due)
        return found

    with ThreadPoolExecutor(SENDERS) as pool:
        return Waits(sorted(itertools.chain.from_iterable(pool.map(send, range(SENDERS)))))


@contextmanager
def prometheus(port: int, place: Path, every_s: int) -> Iterator[str]:
    """A Prometheus that scrapes the port; its URL."""
    config = (
        f"global: {{scrape_interval: {every_s}s, scrape_timeout: {every_s}s}}\n"
        f"scrape_configs: [{{job_name: ettwatch, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    )
    with prometheus_by(config, place) as url:
        yield url


@contextmanager
def prometheus_by(text: str, place: Path) -> Iterator[str]:
    """A Prometheus with a configuration, and its data in a folder; its URL."""
    program = shutil.which("prometheus")
    if program is None:
        raise SystemExit("prometheus is not installed: scripts/services")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = place / "prometheus.yml"
    config.write_text(text)
    words = [f"--config.file={config}", f"--storage.tsdb.path={place / 'tsdb'}", "--log.level=error"]
    process = subprocess.Popen([program, *words, f"--web.listen-address={address}"])
    try:
        yield f"http://{address}"
    finally:
        process.kill()
        process.wait()


def await_first_scrape(url: str) -> None:
    """Wait until Prometheus has made the series, which happens once and takes it seconds."""
    while True:
        try:
            if history(url, "scrape_duration_seconds", 0.0):
                return
        except OSError:
            pass
        time.sleep(0.2)


def history(url: str, series: str, seconds: float) -> list[float]:
    """The values of a series of the target, as Prometheus stored them."""
    query = urlencode({"query": f'{series}{{job="ettwatch"}}[{int(seconds) + 60}s]'})
    with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=60) as answer:  # noqa: S310 - loopback
        result = json.load(answer)["data"]["result"]
    return [float(value) for _, value in result[0]["values"]] if result else []


def scraped(server: Server, jobs: Jobs, seconds: float, every_s: int) -> Found:
    """Waits of senders alone and beside Prometheus, and what Prometheus says of its scrapes."""
    alone = stream(server.port, jobs, seconds / 2)
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as place,
        prometheus(server.port, Path(place), every_s) as url,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(await_first_scrape, url)
        first = stream(server.port, jobs, FIRST_S)
        waiting.result()
        beside = stream(server.port, jobs, seconds)
        names = ("scrape_duration_seconds", "scrape_samples_scraped", "up")
        return Found(alone, first, beside, {name: history(url, name, seconds) for name in names})


def row(name: str, found: Found) -> str:
    (once, *took), samples = (found.history[f"scrape_{of}"] for of in ("duration_seconds", "samples_scraped"))
    waits = " | ".join(f"{w.at(0.5):.1f}, {w.at(0.99):.0f}, {w.at(1):.0f}" for w in found[:3])
    span = f"{statistics.median(took):.2f} ({min(took):.2f} to {max(took):.2f}), the first {once:.2f}"
    return (
        f"| {name} | {max(samples, default=0):,.0f} | {len(took)}, {found.history['up'].count(0.0)} failed "
        f"| {span} | {waits} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=int, default=10, help="seconds between scrapes")
    arguments = parser.parse_args()
    print(f"{arguments.jobs:,} jobs, {A_SECOND} segments of {A_SEGMENT} events a second, {SENDERS} senders\n")
    waits = "ingest alone, ms: p50, p99, max | beside the first scrape | beside later ones"
    print(f"| what | samples | scrapes | a scrape, s, median (range) | {waits} |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        with running(exporter(str(Path(place) / "ours"))) as server:
            jobs = Jobs(arguments.jobs)
            fill(server.port, jobs)
            server.get("/metrics")
            found = scraped(server, jobs, arguments.seconds, arguments.every)
            samples = int(max(found.history["scrape_samples_scraped"], default=0))
            print(row("ett exporter", found), flush=True)
        head, start = RIVAL.split("app = Starlette(")
        routes = start.replace("routes=[", 'routes=[Route("/metrics", metrics), ')
        rival = [sys.executable, "-c", head + RIVAL_METRICS + "app = Starlette(" + routes]
        with running([*rival, str(Path(place) / "rival"), str(samples)]) as server:
            found = scraped(server, Jobs(arguments.jobs), arguments.seconds, arguments.every)
            print(row("rows, prometheus_client", found), flush=True)


if __name__ == "__main__":
    main()
