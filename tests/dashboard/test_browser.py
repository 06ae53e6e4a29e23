"""The app in a real browser, over a real exporter that is fed over HTTP."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest
from stories import Story, exporting, post, recovered, running

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 30_000
HOSTILE = (
    "<script>window.broken=1</script><img src=x onerror='window.broken=1'> ![i](http://x.invalid/i.png) **b**"
)
HEBREW = "\u05e1\u05d5\u05d3"
TURNED = f"\u202e{HEBREW} 🚀 :red[x] $x^2$"

pytestmark = pytest.mark.service("chromium")


@dataclass
class Heard:
    """What a page asked for and complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def listen(self, page: sync_api.Page) -> None:
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        page.on("console", self._console)

    def _console(self, message: sync_api.ConsoleMessage) -> None:
        probing = "/_stcore/" in message.location.get("url", "")  # Streamlit looks for its own base path
        if message.type == "error" and not probing:
            self.complaints.append(message.text)


@pytest.fixture(scope="module")
def chromium() -> Iterator[sync_api.Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(SWITCHES))
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: sync_api.Browser) -> Iterator[sync_api.Page]:
    """A page of 1280 by 900 that must stay on this machine and complain of nothing."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, timezone_id="Europe/Berlin")
    context.set_default_timeout(PATIENCE_MS)
    heard = Heard()
    page = context.new_page()
    heard.listen(page)
    yield page
    context.close()
    strangers = {urlsplit(url).hostname for url in heard.requests if url.startswith("http")} - {"127.0.0.1"}
    assert strangers == set()
    assert heard.complaints == []


def at(app: str, job_id: str) -> str:
    return f"{app}/job?id={quote(job_id, safe='')}"


def cell(page: sync_api.Page, text: str) -> sync_api.Locator:
    """A cell of the table of jobs, as a screen reader finds it."""
    return page.locator("[data-testid=stDataFrame] [role=gridcell]", has_text=text)


def state_of(page: sync_api.Page, name: str) -> Callable[[], str]:
    """Reads the state that the table of jobs shows for a job."""
    row = page.locator("[data-testid=stDataFrame] [role=row]", has_text=name)
    return lambda: str(row.locator("[role=gridcell]").all_inner_texts())


def drawn(page: sync_api.Page, key: str) -> int:
    """How often a chart was drawn so far."""
    return int(page.locator(f".st-key-{key} .ett-chart").get_attribute("data-drawn") or 0)


def until(page: sync_api.Page, met: Callable[[], bool], why: str) -> None:
    ends = time.monotonic() + PATIENCE_MS / 1000
    while not met():
        assert time.monotonic() < ends, why
        page.wait_for_timeout(100)


def test_the_state_of_a_job_changes_on_fleet_without_a_reload(app, exporter, page):
    """A job is seen training, then recovering, then training again, in the page that was opened."""
    story = Story("state/changes", time.time() - 600, job_name="Changing states")
    loop = story.start(5, 0)
    story.train(loop, 560, 0)
    post(exporter, story)
    page.goto(app)
    page.evaluate("window.sameVisit = true")
    state = state_of(page, "Changing states")
    until(page, lambda: "training" in state(), "the job is not shown as training")
    story.fail(565, 0)
    post(exporter, story)
    until(page, lambda: "recovering" in state(), "the job is not shown as recovering")
    expect(page.locator("a.ett-alarm", has_text="Changing states")).to_contain_text("after failure 1")
    loop = story.start(570, 1, resumed_step=story.step // 300 * 300, speed=0.2)
    story.train(loop, 598, 1, every=5)
    post(exporter, story)
    until(page, lambda: "training" in state(), "the job is not shown as training again")
    assert page.evaluate("window.sameVisit") is True


def test_the_partition_shown_is_the_one_of_the_api(app, exporter, page):
    """Every component's seconds stand as the API tells them; shares add up to 100.0 %."""
    story = Story("partition/equal", time.time() - 3000, job_name="Partition")
    loop = story.start(7, 0)
    story.train(loop, 900, 0)
    story.fail(900, 0)
    loop = story.start(931, 1, resumed_step=story.step // 300 * 300)
    story.succeed(story.train(loop, 2500, 1), 1)
    post(exporter, story)
    answer = httpx.get(f"{exporter}/api/v1/jobs/partition/equal").json()
    page.goto(at(app, "partition/equal"))
    rows = page.locator("table.ett-partition tr.ett-share")
    expect(rows).to_have_count(len(answer["components"]))
    shown = {row.get_attribute("data-component"): row.locator("td").all_inner_texts() for row in rows.all()}
    assert {name: cells[3] for name, cells in shown.items()} == {
        name: f"{seconds:,.1f}" for name, seconds in answer["components"].items()
    }
    assert round(sum(float(cells[4].removesuffix(" %")) for cells in shown.values()), 6) == 100.0
    assert page.locator("tr.ett-sum td").all_inner_texts()[3:] == [f"{answer['wall_s']:,.1f}", "100.0 %"]
    expect(page.locator(".ett-tile", has_text="Effective")).to_contain_text(f"{answer['ett_percent']:.1f} %")


def test_the_causes_and_evidence_of_a_failure_are_shown(app, exporter, page):
    """A failure shows its cause in words and the lines that tell of it."""
    post(exporter, recovered("failure/shown", time.time() - 900, 890))
    page.goto(at(app, "failure/shown"))
    cause = httpx.get(f"{exporter}/api/v1/jobs/failure/shown").json()["failure_list"][0]["cause"]
    expect(page.locator("[data-testid=stExpander] summary")).to_contain_text(cause)
    expect(page.locator("[data-testid=stExpander] code")).to_contain_text("Killed process 4711 (python)")


def test_zoom_outlives_refreshes(app, exporter, page):
    """The stretch of time that a viewer zoomed into stays while new data is drawn."""
    story = recovered("zoom/kept", time.time() - 1000, 960)
    post(exporter, story)
    page.goto(at(app, "zoom/kept"))
    chart = page.locator(".st-key-timeline .ett-chart")
    until(page, lambda: chart.count() == 1 and drawn(page, "timeline") > 0, "the timeline is not drawn")
    before = chart.evaluate("box => box._fullLayout.xaxis.range.map(String)")
    area = chart.locator(".nsewdrag").bounding_box()
    middle = area["y"] + area["height"] / 2
    page.mouse.move(area["x"] + area["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.6, middle, steps=8)
    page.mouse.up()
    zoomed = chart.evaluate("box => box._fullLayout.xaxis.range.map(String)")
    assert zoomed != before
    was_drawn = drawn(page, "timeline")
    story.train(970, 995, 1, every=5)
    post(exporter, story)
    step = f"step {story.step:,}"
    expect(page.locator(".ett-said")).to_contain_text(step)
    until(page, lambda: drawn(page, "timeline") >= was_drawn + 2, "the timeline is not drawn again")
    assert chart.evaluate("box => box._fullLayout.xaxis.range.map(String)") == zoomed


def test_words_of_a_job_are_never_interpreted(app, exporter, page):
    """Names, labels and log lines show as they are: no script, picture, link, format or direction."""
    story = Story("hostile/job", time.time() - 300, job_name=HOSTILE, team=TURNED, model="<b>m</b>")
    story.train(story.start(5, 0), 250, 0)
    story.fail(260, 0, text=HOSTILE)
    post(exporter, story)
    for address in (app, at(app, "hostile/job")):
        page.goto(address)
        expect(page.get_by_text("<script>window.broken=1</script>").first).to_be_attached()
        assert page.evaluate("window.broken") is None
        assert page.locator("img[src*=invalid], bdi *, .ett-facts b").count() == 0
    expect(page.locator(".ett-facts")).to_contain_text(f"{HEBREW} 🚀 :red[x] $x^2$")
    assert "\u202e" not in page.locator("body").inner_text()
    expect(page.locator("[data-testid=stExpander] code")).to_contain_text(HOSTILE)


def test_a_row_of_fleet_opens_its_job(app, exporter, page):
    """Choosing a row leads to the page of that job, with an address that can be passed on."""
    post(exporter, recovered("row/opened", time.time() - 700, 690, job_name="Opened by a click"))
    page.goto(app)
    until(page, lambda: cell(page, "Opened by a click").count() > 0, "the job is not in the table")
    rows = page.locator("[data-testid=stDataFrame] [role=row]").all_inner_texts()
    place = next(number for number, text in enumerate(rows) if "Opened by a click" in text)
    page.locator("[data-testid=stDataFrame]").scroll_into_view_if_needed()
    area = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
    page.mouse.click(area["x"] + 160, area["y"] + 35 * (place + 0.5))
    page.wait_for_url("**/job?id=row*opened")
    expect(page.locator(".ett-name h1")).to_have_text("Opened by a click")


def test_an_unknown_job_is_said_to_be_unknown(app, page):
    """An address with a job that the exporter never heard of says so in words."""
    page.goto(at(app, "never/heard-of"))
    expect(page.locator(".ett-empty")).to_contain_text("no job of this name")
    expect(page.locator(".ett-empty")).to_contain_text("never/heard-of")


def test_an_exporter_that_is_gone_leaves_the_last_figures_greyed(page, tmp_path):
    """Without jobs the page says what to do; without an exporter it keeps what it knew, marked as old."""
    with (
        exporting(tmp_path) as (exporter, process),
        running("dashboard", "--exporter", exporter, "--refresh-s", "1") as (app, _),
    ):
        page.goto(app)
        expect(page.locator(".ett-empty pre")).to_contain_text(f"export ETT_EXPORTER_URL={exporter}")
        post(exporter, recovered("kept", time.time() - 700, 690, job_name="Kept in sight"))
        until(page, lambda: cell(page, "Kept in sight").count() > 0, "the job is not in the table")
        process.terminate()
        expect(page.locator(".ett-banner")).to_contain_text(re.compile("nothing answers at|broke"))
        assert cell(page, "Kept in sight").count() > 0
        assert float(page.locator(".st-key-live").evaluate("box => getComputedStyle(box).opacity")) < 0.5
