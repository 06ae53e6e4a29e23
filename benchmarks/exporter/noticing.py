"""How soon a fault of a real job is noticed: by the query API, on /metrics, and by a rival set of alerts.

    python benchmarks/exporter/noticing.py [--trials 3] [--seed 1]

Jobs of two ranks run under `ett run` and torchrun and send to one exporter; each rank also serves a counter
of its steps with prometheus_client. One Prometheus scrapes ranks and exporter every 15 s and evaluates rules
as often. Three things happen to jobs, each at a random moment: rank 1 gets SIGKILL; all ranks stand still,
their other threads going on; every process of the job, launcher included, gets SIGKILL, as where a host is
gone.

The rival are the rules that instrumented trainers usually have: a target is down, or makes no steps, `for`
five minutes; told is also when they became pending, which is when they would fire without `for`. Seconds are
counted from the signal. A run takes some 13 minutes, most of them waiting.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

from ingest import exporter, running
from scrape import prometheus_by

EVERY_S = 15
LOOK_S = 0.25
READY_S = 300.0
WITHIN_S = 660.0
"""Longer than any of the rules waits, and than an exporter waits for a job of which nobody speaks (600 s)."""
MARK = "ETT_NOTICING_JOB"
TROUBLES = ("rank killed", "hang", "host gone")
BAD = frozenset({"failed", "lost", "stalled", "recovering"})
RANKS = ("--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")
TRAINER = """
import os, signal, sys, time
from pathlib import Path
from prometheus_client import Counter, start_http_server
from ett_trainer_hooks import Recorder

def batches():
    while True:
        yield None

signal.signal(signal.SIGUSR1, lambda *_: time.sleep(1e6))
server, _ = start_http_server(0, "127.0.0.1")
steps = Counter("steps", "Steps made.")
told = Path(sys.argv[1], os.environ["RANK"])
told.with_suffix(".new").write_text(f"{os.getpid()} {server.server_port}")
told.with_suffix(".new").rename(told)
for _ in Recorder.from_env().batches(batches()):
    time.sleep(0.1)
    steps.inc()
"""
RULES = """
groups:
  - name: noticing
    rules:
      - {alert: Down, expr: 'up{job="ranks"} == 0', for: 5m}
      - {alert: NoSteps, expr: 'rate(steps_total[1m]) == 0', for: 5m}
      - {alert: Ours, expr: 'ett_job_state{state=~"failed|lost|stalled|recovering"} == 1'}
"""
STATE = re.compile(r'^ett_job_state\{job_id="([^"]+)",state="([^"]+)"\}', re.MULTILINE)

COLUMNS = {
    "api": "exporter: query API",
    "metrics": "exporter: /metrics",
    "Ours firing": f"Prometheus over the exporter, every {EVERY_S} s",
    "rival pending": f"rival rules, every {EVERY_S} s, no `for`",
    "rival firing": "rival rules, `for: 5m`",
    "api failure": "exporter: a failure with its class",
}


class Job:
    """One training job, and when whom it was in trouble for."""

    def __init__(self, name: str, trouble: str, place: Path, exporter_url: str) -> None:
        self.name, self.trouble = name, trouble
        self.noticed: dict[str, float] = {}
        """Seconds after the trouble, by who noticed it."""
        self._began_s: float | None = None
        self._place = place / name
        self._place.mkdir()
        trainer = self._place / "trainer.py"
        trainer.write_text(TRAINER)
        ett = Path(sys.executable).with_name("ett")
        launch = [str(ett), "run", "--quiet", "--job-id", name, "--journal-dir", str(self._place / "journal")]
        launch += ["--exporter", exporter_url, "--", sys.executable, "-m", "torch.distributed.run", *RANKS]
        with (self._place / "out").open("wb") as out:
            self._process = subprocess.Popen(
                [*launch, str(trainer), str(self._place)],
                stdout=out,
                stderr=out,
                env={**os.environ, MARK: name, "OMP_NUM_THREADS": "1", "TMPDIR": str(self._place)},
                start_new_session=True,
            )

    def ranks(self) -> list[tuple[int, int]]:
        """Process and port of each rank that trains."""
        files = [self._place / rank for rank in "01"]
        return [(int(pid), int(port)) for pid, port in (f.read_text().split() for f in files if f.exists())]

    def harm(self) -> None:
        """Let it happen."""
        match self.trouble:
            case "rank killed":
                os.kill(self.ranks()[1][0], signal.SIGKILL)
            case "hang":
                for pid, _ in self.ranks():
                    os.kill(pid, signal.SIGUSR1)
            case _:
                self.kill()
        self._began_s = time.monotonic()

    def kill(self) -> None:
        """End every process of it at once."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        for pid in _marked(self.name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def note(self, who: str) -> None:
        """Somebody has noticed."""
        if self._began_s is not None:
            self.noticed.setdefault(who, time.monotonic() - self._began_s)

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return "rival firing" in self.noticed and ("api failure" in self.noticed or self.trouble == "hang")


def _marked(name: str) -> list[int]:
    """The processes of a job, however they were started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{MARK}={name}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - loopback
        return answer.read().decode()


@contextmanager
def prometheus(exporter_port: int, jobs: Sequence[Job], place: Path) -> Iterator[str]:
    """A Prometheus that scrapes the exporter and all ranks; its URL."""
    targets = [
        {"targets": [f"127.0.0.1:{port}" for _, port in job.ranks()], "labels": {"job_id": job.name}}
        for job in jobs
    ]
    (place / "rules.yml").write_text(RULES)
    config = {
        "global": {"scrape_interval": f"{EVERY_S}s", "evaluation_interval": f"{EVERY_S}s"},
        "rule_files": [str(place / "rules.yml")],
        "scrape_configs": [
            {"job_name": "ettwatch", "static_configs": [{"targets": [f"127.0.0.1:{exporter_port}"]}]},
            {"job_name": "ranks", "static_configs": targets},
        ],
    }
    with prometheus_by(json.dumps(config), place) as url:
        yield url


def look(exporter_url: str, prometheus_url: str, jobs: dict[str, Job]) -> None:
    """Note whatever has been noticed by now."""
    for row in json.loads(get(f"{exporter_url}/api/v1/jobs?limit=1000"))["jobs"]:
        if row["state"] in BAD:
            jobs[row["job_id"]].note("api")
            jobs[row["job_id"]].note(f"state {row['state']}")
    for name, state in STATE.findall(get(f"{exporter_url}/metrics")):
        if state in BAD:
            jobs[name].note("metrics")
    for row in json.loads(get(f"{exporter_url}/api/v1/failures?limit=1000"))["failures"]:
        jobs[row["job_id"]].note("api failure")
        jobs[row["job_id"]].note(f"class {row['diagnosis']['failure_class']}")
    for alert in json.loads(get(f"{prometheus_url}/api/v1/alerts"))["data"]["alerts"]:
        job, is_ours = jobs[alert["labels"]["job_id"]], alert["labels"]["alertname"] == "Ours"
        job.note("Ours firing" if is_ours else f"rival {alert['state']}")
        if not is_ours and alert["state"] == "firing":
            job.note("rival pending")


def await_training(exporter_url: str, jobs: Sequence[Job]) -> None:
    """Return once all ranks of all jobs train, and the exporter says so."""
    until_s = time.monotonic() + READY_S
    while time.monotonic() < until_s:
        rows = json.loads(get(f"{exporter_url}/api/v1/jobs?limit=1000"))["jobs"]
        trains = {row["job_id"] for row in rows if row["state"] == "training"}
        if trains == {job.name for job in jobs} and all(len(job.ranks()) == len("01") for job in jobs):
            return
        time.sleep(1.0)
    raise SystemExit("the jobs do not train")


def happen(exporter_url: str, prometheus_url: str, jobs: Sequence[Job], source: random.Random) -> None:
    """Let the troubles happen, and look until all of them were noticed."""
    by_name = {job.name: job for job in jobs}
    waiting = sorted(
        ((time.monotonic() + source.uniform(0.0, 4.0 * EVERY_S), job) for job in jobs), key=lambda w: w[0]
    )
    until_s = time.monotonic() + WITHIN_S + 4.0 * EVERY_S
    while time.monotonic() < until_s and not all(job.is_over for job in jobs):
        while waiting and waiting[0][0] <= time.monotonic():
            waiting.pop(0)[1].harm()
        look(exporter_url, prometheus_url, by_name)
        time.sleep(LOOK_S)


def words_of(seconds: Sequence[float], trials: int) -> str:
    if not seconds:
        return "not within 11 minutes"
    span = f"{statistics.median(seconds):.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
    return span if len(seconds) == trials else f"{span}, {len(seconds)} of {trials}"


def report(jobs: Sequence[Job]) -> None:
    """The table, and what the exporter called it."""
    print("\n| noticed by, after s, median (range) |", " | ".join(TROUBLES), "|")
    print("|---|" + "---|" * len(TROUBLES))
    of = {trouble: [job for job in jobs if job.trouble == trouble] for trouble in TROUBLES}
    for who, title in COLUMNS.items():
        cells = [words_of([j.noticed[who] for j in of[t] if who in j.noticed], len(of[t])) for t in TROUBLES]
        print(f"| {title} |", " | ".join(cells), "|")
    for job in jobs:
        said = {who: f"{seconds:.1f}" for who, seconds in job.noticed.items() if " " in who}
        print(f"{job.name}: {said}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trials", type=int, default=3, help="jobs for each trouble")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with running(exporter(str(place / "ett.sqlite"))) as server:
            url = f"http://127.0.0.1:{server.port}"
            jobs: list[Job] = []
            try:
                for trouble, trial in product(TROUBLES, range(arguments.trials)):
                    jobs.append(Job(f"{trouble.replace(' ', '-')}-{trial}", trouble, place, url))
                await_training(url, jobs)
                with prometheus(server.port, jobs, place) as rules:
                    time.sleep(6.0 * EVERY_S)
                    happen(url, rules, jobs, random.Random(arguments.seed))  # noqa: S311 - no secret
                    report(jobs)
            finally:
                for job in jobs:
                    job.kill()


if __name__ == "__main__":
    main()
