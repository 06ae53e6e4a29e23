"""What do the rules cost with very many jobs, and what do recorded series save whoever looks?

    python benchmarks/grafana/rules.py [--jobs 10000] [--minutes 4]

A Prometheus (Debian's, on this machine) scrapes one /metrics that holds the jobs of a small simulated
fleet over and over under other names, and evaluates the rules of the checkout. Figures of rules are
Prometheus's own. Then every recorded series is asked for by its name and, as the rival, by the
expression that it stands for: what a board would ask without the rules.
"""

from __future__ import annotations

import argparse
import http.server
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from exporters import ETT  # noqa: E402
from exporters import running as exporter_running  # noqa: E402
from processes import free_address, running  # noqa: E402

REPEATS = 3
WHOLE_S = 120.0


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=WHOLE_S) as answer:  # noqa: S310 - our own address
        body: bytes = answer.read()
        return body


def exposition(jobs: int) -> bytes:
    """An answer of an exporter in which the jobs of a fleet stand again and again; the rest stands once."""
    with tempfile.TemporaryDirectory() as directory:
        words = ["--database", f"{directory}/ett.sqlite", "--ended-grace-s", "100000000"]
        with exporter_running(*words) as exporter:
            fleet = [ETT, "simulate", "--scenario", "small", "--seed", "3", "--exporter", exporter.url]
            subprocess.run(fleet, check=True, capture_output=True)
            text = fetched(f"{exporter.url}/metrics").decode()
    by_job: dict[str, list[str]] = defaultdict(list)
    others = []
    for line in text.splitlines():
        found = re.search(r'job_id="([^"]*)"', line)
        (by_job[found[1]] if found else others).append(line)
    if not by_job:
        raise RuntimeError("the exporter shows no job")
    blocks = ["\n".join(lines) for lines in by_job.values()]
    copies = [
        blocks[number % len(blocks)].replace('job_id="', f'job_id="copy-{number:06d}-')
        for number in range(jobs)
    ]
    return "\n".join([*others, *copies, ""]).encode()


def served(content: bytes) -> http.server.ThreadingHTTPServer:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def prometheus_command(directory: Path, target: str, address: str) -> list[str]:
    config = {
        "global": {"evaluation_interval": "30s"},
        "rule_files": [f"{ROOT / 'grafana' / 'rules'}/*.yaml"],
        "scrape_configs": [
            {"job_name": "ettwatch", "scrape_interval": "15s", "static_configs": [{"targets": [target]}]}
        ],
    }
    path = directory / "prometheus.yaml"
    path.write_text(yaml.safe_dump(config))
    storage = f"--storage.tsdb.path={directory / 'tsdb'}"
    return ["prometheus", f"--config.file={path}", storage, f"--web.listen-address={address}"]


class Asked:
    """A Prometheus that answers queries."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/api/v1"

    def get(self, path: str, **parameters: str) -> Any:  # noqa: ANN401 - whatever the JSON says
        return json.loads(fetched(f"{self._url}/{path}?{urlencode(parameters)}"))["data"]

    def timed(self, query: str) -> tuple[float, int]:
        """Milliseconds of one query, and how many series it answers."""
        begin = time.perf_counter()
        found = self.get("query", query=query)["result"]
        return (time.perf_counter() - begin) * 1e3, len(found)

    def evaluations(self) -> dict[str, list[float]]:
        """Milliseconds of the latest evaluation of each rule, by group."""
        groups = self.get("rules")["groups"]
        faults = [rule["lastError"] for group in groups for rule in group["rules"] if rule.get("lastError")]
        if faults:
            raise RuntimeError(f"rules fail: {faults}")
        return {each["name"]: [rule["evaluationTime"] * 1e3 for rule in each["rules"]] for each in groups}


def median_and_range(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def rules_table(asked: Asked, minutes: float) -> None:
    """Whole groups, evaluation after evaluation."""
    seen: dict[str, dict[str, float]] = defaultdict(dict)
    until = time.monotonic() + minutes * 60
    while time.monotonic() < until:
        time.sleep(5)
        for group in asked.get("rules")["groups"]:
            if group["lastEvaluation"] > "1" and group["evaluationTime"]:
                seen[group["name"]][group["lastEvaluation"]] = group["evaluationTime"] * 1e3
    slowest = asked.evaluations()
    print("| group | rules | evaluations | ms, median (range) | slowest rule, ms |\n|---|---|---|---|---|")
    for name, values in seen.items():
        settled = list(values.values())[2:]
        rules = slowest[name]
        print(f"| {name} | {len(rules)} | {len(settled)} | {median_and_range(settled)} | {max(rules):.1f} |")


def queries_table(asked: Asked) -> None:
    """Each recorded series by name and by its expression."""
    text = (ROOT / "grafana" / "rules" / "ett-recorded.yaml").read_text()
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    print(
        "\n| recorded series | series | by name, ms | by its expression, ms | ratio |\n|---|---|---|---|---|"
    )
    totals = [0.0, 0.0]
    for rule in rules:
        both = []
        for query in (rule["record"], rule["expr"]):
            runs = [asked.timed(query) for _ in range(REPEATS)]
            both.append([ms for ms, _ in runs])
            count = runs[-1][1]
        by_name, by_expression = map(statistics.median, both)
        totals = [totals[0] + by_name, totals[1] + by_expression]
        row = f"| `{rule['record']}` | {count} | {median_and_range(both[0])} | {median_and_range(both[1])} |"
        print(f"{row} {by_expression / by_name:.0f} |")
    print(f"| all | | {totals[0]:.0f} | {totals[1]:.0f} | {totals[1] / totals[0]:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of the rules, and what they save.")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=4.0)
    arguments = parser.parse_args()
    content = exposition(arguments.jobs)
    samples = sum(not line.startswith(b"#") for line in content.splitlines())
    server = served(content)
    address = free_address()
    with tempfile.TemporaryDirectory() as directory:
        target = f"127.0.0.1:{server.server_port}"
        with running(prometheus_command(Path(directory), target, address)):
            time.sleep(30)
            asked = Asked(address)
            print(f"{arguments.jobs} jobs, {samples} samples a scrape, every 15 s\n")
            rules_table(asked, arguments.minutes)
            queries_table(asked)
            (took,) = asked.get("query", query="scrape_duration_seconds")["result"]
            print(f"\nscrape: {float(took['value'][1]):.2f} s")
    server.shutdown()


if __name__ == "__main__":
    main()
