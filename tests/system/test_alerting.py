"""One alert goes the whole way: a job falls silent, a webhook is told, and told again when it is over.

Exporter, Prometheus (or VictoriaMetrics with vmalert) and Alertmanager are real and run the rules and
the routes of the checkout; only their waiting times are cut, so that nobody waits for minutes.
"""

from __future__ import annotations

import http.server
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import httpx
import pytest
import yaml
from exporters import running as exporter_running
from processes import free_address, running

from ett_core.events import AttemptStart, FirstBatch, JobEnd, Progress, encode

ROOT = Path(__file__).parents[2]
WITHIN_S = 180.0
SILENT_S = 1800.0


class Told(http.server.BaseHTTPRequestHandler):
    """Puts what Alertmanager posts on the queue of its server, with the path that it was posted to."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.notes.put((self.path, body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


Notes: TypeAlias = "queue.Queue[tuple[str, dict[str, Any]]]"


@contextmanager
def receiver() -> Iterator[tuple[str, Notes]]:
    """The address of a receiver, and what it was told."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Told)
    server.notes = queue.Queue()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.notes  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def hurried(text: str) -> str:
    """Rules and routes that wait for a second where they wait for longer."""
    return re.sub(
        r"^( *(?:for|interval|group_wait|group_interval): ).*$", r"\g<1>1s", text, flags=re.MULTILINE
    )


def rules_and_scraping(directory: Path, scraped: str) -> tuple[Path, dict[str, Any]]:
    """The folder of the rules, and the configuration of the checkout for an exporter without tokens."""
    rules = directory / "rules"
    rules.mkdir()
    for path in (ROOT / "grafana" / "rules").glob("*.yaml"):
        (rules / path.name).write_text(hurried(path.read_text()))
    config = yaml.safe_load((ROOT / "examples" / "deploy" / "prometheus.yaml").read_text())
    (job,) = config["scrape_configs"]
    del job["authorization"]
    job |= {"scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": [{"targets": [scraped]}]}
    return rules, config


Watchers = tuple[str, list[list[str]]]
"""The address that answers how rules are, and the commands that scrape and evaluate."""


def prometheus(directory: Path, scraped: str, alertmanager: str) -> Watchers:
    """Prometheus scrapes and evaluates."""
    rules, config = rules_and_scraping(directory, scraped)
    config |= {"rule_files": [f"{rules}/*.yaml"], "global": {"evaluation_interval": "1s"}}
    config["alerting"]["alertmanagers"][0]["static_configs"] = [{"targets": [alertmanager]}]
    path = directory / "prometheus.yaml"
    path.write_text(yaml.safe_dump(config))
    storage = f"--storage.tsdb.path={directory / 'tsdb'}"
    address = free_address()
    return address, [["prometheus", f"--config.file={path}", storage, f"--web.listen-address={address}"]]


def victoria_metrics(directory: Path, scraped: str, alertmanager: str) -> Watchers:
    """VictoriaMetrics scrapes, vmalert evaluates and writes back what the rules record."""
    rules, config = rules_and_scraping(directory, scraped)
    path = directory / "scrape.yaml"
    path.write_text(yaml.safe_dump({"scrape_configs": config["scrape_configs"]}))
    store, evaluator = free_address(), free_address()
    words = [f"-promscrape.config={path}", f"-storageDataPath={directory / 'vm'}", f"-httpListenAddr={store}"]
    urls = [f"-{name}.url=http://{store}" for name in ("datasource", "remoteWrite")]
    rule_words = [f"-rule={rules}/*.yaml", *urls, f"-notifier.url=http://{alertmanager}"]
    return evaluator, [
        ["victoria-metrics", *words, "-search.latencyOffset=1ms", "-search.disableCache"],
        ["vmalert", *rule_words, f"-httpListenAddr={evaluator}", "-remoteWrite.flushInterval=200ms"],
    ]


def alertmanager_command(directory: Path, hooks_url: str, address: str) -> list[str]:
    text = hurried((ROOT / "examples" / "deploy" / "alertmanager.yaml").read_text())
    config = directory / "alertmanager.yaml"
    config.write_text(text.replace("http://hooks.example", hooks_url))
    storage = f"--storage.path={directory / 'alerts'}"
    words = [f"--config.file={config}", storage, f"--web.listen-address={address}"]
    return ["prometheus-alertmanager", *words, "--cluster.listen-address="]


def lines(*, over: bool) -> bytes:
    """A job of team ads of which nothing was heard for half an hour; or its end."""
    now = time.time()
    who = {"job_id": "nightly", "attempt": 0, "rank": 0}
    if over:
        return encode(JobEnd(**who, writer="l", seq=0, time=now, status="cancelled"))
    events = [
        AttemptStart(
            **who, writer="w", seq=0, time=now - SILENT_S - 100, world_size=1, labels={"team": "ads"}
        ),
        FirstBatch(**who, writer="w", seq=1, time=now - SILENT_S - 60),
        Progress(**who, writer="w", seq=2, time=now - SILENT_S, step=60, steps=60, samples=600),
    ]
    return b"\n".join(map(encode, events))


def told_of(name: str, notes: Notes, status: str) -> tuple[str, dict[str, Any]]:
    """Where the next note with such an alert went, and the alert."""
    while True:
        path, note = notes.get(timeout=WITHIN_S)
        for alert in note["alerts"]:
            if (alert["labels"]["alertname"], alert["status"]) == (name, status):
                return path, alert


def rules_are_well(address: str) -> bool:
    """Whether every rule was evaluated, and none of them with an error."""
    groups = httpx.get(f"http://{address}/api/v1/rules", trust_env=False, timeout=WITHIN_S).json()["data"][
        "groups"
    ]
    rules = [rule for group in groups for rule in group["rules"]]
    assert not [rule for rule in rules if rule.get("lastError")]
    return len(rules) > 1 and all(rule["health"] == "ok" for rule in rules)


class Watched(NamedTuple):
    """An exporter that was told of a lost job and is watched; `notes` is what a webhook hears of it."""

    post: str
    notes: Notes
    evaluator: str


@contextmanager
def watching(engine: Callable[[Path, str, str], Watchers], directory: Path) -> Iterator[Watched]:
    """The whole chain from an exporter to a webhook, with an engine in the middle."""
    alertmanager = free_address()
    with ExitStack() as stack:
        hooks_url, notes = stack.enter_context(receiver())
        exporter = stack.enter_context(exporter_running("--database", str(directory / "ett.sqlite")))
        post = f"{exporter.url}/api/v1/segments"
        httpx.post(post, content=lines(over=False), trust_env=False, timeout=WITHIN_S).raise_for_status()
        stack.enter_context(running(alertmanager_command(directory, hooks_url, alertmanager)))
        evaluator, commands = engine(directory, exporter.url.removeprefix("http://"), alertmanager)
        for command in commands:
            stack.enter_context(running(command))
        yield Watched(post, notes, evaluator)


ENGINES = {"prometheus": prometheus, "victoria-metrics": victoria_metrics}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Watched]]:
    """A chain for each engine. All are begun before one is waited for: they take long and do little."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(watching(engine, tmp_path_factory.mktemp(name)))
            for name, engine in ENGINES.items()
        }


@pytest.mark.service("prometheus-alertmanager")
@pytest.mark.service("prometheus")
@pytest.mark.service("victoria-metrics")
@pytest.mark.service("vmalert")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_lost_job_reaches_the_webhook_of_its_team(watched, engine):
    """The team of the job is told with the way to the runbook, and told again once it is over."""
    post, notes, evaluator = watched[engine]
    path, alert = told_of("EttJobLost", notes, "firing")
    assert path == "/ads"
    labels = {"job_id": "nightly", "team": "ads", "severity": "critical"}
    assert alert["labels"] | labels == alert["labels"]
    assert alert["annotations"]["runbook_url"].endswith("docs/runbooks.md#ettjoblost")
    assert alert["annotations"]["app_url"].endswith("/job?id=nightly")

    until_s, pause = time.monotonic() + WITHIN_S, threading.Event()
    while not rules_are_well(evaluator):
        assert time.monotonic() < until_s, "not every rule was evaluated in time"
        pause.wait(0.2)

    httpx.post(post, content=lines(over=True), trust_env=False, timeout=WITHIN_S).raise_for_status()
    assert told_of("EttJobLost", notes, "resolved")[0] == "/ads"
