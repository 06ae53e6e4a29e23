"""A real Prometheus scrapes a real exporter."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from exporters import running as exporter_running
from processes import free_address, running

from ett_core.events import AttemptStart, FirstBatch, Progress, encode


def eventually(condition: Callable[[], Any], within_s: float = 40.0) -> Any:
    """Wait until `condition` gives something true."""
    deadline, pause = time.monotonic() + within_s, threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {within_s} s"
        pause.wait(0.05)
    return found


@pytest.fixture
def exporter_url(tmp_path: Path) -> Iterator[str]:
    with exporter_running("--database", str(tmp_path / "ett.sqlite")) as exporter:
        yield exporter.url


@pytest.fixture
def prometheus_url(tmp_path: Path, exporter_url: str) -> Iterator[str]:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    address = free_address()
    target = exporter_url.removeprefix("http://")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: ettwatch, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    words = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
    words += [f"--web.listen-address={address}", "--log.level=error"]
    with running([program, *words]):
        yield f"http://{address}"


def lines(job_id: str, now: float) -> bytes:
    """A job that started 100 s ago and has trained for 60 s."""
    who = {"job_id": job_id, "writer": "w", "attempt": 0, "rank": 0}
    events = [
        AttemptStart(**who, seq=0, time=now - 100, world_size=1, labels={"team": "ads"}),
        FirstBatch(**who, seq=1, time=now - 70),
        Progress(**who, seq=2, time=now - 10, step=60, steps=60, samples=600),
    ]
    return b"\n".join(map(encode, events))


@pytest.mark.service("prometheus")
def test_prometheus_stores_what_the_exporter_exposes(exporter_url: str, prometheus_url: str) -> None:
    """Series are scraped without an error, keep their names and join with what describes the job."""

    def query(expression: str) -> list[dict[str, Any]]:
        try:
            answer = client.get(f"{prometheus_url}/api/v1/query", params={"query": expression})
        except httpx.TransportError:
            return []
        return answer.json()["data"]["result"] if answer.status_code == 200 else []

    with httpx.Client(trust_env=False, timeout=10) as client:
        client.post(f"{exporter_url}/api/v1/segments", content=lines("a/b", time.time())).raise_for_status()
        joined = "ett_job_step * on (job_id) group_left (team) ett_job_info"
        found = eventually(lambda: query(joined))
        assert found[0]["metric"] == {"job_id": "a/b", "team": "ads"} | {
            name: found[0]["metric"][name] for name in ("instance", "job")
        }
        assert float(found[0]["value"][1]) == 60
        whole = "sum by (job_id) (ett_job_component_seconds) - on (job_id) ett_job_wall_seconds"
        assert abs(float(query(whole)[0]["value"][1])) < 1e-6
        assert query('up{job="ettwatch"}')[0]["value"][1] == "1"
