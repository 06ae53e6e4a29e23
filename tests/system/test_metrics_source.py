"""The app over Prometheus and VictoriaMetrics that scrape a real exporter, beside what its API says."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest
from board_stories import KUBERNETES, SLURM, Ended
from browser import browsing, expect, visiting
from exporters import ETT, Running
from exporters import running as exporter_running
from processes import free_address, running, serving
from worked_boards import OF_SLURM

from ett_dashboard.checkpoints import questions as interval_questions
from ett_dashboard.client import Client, ExporterError, Question, UnknownJobError
from ett_dashboard.failures import questions as failure_questions
from ett_dashboard.failures.rows import Failures
from ett_dashboard.fleet import questions as fleet_questions
from ett_dashboard.prometheus import questions
from ett_dashboard.prometheus.api import PrometheusApi
from ett_dashboard.prometheus.engine import Engine
from ett_dashboard.prometheus.settings import PrometheusSettings
from ett_dashboard.rows import Groups, Job

WITHIN_S = 180.0
WEIGHED = fleet_questions.Weighing("accelerator", "accelerator")
ABOUT = 0.02
"""Shares of a window that goes on move by so much at most between two scrapes of a busy machine."""
SAME = (
    "job_id",
    "state",
    "team",
    "model",
    "cluster",
    "scheduler",
    "purpose",
    "accelerators",
    "step",
    "caches",
)
CLOSE = ("wall_s", "ett_percent", "tts_s", "samples", "checkpoint_blocking_s", "last_durable_at")
LACKING = "needs the exporter's API"
WORKED_JOBS = (SLURM, KUBERNETES)
PAGES = (
    ("?window=24h", ["8 jobs", "ETT, 24 h", "Jobs spent"], 0),
    ("?window=1h&weight=job", ["ETT, 1 h"], 3),
    (f"job?id={SLURM}", ["Every second of the job", "Ranks", "Decisions"], 7),
    ("failures?window=1h&cluster=c1", ["1 failure cost", "gpu_lost"], 2),
    ("failures?id=a~0", ["All failures"], 1),
    ("caches", ["Jobs that compiled longest", "fx_graph"], 1),
    ("checkpoints", ["Jobs and their intervals"], 1),
    ("what-if", ["What-if"], 1),
    ("regressions", ["Regressions"], 1),
)
"""Addresses, what is seen there, and how often it is said that something is lacking."""

pytestmark = [pytest.mark.service("prometheus"), pytest.mark.service("victoria-metrics")]


def eventually(condition: Callable[[], object], what: str, seen: Callable[[], object] = str) -> None:
    """Wait until something is so; what goes wrong meanwhile is not so yet. `seen`: what is there instead."""
    until_s, pause = time.monotonic() + WITHIN_S, threading.Event()
    while True:
        try:
            found = condition()
        except ExporterError as error:
            found, what = False, f"{what}: {error}"
        if found:
            return
        assert time.monotonic() < until_s, f"{what} {seen()}"
        pause.wait(0.3)


def scrape_config(folder: Path, exporters: Mapping[str, str]) -> Path:
    """What scrapes exporters every second; the series of each bear its name as `env`."""
    targets = ", ".join(
        f"{{targets: ['{url.removeprefix('http://')}'], labels: {{env: {name}}}}}"
        for name, url in exporters.items()
    )
    config = folder / "scrape.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: ettwatch, static_configs: [{targets}]}}]\n"
    )
    return config


def start_prometheus(stack: ExitStack, folder: Path, config: Path) -> str:
    address = free_address()
    words = [f"--config.file={config}", f"--storage.tsdb.path={folder}", f"--web.listen-address={address}"]
    stack.enter_context(running(["prometheus", *words, "--log.level=error"]))
    return f"http://{address}"


def start_victoria(stack: ExitStack, folder: Path, config: Path) -> str:
    address = free_address()
    words = [f"-promscrape.config={config}", f"-storageDataPath={folder}", f"-httpListenAddr={address}"]
    stack.enter_context(
        running(["victoria-metrics", *words, "-search.latencyOffset=1ms", "-loggerLevel=ERROR"])
    )
    return f"http://{address}"


class Fleet(msgspec.Struct, frozen=True):
    """Two exporters, and the servers that scrape both; `passing` ends the third server."""

    exporter: Running
    leaving: Running
    urls: Mapping[str, str]
    passing: ExitStack


@contextmanager
def api_over(url: str, env: str = "prod") -> Iterator[PrometheusApi]:
    settings = PrometheusSettings(url=url, matchers=(f'env="{env}"',))
    with closing(Engine(settings)) as engine:
        yield PrometheusApi(engine, settings.matchers)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Servers that saw a simulated fleet, and two worked jobs come stage by stage."""
    folder = tmp_path_factory.mktemp("metrics")
    with ExitStack() as stack:
        prod, leaving = (
            stack.enter_context(
                exporter_running("--database", str(folder / name), "--ended-grace-s", "100000000")
            )
            for name in ("prod", "left")
        )
        config = scrape_config(folder, {"prod": prod.url, "left": leaving.url})
        passing = stack.enter_context(ExitStack())
        urls = {
            "prometheus": start_prometheus(stack, folder / "one", config),
            "victoria-metrics": start_victoria(stack, folder / "two", config),
            "passing": start_prometheus(passing, folder / "three", config),
        }
        simulated = [ETT, "simulate", "--jobs", "6", "--seed", "3", "--exporter", prod.url]
        subprocess.run(simulated, check=True, capture_output=True)
        now = time.time()
        tell(leaving.url, b"".join(Ended(now).stages()))
        for stage in Ended(now).stages():
            tell(prod.url, stage)
            scraped(prod.url, urls)
        yield Fleet(prod, leaving, urls, passing)


@pytest.fixture(params=["prometheus", "victoria-metrics"])
def server(request: pytest.FixtureRequest, fleet: Fleet) -> str:
    return fleet.urls[request.param]


@pytest.fixture
def api(server: str) -> Iterator[PrometheusApi]:
    with api_over(server) as api:
        yield api


@pytest.fixture
def whole(fleet: Fleet) -> Iterator[Client]:
    with closing(Client(fleet.exporter.url)) as client:
        yield client


def tell(exporter_url: str, lines: bytes) -> None:
    httpx.post(
        f"{exporter_url}/api/v1/events", content=lines, trust_env=False, timeout=WITHIN_S
    ).raise_for_status()


def scraped(exporter_url: str, urls: Mapping[str, str]) -> None:
    """Wait until both servers have seen all that the exporter took in."""
    name = "ett_exporter_ingested_events_total"
    text = httpx.get(f"{exporter_url}/metrics", trust_env=False, timeout=WITHIN_S).text
    told = float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])
    for server, url in urls.items():
        with closing(Engine(PrometheusSettings(url=url))) as engine:
            eventually(
                lambda engine=engine: any(
                    one.value >= told for one in engine.instant(f'{name}{{env="prod"}}')
                ),
                f"{server} does not see {told} events",
            )
    flush = f"{urls['victoria-metrics']}/internal/force_flush"  # new series are found some seconds late else
    httpx.get(flush, trust_env=False, timeout=WITHIN_S).raise_for_status()


def test_figures_are_those_of_the_api(api: PrometheusApi, whole: Client) -> None:
    """Jobs, their order, shares of time by window, options of filters and intervals agree."""
    eventually(lambda: not differing_jobs(api, whole), f"jobs differ: {differing_jobs(api, whole)}")
    for order in ("", "-wall_s", "tts_s", "job", "-job", "progress_age_s"):
        asked = fleet_questions.jobs({"team": "shop"}, order, 3)
        eventually(
            lambda asked=asked: ids(api.ask(asked).jobs) == ids(whole.ask(asked).jobs), f"order {order!r}"
        )
    for window in ("1h", "24h", "7d"):
        asked = fleet_questions.window(window, WEIGHED, {})
        eventually(lambda asked=asked: alike(api.ask(asked).all, whole.ask(asked).all), f"time of {window}")
    options = Question("/api/v1/fleet", Groups, (("window", "7d"), ("weight", "job"), ("group_by", "team")))
    assert {group.key for group in api.ask(options).fleet} == {
        group.key for group in whole.ask(options).fleet
    }
    own = interval_questions.intervals({"text": SLURM})
    (mine,), (theirs,) = api.ask(own).jobs, whole.ask(own).jobs
    assert (mine.interval_s, mine.best_s) == (
        pytest.approx(theirs.interval_s),
        pytest.approx(theirs.best_s),
    )
    assert mine.wasted_percent == pytest.approx(theirs.wasted_percent)


def ids(jobs: list[Job]) -> list[str]:
    return [job.job_id for job in jobs]


def alike(mine, theirs) -> bool:
    share = abs(mine.effective_ratio - theirs.effective_ratio)
    names = mine.components.keys() | theirs.components.keys()
    parts = (mine.components.get(n, 0) - theirs.components.get(n, 0) for n in names)
    return share < ABOUT and max(map(abs, parts)) < ABOUT * theirs.total


def differing_jobs(api: PrometheusApi, whole: Client) -> list[object]:
    """What is not the same of jobs that have ended, which figures stand still."""
    mine, theirs = (source.ask(fleet_questions.jobs({})) for source in (api, whole))
    found = {job.job_id: job for job in mine.jobs}
    wrong: list[object] = [] if mine.total == theirs.total == len(found) else [(mine.total, theirs.total)]
    for job in (job for job in theirs.jobs if job.finished and job.job_id in found):
        own = found[job.job_id]
        for name in (*SAME, *CLOSE, "components"):
            one, two = getattr(own, name), getattr(job, name)
            if one != (two if name in SAME else pytest.approx(two, rel=1e-9)):
                wrong.append((job.job_id, name, one, two))
    return wrong


def test_a_job_that_left_is_shown_as_it_was(fleet: Fleet) -> None:
    """After its exporter has gone no job is listed, and one that is asked for is known as it was at last."""
    everything = fleet_questions.jobs({})
    with ExitStack() as stack:
        apis = [
            stack.enter_context(api_over(fleet.urls[server], "left"))
            for server in ("prometheus", "victoria-metrics")
        ]
        for api in apis:
            eventually(lambda api=api: api.ask(everything).total == len(WORKED_JOBS), "no job is listed")
        fleet.leaving.kill()
        for api in apis:
            eventually(lambda api=api: not api.ask(everything).total, "its jobs are listed still")
            job = api.job(SLURM)
            assert (job.state, job.step) == ("succeeded", 5)
            assert (job.wall_s, sum(job.components.values())) == (pytest.approx(650), pytest.approx(650))
            with pytest.raises(UnknownJobError):
                api.job("nobody")


@pytest.mark.service("chromium")
def test_pages_show_what_there_is_and_say_what_is_lacking(fleet: Fleet, whole: Client) -> None:
    """Each page has its figures or says who has them; when the server goes they stay, greyed."""
    shown = f"{whole.job(SLURM).ett_percent:.1f} %"
    with ExitStack() as stack:
        words = ["--prometheus", fleet.urls["passing"], "--prometheus-matcher", 'env="prod"']
        app, _ = stack.enter_context(serving("dashboard", *words, "--refresh-s", "1"))
        page = stack.enter_context(visiting(stack.enter_context(browsing())))
        for path, seen, lacking in PAGES:
            page.goto(f"{app}/{path}")
            expect(page.get_by_role("note").filter(has_text="Metrics only")).to_have_count(1)
            for text in seen:
                expect(page.get_by_text(text).first).to_be_visible()
            expect(page.locator(".ett-lacking", has_text=LACKING)).to_have_count(lacking)
        page.goto(f"{app}/job?id={SLURM}")
        expect(page.locator(".ett-tile", has_text="Effective training time")).to_contain_text(shown)
        expect(page.locator("table.ett-partition tr.ett-share")).to_have_count(len(OF_SLURM))
        page.get_by_role("link", name="Its checkpoint interval").click()
        expect(page.get_by_text("as measured: 4 saves and 1 failure")).to_be_visible()
        for name in ("attempts", "start", "recovery", "ranks", "saves", "decisions"):
            file = httpx.get(f"{app}/csv/{name}", params={"id": SLURM}, trust_env=False)
            assert (file.status_code, LACKING in file.text) == (501, True), name
        page.goto(f"{app}/?cluster=c1")
        expect(page.get_by_role("table", name="Jobs").get_by_role("row")).to_have_count(3)
        fleet.passing.close()
        banner = page.get_by_role("alert").filter(has_text="The server of metrics cannot be read")
        expect(banner).to_contain_text("What you see is")
        expect(page.get_by_role("table", name="Jobs").get_by_role("row")).to_have_count(3)
        expect(page.locator("[class*=st-key-live]").first).to_have_css("opacity", "0.45")


def test_failures_and_caches_are_counted(api: PrometheusApi) -> None:
    """The one failure of the worked jobs, what it cost, and their requests to caches."""
    asked = failure_questions.failures("1h", "lost", {"cluster": "c1"})
    eventually(
        lambda: about(cost_of_the_one(api.ask(asked)), 1024),
        "the failure does not cost what it did:",
        lambda: api.ask(asked).groups,
    )
    assert sum(part.counts.get("gpu_lost", 0) for part in api.ask(asked).over_time) >= 1
    caches = api.ask(questions.caches({"text": "DLRM-26", "cluster": "c1"}))
    assert (caches.caches["fx_graph"].hits, caches.caches["fx_graph"].misses) == (19, 7)
    assert caches.compile == {"backend": pytest.approx(17)}
    assert not caches.is_recorded
    eventually(
        lambda: latest(api) == pytest.approx(270 / 650),
        "no history:",
        lambda: api.ask(questions.history(SLURM)),
    )


def cost_of_the_one(found: Failures) -> float:
    (group,) = found.groups
    assert (group.key, group.count, group.lost_ratio) == ("gpu_lost", 1, 1.0)
    return group.lost_accelerator_s


def about(value: float, worked: float) -> bool:
    """Whether a growth is as worked; between samples that are few and apart servers guess."""
    return 0.7 * worked < value < 1.5 * worked


def latest(api: PrometheusApi) -> float | None:
    """The effective share of a worked job, where its history ends."""
    points = api.ask(questions.history(SLURM)).effective.get("all")
    return points[-1][1] if points else None
