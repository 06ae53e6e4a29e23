"""How many series the queries of the boards touch in a fleet, beside queries of the same meaning over jobs.

    python benchmarks/grafana/boards.py [JOBS]

The series of one real job, as the exporter shows them, are written JOBS times (with other names, models and
teams) into a VictoriaMetrics, the recorded series are computed from them by their rules, and every
selector of every query of a board is counted and every query timed. Prints a table.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from board_queries import filled, queries_of  # noqa: E402
from board_stories import Ended  # noqa: E402
from board_stories import running as running_jobs  # noqa: E402
from processes import free_address, running  # noqa: E402

from ett_exporter.exposition import Exposition  # noqa: E402
from ett_exporter.service import Service  # noqa: E402
from ett_exporter.settings import Settings  # noqa: E402
from ett_exporter.store import Store  # noqa: E402
from ett_grafana.config import Config  # noqa: E402
from ett_grafana.rules import all_recorded  # noqa: E402

ROUNDS, WITHIN_S, FRESH = 5, 30.0, {"nocache": "1", "latency_offset": "1ms"}
CLUSTERS, TEAMS, MODELS = 4, 20, 50
VALUES = {"cluster": ".*", "team": ".*", "model": ".*", "window": "24h", "instance": ".*"}
WEIGHED = "* on (job_id) group_left () ett_job_accelerators"
TRAINED = 'ett_job_component_seconds{component="training"}'
ASKED = "ett_job_compile_cache_requests_total"
RIVALS = {
    "effective share": f"sum({TRAINED} {WEIGHED}) / sum(ett_job_component_seconds {WEIGHED})",
    "hours by component": f"sum by (component) (ett_job_component_seconds {WEIGHED})",
    "jobs by state": "count by (state) (ett_job_state)",
    "jobs that lost most": f"topk(20, ett_job_wall_seconds - on (job_id) {TRAINED})",
    "hit rate": f'sum({ASKED}{{result="hit"}}) / sum({ASKED}{{result=~"hit|miss"}})',
}
"""What a board without recorded series would ask."""


def lines_of_a_job(directory: Path) -> tuple[list[str], list[str]]:
    """The lines of /metrics of one job, and those of the fleet and the exporter."""
    now = time.time()
    service = Service(Store(str(directory / "ett.sqlite")), Settings(ended_grace_s=1e9), clock=lambda: now)
    for stage in (*Ended(now).stages(), *running_jobs(now)):
        service.ingest_events(stage)
    text = Exposition(service).answer().body.decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    job = [line for line in lines if 'job_id="slurm-c1-4711"' in line]
    return job, [line for line in lines if "job_id=" not in line]


def fleet(job: list[str], jobs: int) -> Iterator[str]:
    """The lines of a job, once for each of many jobs."""
    text = "\n".join(job) + "\n"
    for number in range(jobs):
        named = text.replace("slurm-c1-4711", f"slurm-c1-{number}").replace('"c1"', f'"c{number % CLUSTERS}"')
        named = named.replace('"ads"', f'"team{number % TEAMS}"').replace(
            '"dlrm-26"', f'"model{number % MODELS}"'
        )
        yield named


class Asked:
    """A VictoriaMetrics that is asked."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=300.0, trust_env=False)

    def write(self, text: str) -> None:
        where = {"extra_label": ["job=ettwatch", "instance=exporter:9410"]}
        self.client.post("/api/v1/import/prometheus", params=where, content=text).raise_for_status()

    def ask(self, expr: str) -> list[Mapping[str, object]]:
        answer = self.client.get("/api/v1/query", params={"query": expr, **FRESH})
        answer.raise_for_status()
        return answer.json()["data"]["result"]

    def wait_for(self, name: str, count: int) -> None:
        """Wait until as many series of a name are found."""
        until_s = time.monotonic() + WITHIN_S
        while self.client.get("/internal/force_flush").is_success and len(self.ask(name)) < count:
            if time.monotonic() > until_s:
                raise SystemExit(f"{name}: fewer than {count} series within {WITHIN_S:g} s")
            time.sleep(0.1)

    def touched(self, expr: str) -> int:
        """Series of all selectors of an expression."""
        selectors = set(re.findall(r"\b(?:ett[_:][\w:]+|up|scrape_\w+)(?:\{[^}]*\})?", expr))
        rows = [self.ask(f"count({selector})") for selector in selectors]
        return sum(int(float(row[0]["value"][1])) for row in rows if row)  # type: ignore[index]

    def took_ms(self, expr: str) -> tuple[float, float, float]:
        times = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            self.ask(expr)
            times.append(1000 * (time.perf_counter() - begin))
        return min(times), statistics.median(times), max(times)


def record(engine: Asked) -> None:
    """Compute the recorded series once, in their order: a rule reads what the ones before it recorded."""
    for each in all_recorded(Config()):
        lines = {}
        for row in engine.ask(each.expr):
            kept = {k: v for k, v in row["metric"].items() if k not in ("__name__", "job", "instance")}
            labels = ",".join(f"{name}={json.dumps(value)}" for name, value in kept.items())
            if math.isfinite(float(row["value"][1])):
                lines[labels] = f"{each.record}{{{labels}}} {row['value'][1]}\n"
        engine.write("".join(lines.values()))
        engine.wait_for(each.record, len(lines))


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        address = free_address()
        command = ["victoria-metrics", f"-storageDataPath={name}/vm", f"-httpListenAddr={address}"]
        with running([*command, "-search.maxUniqueTimeseries=2000000"]):
            engine = Asked(f"http://{address}")
            for _ in range(600):
                try:
                    engine.client.get("/health")
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            job, others = lines_of_a_job(Path(name))
            engine.write("\n".join(others) + "\nup 1\nscrape_duration_seconds 1\n")
            batch = []
            for number, text in enumerate(fleet(job, jobs), 1):
                batch.append(text)
                if number % 500 == 0 or number == jobs:
                    engine.write("".join(batch))
                    batch = []
            engine.wait_for("ett_job_wall_seconds", jobs)
            record(engine)
            print(f"{jobs} jobs, {len(job)} series each\n")
            print("| board | queries | series of its dearest query | ms of its slowest (range) |")
            print("|---|---|---|---|")
            values = VALUES | {"job_id": "slurm-c1-1|slurm-c1-2"}
            for path in sorted((ROOT / "grafana" / "boards").glob("*.json")):
                exprs = [filled(each.expr, values) for each in queries_of(json.loads(path.read_text()))]
                dearest = max(engine.touched(expr) for expr in exprs)
                low, middle, high = max((engine.took_ms(expr) for expr in exprs), key=lambda took: took[1])
                print(f"| {path.stem} | {len(exprs)} | {dearest} | {middle:.0f} ({low:.0f} to {high:.0f}) |")
            print("\n| the same over jobs | series | ms (range) |\n|---|---|---|")
            for what, expr in RIVALS.items():
                low, middle, high = engine.took_ms(expr)
                print(f"| {what} | {engine.touched(expr)} | {middle:.0f} ({low:.0f} to {high:.0f}) |")


if __name__ == "__main__":
    main()
