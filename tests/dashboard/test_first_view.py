"""What the document of a page says before any script has run, over HTTP and in a real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from axe_faults import faults
from browser import expect, sync_api, until
from likeness import face_of, likeness
from processes import PATIENCE_S, serving
from stories import Story, exporting, get, post, recovered
from streamlit import file_util

from ett_dashboard.document import FirstView, document, shell
from ett_dashboard.table import Cell, Column, Row, as_html
from ett_dashboard.views.pages import PAGES

HOSTILE = "</template><script>window.broken=1</script>\"'><img src=x onerror='window.broken=1'>"
ALIKE = 0.6
"""As much as pages are like their pictures in the docs."""

browsing = pytest.mark.service("chromium")


def told(address: str, part: str = "") -> str:
    """The first view in the document at an address, once it holds a part."""

    def read() -> str:
        answer = get(address)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        (found,) = re.findall(r'<template shadowrootmode="closed">(.*?)</template>', answer.text, re.DOTALL)
        return found.split("</style>")[1]

    return holding(part, read)


def holding(part: str, read: Callable[[], str]) -> str:
    """What is read, once it holds a part: a document waits only a moment for the exporter."""
    until_s = time.monotonic() + PATIENCE_S
    while part not in (found := read()):
        assert time.monotonic() < until_s, part
        time.sleep(0.1)
    return found


def named(table: str) -> str:
    """What the document says of a table of that name."""
    return f"<caption>{table}</caption>"


def words(html: str) -> str:
    return unescape(re.sub("<[^>]+>", " ", html))


@pytest.fixture(scope="module")
def posted(exporter: str) -> Story:
    """The job that goes on of those that these tests look at."""
    seen = recovered("first/seen", time.time() - 1000, 960, job_name="Seen at once", team="First")
    post(exporter, seen)
    over = recovered("first/over", time.time() - 1000, 960, job_name="Over at once", team="First over")
    over.succeed(970, 1)
    post(exporter, over)
    until_s = time.monotonic() + PATIENCE_S
    while not get(f"{exporter}/api/v1/fleet?window=24h&team=First").json()["all"]["effective_ratio"]:
        assert time.monotonic() < until_s  # sums are of views up to a second old
        time.sleep(0.1)
    return seen


def trains(exporter: str, story: Story) -> None:
    """The job reports this moment: one that is silent for long is called stalled."""
    story.go_on(1)
    post(exporter, story)


def test_fleet_says_its_sentence_figures_and_rows_at_once(app, exporter, posted):
    """What is in trouble, what the fleet reached, and each job with its state, as on the page."""
    parts = (r"Seen at once\s+training", r"ETT, 24 h\s+\d", "1 job spent .* accelerator-hours", "1 job ")
    shown, until_s = "", time.monotonic() + PATIENCE_S
    while lacking := [part for part in parts if not re.search(part, shown)]:
        assert time.monotonic() < until_s, (lacking, shown)
        trains(exporter, posted)
        shown = words(told(f"{app}/?team=First", named("Jobs")))
    assert "Seen at once" not in words(told(f"{app}/?team=nobody"))


def test_a_job_says_how_it_is_at_once(app, exporter, posted):
    """The sentence of a job that goes on, and the start that the address chooses."""
    trains(exporter, posted)
    shown = words(told(f"{app}/job?id={quote(posted.job_id, safe='')}&attempt=0", named("Attempts")))
    assert re.search(r"Training, step [\d,]+, last progress", shown)
    assert "Attempt 0 was in its loop after" in shown


@pytest.mark.usefixtures("posted")
def test_a_job_says_where_its_time_went_at_once(app, exporter):
    """The figures, and every second by component, of a job that is over."""
    answer = get(f"{exporter}/api/v1/jobs/first/over").json()
    html = told(f"{app}/job?id=first%2Fover", named("Attempts"))
    assert f"{answer['ett_percent']:.1f} %" in words(html)
    cells = dict(re.findall(r'data-component="([\w.]+)" title="[^"]*"><td>.*?<td>([\d,.]+)</td>', html))
    assert cells == {name: f"{seconds:,.1f}" for name, seconds in answer["components"].items()}


@pytest.mark.parametrize(
    ("path", "title"),
    [("job?id=first/never-heard-of", "Job"), ("job", "Job"), *((one.path, one.title) for one in PAGES[2:])],
)
def test_a_page_that_has_nothing_to_say_yet_says_which_one_comes(app, path, title):
    """The bar marks it; no figure stands for one that is not known."""
    html = told(f"{app}/{path}")
    assert re.search(f'aria-current="page">{title}<', html)
    assert f"<h1>{title}</h1>" in html
    assert "ett-tile" not in html


def test_without_an_exporter_the_document_comes_all_the_same(tmp_path):
    """What cannot be read is not waited for, and no old figure stands for it."""
    with exporting(tmp_path) as (exporter, process), serving("dashboard", "--exporter", exporter) as (app, _):
        process.terminate()
        process.wait(PATIENCE_S)
        assert "<h1>Fleet</h1>" in told(f"{app}/")


def test_the_installed_streamlit_has_the_document_that_is_known():
    """A first view stands in it once, and only its own small script begins the others."""
    index = (Path(file_util.get_static_dir()) / "index.html").read_text(encoding="utf-8")
    parts = shell(index)
    assert parts is not None
    html = document(parts, FirstView("<p>seen</p>", ".there"))
    assert html.count("<p>seen</p>") == 1
    assert html.count('type="module"') == index.count('type="module"') - 1 == 0
    assert f'data-app="{parts.app}"' in html
    assert (Path(file_util.get_static_dir()) / parts.app).is_file()
    assert html.index('<div id="root">') < html.index("<p>seen</p>") < html.index("data-app")
    assert '@font-face{font-family:"Source Sans"' in html


def test_a_document_of_another_streamlit_is_left_as_it_is():
    assert shell("<html><head></head><body></body></html>") is None


@pytest.fixture(scope="module")
def hostile(app: str, exporter: str) -> dict[str, str]:
    """Addresses at which a job with a hostile name and team is told, by the table that stands there."""
    story = Story("first/hostile", time.time() - 300, job_name=HOSTILE, team=HOSTILE)
    story.train(story.start(5, 0), 250, 0)
    post(exporter, story)
    return {"Jobs": f"{app}/?text=first%2Fhostile", "Attempts": f"{app}/job?id=first/hostile"}


def test_words_of_a_job_stay_words(hostile):
    """No name ends the place where it stands."""
    for address in hostile.values():
        html = told(address, escape(HOSTILE)[:40])
        assert not re.search("<(script|img)", html)


@browsing
@pytest.mark.parametrize("table", ["Jobs", "Attempts"])
def test_a_browser_takes_words_of_a_job_for_words(hostile, page, table):
    """Nothing of a hostile name runs or is fetched, and all of it is seen."""
    seen_first(page, hostile[table], table)
    first = "document.getElementById('ett-first').shadowRoot"
    assert HOSTILE[:40] in page.evaluate(f"{first}.textContent")
    assert page.evaluate(f"{first}.querySelectorAll('script, img, bdi *').length") == 0
    assert page.evaluate("window.broken") is None


def test_a_table_says_which_words_are_inert():
    """What is set as text by a script is escaped where there is none."""
    column = Column(title="<a>", help='"b"', end=True, sorted="ascending", href="?x&y")
    row = Row('"', [Cell("<i>", href='"><i>', hue='"#fff', hint='"', share=0.5)], chosen=True)
    html = as_html([column], [row], caption="<b>")
    assert re.findall(r"<(\w+)", html) == [
        *("div", "table", "caption", "thead", "tr", "th", "a", "tbody", "tr", "td", "a")
    ]
    assert html.count('"') % 2 == 0


def facts(page: sync_api.Page, root: str, name: str) -> list[list[list[str]]]:
    """Of each row of a table what its cells are; without figures, which go on."""
    return page.evaluate(
        """([root, name]) => {
            const told = (cell) => {
                const inner = cell.firstElementChild;
                const of = (node) => [node.tagName, node.className.trim(), node.title];
                const hue = inner.style.getPropertyValue("--hue");
                return [...of(cell), ...of(inner), inner.getAttribute("href") ?? "", hue];
            };
            const tables = [...eval(root).querySelectorAll("table")];
            const table = tables.find((one) => one.caption?.textContent === name);
            return [...table.rows].map((row) => [...row.cells].map(told));
        }""",
        [root, name],
    )


def open_told(page: sync_api.Page, address: str, table: str, change: Callable[[str], str]) -> None:
    """Open a page with a first view that holds a table; `change` makes another document of it."""

    def answer(route: sync_api.Route) -> None:
        if route.request.resource_type != "document":
            route.continue_()
            return
        html = holding(named(table), lambda: route.fetch().text())
        route.fulfill(body=change(html), content_type="text/html; charset=utf-8")

    page.route("**/*", answer)
    page.goto(address)


def seen_first(page: sync_api.Page, address: str, table: str) -> None:
    """Open a page of which the first view can be looked into; it stays, as the app never begins."""

    def open_up(html: str) -> str:
        assert html.count("import(app)") == 1
        opened = html.replace('shadowrootmode="closed"', 'shadowrootmode="open"')
        return opened.replace("import(app)", "undefined")

    open_told(page, address, table, open_up)


@browsing
@pytest.mark.usefixtures("posted")
@pytest.mark.parametrize(
    ("path", "table", "height"),
    [("/?team=First+over", "Jobs", 600), ("/job?id=first%2Fover", "Attempts", 400)],
)
def test_what_is_seen_first_is_like_the_page_and_has_no_fault(app, page, path, table, height):
    """The same parts at the same places above the charts; the table is built as the page builds it."""
    page.set_viewport_size({"width": 1280, "height": height})
    seen_first(page, app + path, table)
    expect(page.get_by_role("table", name=table)).to_be_visible()
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert faults(page) == [], scheme
    first = face_of(page.screenshot())
    told_first = facts(page, "document.getElementById('ett-first').shadowRoot", table)
    other = page.context.new_page()
    other.set_viewport_size({"width": 1280, "height": height})
    other.goto(app + path)
    until(other, lambda: other.locator("#ett-first").count() == 0, "the app does not take over")
    expect(other.get_by_role("table", name=table)).to_be_visible()
    assert facts(other, "document", table) == told_first
    drawn = "[...document.querySelectorAll('.ett-chart')].every((box) => box.dataset.drawn)"
    until(other, lambda: other.evaluate(drawn), "charts are missing")
    page_itself = face_of(other.screenshot())
    assert max(abs(first.ground - page_itself.ground)) == 0
    assert likeness(first, page_itself) >= ALIKE


@browsing
@pytest.mark.usefixtures("posted")
def test_the_app_takes_over(app, page):
    """Nothing of the first view is left, and links are followed without a new document."""
    page.goto(f"{app}/?team=First")
    until(page, lambda: page.locator("#ett-first").count() == 0, "the app does not take over")
    page.evaluate("window.sameVisit = true")
    page.get_by_role("table", name="Jobs").get_by_role("link", name="Seen at once").click()
    expect(page.locator(".ett-name h1")).to_have_text("Seen at once")
    assert page.evaluate("window.sameVisit") is True


@browsing
@pytest.mark.usefixtures("posted")
def test_a_scrolled_first_view_stays_where_it_was(app, page):
    """What comes behind it is scrolled to the same place before it is seen."""
    page.set_viewport_size({"width": 1280, "height": 400})
    held = []
    is_open = []

    def hold(socket: sync_api.WebSocketRoute) -> None:
        held.clear()
        server = socket.connect_to_server()
        server.on_message(lambda said: socket.send(said) if is_open else held.append((socket, said)))

    page.route_web_socket("**/_stcore/stream", hold)

    def is_high() -> bool:
        """Whether the document came with what the exporter knows, for which it waits only a moment."""
        page.goto(f"{app}/job?id=first%2Fseen")
        return page.evaluate("document.getElementById('ett-first').scrollHeight") > 400 + 120

    until(page, is_high, "the first view stays empty")
    until(page, lambda: held, "the app does not answer")
    page.evaluate("document.getElementById('ett-first').scrollTo(0, 120)")
    is_open.append(True)
    for socket, said in held:
        socket.send(said)
    until(page, lambda: page.locator("#ett-first").count() == 0, "the app does not take over")
    assert page.evaluate("document.querySelector('.stMain').scrollTop") == 120
