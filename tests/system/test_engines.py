"""What Prometheus and VictoriaMetrics answer to queries is what the exporter's own API answers."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from exporters import ETT
from exporters import running as exporter_running
from processes import free_address, running

WITHIN_S = 180.0
DIGITS = 1e-10
FRESH = {"latency_offset": "1ms", "nocache": "1"}
"""VictoriaMetrics holds back the latest seconds without these; Prometheus does not know them."""


def prometheus(directory: Path, config: Path, address: str) -> list[str]:
    storage = f"--storage.tsdb.path={directory / 'tsdb'}"
    return [f"--config.file={config}", storage, f"--web.listen-address={address}", "--log.level=error"]


def victoria_metrics(directory: Path, config: Path, address: str) -> list[str]:
    storage = f"-storageDataPath={directory / 'vm'}"
    return [f"-promscrape.config={config}", storage, f"-httpListenAddr={address}", "-loggerLevel=ERROR"]


ENGINES: dict[str, Callable[[Path, Path, str], list[str]]] = {
    "prometheus": prometheus,
    "victoria-metrics": victoria_metrics,
}


@pytest.fixture(scope="module")
def exporter_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An exporter that holds a small simulated fleet."""
    database = tmp_path_factory.mktemp("exporter") / "ett.sqlite"
    with exporter_running("--database", str(database), "--ended-grace-s", "100000000") as exporter:
        simulated = [ETT, "simulate", "--scenario", "small", "--seed", "3", "--exporter", exporter.url]
        subprocess.run(simulated, check=True, capture_output=True)
        yield exporter.url


@pytest.fixture(scope="module")
def engine_urls(tmp_path_factory: pytest.TempPathFactory, exporter_url: str) -> Iterator[dict[str, str]]:
    """Both engines, begun at once: what takes long is that they come to see what was scraped."""
    target, urls = exporter_url.removeprefix("http://"), {}
    with ExitStack() as stack:
        for name, words in ENGINES.items():
            directory, address = tmp_path_factory.mktemp(name), free_address()
            config = directory / "scrape.yml"
            config.write_text(
                "global: {scrape_interval: 1s}\n"
                f"scrape_configs: [{{job_name: ettwatch, static_configs: [{{targets: ['{target}']}}]}}]\n"
            )
            stack.enter_context(running([name, *words(directory, config, address)]))
            urls[name] = f"http://{address}"
        yield urls


class Asked:
    """Values by labels that an engine answers to a query."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, query: str, *labels: str) -> dict[tuple[str, ...], float]:
        try:
            asked = {"query": query, **FRESH}
            answer = httpx.get(f"{self._url}/api/v1/query", params=asked, timeout=WITHIN_S, trust_env=False)
        except httpx.TransportError:
            return {}
        rows = answer.json()["data"]["result"] if answer.status_code == httpx.codes.OK else []
        return {tuple(row["metric"][name] for name in labels): float(row["value"][1]) for row in rows}


@pytest.mark.service("prometheus")
@pytest.mark.service("victoria-metrics")
@pytest.mark.parametrize("engine", ENGINES)
def test_queries_give_the_values_of_the_api(
    exporter_url: str, engine_urls: dict[str, str], engine: str
) -> None:
    """Components, times to start and states of every job that has ended, to ten digits.

    Both may be a moment old when they are first asked: they have to come to agree.
    """
    ask, until_s, pause = Asked(engine_urls[engine]), time.monotonic() + WITHIN_S, threading.Event()
    while wrong := disagreements(ask, ended_jobs(exporter_url)):
        assert time.monotonic() < until_s, wrong
        pause.wait(0.5)
    assert len(ended_jobs(exporter_url)) > 1


def ended_jobs(exporter_url: str) -> list[dict[str, Any]]:
    jobs = httpx.get(f"{exporter_url}/api/v1/jobs", trust_env=False, timeout=WITHIN_S).json()["jobs"]
    return [job for job in jobs if job["finished"]]


def disagreements(ask: Asked, jobs: list[dict[str, Any]]) -> list[tuple[str, str, object, object]]:
    """Of each job: what differs, what the engine answers, and what the API said."""
    walls = ask("ett_job_wall_seconds", "job_id")
    parts = ask("ett_job_component_seconds", "job_id", "component")
    starts = ask("ett_job_time_to_start_seconds", "job_id")
    states = ask("ett_job_state", "job_id", "state")
    sums = ask("sum by (job_id) (ett_job_component_seconds)", "job_id")
    compared = []
    for job in jobs:
        key = job["job_id"]
        own = {component: s for (job_id, component), s in parts.items() if job_id == key}
        compared += [
            (key, "components", own, job["components"]),
            (key, "wall time", walls.get((key,)), job["wall_s"]),
            (key, "sum of components", sums.get((key,)), job["wall_s"]),
            (key, "time to start", starts.get((key,)), job["tts_s"]),
            (key, "state", [state for job_id, state in states if job_id == key], [job["state"]]),
        ]
    return [
        each
        for each in compared
        if each[2] != (each[3] if each[1] == "state" else pytest.approx(each[3], rel=DIGITS))
    ]
