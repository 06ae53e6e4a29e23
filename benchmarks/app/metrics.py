"""What the pages ask of a server of metrics with very many jobs, beside reading the series of all of them.

    python benchmarks/app/metrics.py [JOBS]

The series of one real job are written JOBS times (with other names, models and teams) into a VictoriaMetrics
with its usual limits; each question of the pages is asked of it five times. Prints a table.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "benchmarks" / "grafana")]

from processes import free_address, running  # noqa: E402

from boards import Asked, fleet, lines_of_a_job  # noqa: E402
from ett_dashboard.checkpoints.questions import intervals  # noqa: E402
from ett_dashboard.client import ExporterError  # noqa: E402
from ett_dashboard.failures.questions import failures  # noqa: E402
from ett_dashboard.fleet.questions import Weighing, jobs, over_time, window  # noqa: E402
from ett_dashboard.prometheus.api import PrometheusApi  # noqa: E402
from ett_dashboard.prometheus.engine import Engine  # noqa: E402
from ett_dashboard.prometheus.promql import Series  # noqa: E402
from ett_dashboard.prometheus.questions import caches, history  # noqa: E402
from ett_dashboard.prometheus.settings import PrometheusSettings  # noqa: E402

ROUNDS, AT_ONCE = 5, 500
JOB = "slurm-c1-1"
WEIGHED = Weighing("accelerator", "accelerator")


class Counted(httpx.HTTPTransport):
    """The network, with the requests and bytes that came over it."""

    def __init__(self) -> None:
        super().__init__()
        self.requests, self.bytes = 0, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        self.requests, self.bytes = self.requests + 1, self.bytes + len(answer.read())
        return answer


def questions(api: PrometheusApi) -> dict[str, Callable[[], object]]:
    return {
        "Fleet: the 15 most urgent, and all by state": lambda: api.ask(jobs({}, most=15)),
        "Fleet: 200 by ETT": lambda: api.ask(jobs({}, "ett_percent", 200)),
        "Fleet: 15 of a team": lambda: api.ask(jobs({"team": "team3"}, most=15)),
        "Fleet: 15 with a part of a name": lambda: api.ask(jobs({"text": "C1-99"}, most=15)),
        "Fleet: 15 by name": lambda: api.ask(jobs({}, "job", 15)),
        "Fleet: all as a file (1,000)": lambda: api.ask(jobs({})),
        "Fleet: time within 24 h": lambda: api.ask(window("24h", WEIGHED, {})),
        "Fleet: over 7 days": lambda: api.ask(over_time("7d", WEIGHED, {}, time.time())),
        "Failures: 7 days": lambda: api.ask(failures("7d", "lost", {})),
        "Job": lambda: api.job(JOB),
        "Job: over time": lambda: api.ask(history(JOB)),
        "Caches, without recorded series": lambda: api.ask(caches({})),
        "Checkpoints: 200 intervals": lambda: api.ask(intervals({})),
    }


def processor_ms(pid: int) -> float:
    """What a process has taken of the processors so far."""
    spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return 1000 * sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")


def measured(what: str, ask: Callable[[], object], network: Counted, pid: int) -> str:
    """A row of the table; `pid` is the server's."""
    times, before, size = [], network.requests, network.bytes
    server, own = processor_ms(pid), time.process_time()
    try:
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            ask()
            times.append(1000 * (time.perf_counter() - begin))
    except ExporterError as error:
        return f"| {what} | | | | | {str(error)[-160:]} |"
    server_ms = (processor_ms(pid) - server) / ROUNDS
    own_ms = 1000 * (time.process_time() - own) / ROUNDS
    low, middle, high = min(times), statistics.median(times), max(times)
    count = (network.requests - before) / ROUNDS
    kilobytes = (network.bytes - size) / ROUNDS / 1000
    return (
        f"| {what} | {count:.0f} | {kilobytes:,.0f} | {server_ms:,.0f} | {own_ms:,.0f} "
        f"| {middle:,.0f} ({low:,.0f} to {high:,.0f}) |"
    )


def fill(url: str, directory: Path, count: int) -> int:
    """Write the jobs, and say how many series each has."""
    server = Asked(url)
    job, others = lines_of_a_job(directory)
    server.write("\n".join(others) + "\n")
    batch: list[str] = []
    for number, text in enumerate(fleet(job, count), 1):
        batch.append(text)
        if number % AT_ONCE == 0 or number == count:
            server.write("".join(batch))
            batch = []
    server.wait_for("ett_job_wall_seconds", count)
    return len(job)


def is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).is_success
    except httpx.TransportError:
        return False


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        url = f"http://{free_address()}"
        words = [f"-storageDataPath={name}/vm", f"-httpListenAddr={url.removeprefix('http://')}"]
        with running(["victoria-metrics", *words]) as server:
            while not is_up(url):
                time.sleep(0.1)
            series = fill(url, Path(name), count)
            network = Counted()
            with closing(Engine(PrometheusSettings(url=url), network)) as engine:
                print(f"{count:,} jobs, {series} series each\n")
                print("| question | requests | kB | server, CPU ms | app, CPU ms | ms, median (range) |")
                print("|---|---|---|---|---|---|")
                for what, ask in questions(PrometheusApi(engine)).items():
                    print(measured(what, ask, network, server.pid), flush=True)
                everything = Series().of("", '__name__=~"ett_job_.*"')
                print(
                    measured(
                        "the series of all jobs", lambda: engine.instant(everything), network, server.pid
                    )
                )


if __name__ == "__main__":
    main()
