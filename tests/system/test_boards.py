"""Every query of every board, on a real Prometheus and a real VictoriaMetrics that scrape a real exporter.

The exporter is told known jobs in stages, so that counters grow between scrapes; beside it stand the
exporters of hardware, relabelled as examples/deploy/prometheus-hardware.yaml says. The recorded series
come from the rules of the checkout. `WORKED` has for each query what it must answer: a query that is
missing there, or answers nothing, fails.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import yaml
from board_queries import Asked, filled, queries_of
from board_stories import Ended
from board_stories import running as running_jobs
from exporters import running as exporter_running
from hardware_targets import ANSWERS, targets
from processes import free_address, running
from worked_boards import WORKED, Figure, chosen_for

ROOT = Path(__file__).parents[2]
BOARDS = {path.stem: json.loads(path.read_text()) for path in (ROOT / "grafana" / "boards").glob("*.json")}
ENGINES = ("prometheus", "victoria-metrics")
WITHIN_S = 180.0
FRESH = {"latency_offset": "1ms", "nocache": "1"}
"""VictoriaMetrics holds back the latest seconds without these; Prometheus does not know them."""


class Engine(msgspec.Struct, frozen=True):
    """A running engine: `ask` gives values by labels."""

    name: str
    url: str

    def ask(self, expr: str) -> dict[str, float]:
        try:
            answer = httpx.get(
                f"{self.url}/api/v1/query", params={"query": expr, **FRESH}, timeout=WITHIN_S, trust_env=False
            )
        except httpx.TransportError:
            return {}
        body = answer.json() if answer.is_success else {}
        if body.get("status") != "success":
            raise AssertionError(f"{self.name} refuses {expr}: {answer.text}")
        return {_key(row["metric"]): float(row["value"][1]) for row in body["data"]["result"]}


def _key(labels: Mapping[str, str]) -> str:
    """Labels as text, without those that say where a series was scraped."""
    return ",".join(f"{k}={v}" for k, v in sorted(labels.items()) if k not in ("__name__", "instance", "job"))


def eventually(condition: Callable[[], Any], what: str) -> Any:
    until_s = time.monotonic() + WITHIN_S
    while not (found := condition()):
        assert time.monotonic() < until_s, f"not within {WITHIN_S} s: {what}"
        time.sleep(0.1)
    return found


def scrape_config(exporter: str, hardware: str) -> dict[str, Any]:
    """The files of examples/deploy, with the addresses of this test and a scrape a second."""
    (ours,) = yaml.safe_load((ROOT / "examples/deploy/prometheus.yaml").read_text())["scrape_configs"]
    del ours["authorization"]
    text = (ROOT / "examples/deploy/prometheus-hardware.yaml").read_text().replace("CLUSTER", "c1")
    others = yaml.safe_load(text)["scrape_configs"]
    assert {job["job_name"] for job in others} == ANSWERS.keys()
    for job in others:
        job |= {"metrics_path": f"/{job['job_name']}", "static_configs": [{"targets": [hardware]}]}
    jobs = [ours | {"static_configs": [{"targets": [exporter]}]}, *others]
    return {"scrape_configs": [job | {"scrape_interval": "1s", "scrape_timeout": "1s"} for job in jobs]}


def hurried_rules(directory: Path) -> Path:
    text = (ROOT / "grafana/rules/ett-recorded.yaml").read_text()
    path = directory / "recorded.yaml"
    path.write_text(re.sub(r"interval: \w+", "interval: 1s", text))
    return path


def start_prometheus(stack: ExitStack, directory: Path, config: dict[str, Any], rules: Path) -> str:
    address = free_address()
    path = directory / "prometheus.yaml"
    path.write_text(yaml.safe_dump(config | {"rule_files": [str(rules)]}))
    words = [f"--storage.tsdb.path={directory / 'tsdb'}", f"--web.listen-address={address}"]
    stack.enter_context(running(["prometheus", f"--config.file={path}", *words]))
    return f"http://{address}"


def start_victoria(stack: ExitStack, directory: Path, config: dict[str, Any], rules: Path) -> str:
    address, url = free_address(), ""
    url = f"http://{address}"
    path = directory / "scrape.yaml"
    path.write_text(yaml.safe_dump(config))
    words = [
        f"-storageDataPath={directory / 'vm'}",
        f"-httpListenAddr={address}",
        "-search.latencyOffset=1ms",
    ]
    stack.enter_context(running(["victoria-metrics", f"-promscrape.config={path}", *words]))
    listen = f"-httpListenAddr={free_address()}"
    writes = [f"-datasource.url={url}", f"-remoteWrite.url={url}", "-remoteWrite.flushInterval=200ms"]
    stack.enter_context(running(["vmalert", f"-rule={rules}", listen, *writes]))
    return url


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    """Both engines, once they have scraped each stage of the jobs."""
    directory = tmp_path_factory.mktemp("boards")
    with ExitStack() as stack:
        words = ("--database", str(directory / "ett.sqlite"), "--ended-grace-s", "100000000")
        exporter = stack.enter_context(exporter_running(*words))
        hardware = stack.enter_context(targets())
        config, rules = (
            scrape_config(exporter.url.removeprefix("http://"), hardware),
            hurried_rules(directory),
        )
        urls = {
            "prometheus": start_prometheus(stack, directory, config, rules),
            "victoria-metrics": start_victoria(stack, directory, config, rules),
        }
        both = {name: Engine(name, url) for name, url in urls.items()}
        now = time.time()
        for stage in chain(Ended(now).stages(), running_jobs(now)):
            tell(exporter.url, stage)
            scraped(exporter.url, both)
        yield both


def tell(url: str, body: bytes) -> None:
    httpx.post(f"{url}/api/v1/events", content=body, trust_env=False, timeout=WITHIN_S).raise_for_status()


def scraped(url: str, engines: Mapping[str, Engine]) -> None:
    """Wait until both engines have seen all that the exporter took in."""
    name = "ett_exporter_ingested_events_total"
    text = httpx.get(f"{url}/metrics", trust_env=False, timeout=WITHIN_S).text
    told = float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])
    for engine in engines.values():
        eventually(lambda engine=engine: engine.ask(name).get("") == told, f"{engine.name} scraped it all")


@pytest.mark.service("prometheus")
@pytest.mark.service("victoria-metrics")
@pytest.mark.service("vmalert")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BOARDS)
def test_queries_answer_what_was_worked_out(engines, engine, name):
    """Each query of the board gives exactly the series that it must, with their values."""
    wrong = list(queries_of(BOARDS[name]))
    assert {str(asked) for asked in wrong} == {key for key in WORKED if key.startswith(f"{name} / ")}

    def differences() -> list[str]:
        nonlocal wrong
        wrong = [asked for asked in wrong if difference(engines[engine], asked)]
        return wrong

    until_s = time.monotonic() + WITHIN_S
    while differences() and time.monotonic() < until_s:
        time.sleep(0.2)
    assert [difference(engines[engine], asked) for asked in wrong] == []


def difference(engine: Engine, asked: Asked) -> str:
    """What is wrong with the answer to a query, empty where nothing is."""
    expected: Mapping[str, Figure] = WORKED[str(asked)]
    found = engine.ask(filled(asked.expr, chosen_for(str(asked))))
    missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    off = {
        key: (figure, found[key])
        for key, figure in expected.items()
        if key in found and not (math.isfinite(found[key]) and figure.fits(found[key]))
    }
    if not (missing or more or off):
        return ""
    return f"{asked}: missing {sorted(missing)}, too many {sorted(more)}, wrong {off}"
