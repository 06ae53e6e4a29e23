"""Every page as axe-core judges it, in both themes, on a desk and on a tablet, over a simulated fleet."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from axe_faults import faults
from browser import sync_api, until
from stories import ETT, exporting, running

DESK, TABLET = (1280, 900), (820, 1180)
SEEN_AS = (("light", DESK), ("dark", DESK), ("dark", TABLET))
PAGES = {
    "fleet": ("/", "Jobs by state"),
    "job": ("/job?id={job}", "Attempts over time"),
    "failures": ("/failures", "Nodes at which failures point"),
    "failure": ("/failures?id={failure}", "pieces of evidence"),
    "caches": ("/caches", "Runs over time"),
    "checkpoints": ("/checkpoints?job={job}", "Jobs and their intervals"),
    "what-if": ("/what-if?window=7d&levers=recovery,caches", "Each lever alone"),
    "regressions": ("/regressions", "History of"),
    "nothing": ("/failures?model=none-of-these", "No failures"),
    "unknown": ("/job?id=none-of-these", "no job of this name"),
}
"""Pages by name: the address, and words that are shown once there is something to see."""

pytestmark = pytest.mark.service("chromium")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The full address of every page, of an app that stands still over a fleet of 40 jobs."""
    folder = tmp_path_factory.mktemp("accessible")
    with (
        exporting(folder) as (exporter, _),
        running(
            "dashboard", "--exporter", exporter, "--refresh-s", "3600", "--grafana", "https://grafana.example"
        ) as (app, _),
    ):
        words = ("--scenario", "incident", "--ranks", "8", "--exporter", exporter)
        subprocess.run([ETT, "simulate", *words], check=True, capture_output=True, timeout=120)
        failures = httpx.get(f"{exporter}/api/v1/failures").json()["failures"]
        shown = next(one for one in failures if len(one["diagnosis"]["evidence"]) > 1)
        job, failure = quote(shown["job_id"], safe=""), quote(shown["id"], safe="")
        yield {name: app + at.format(job=job, failure=failure) for name, (at, _) in PAGES.items()}


def rest(page: sync_api.Page, scheme: str) -> None:
    """Wait until the page ran to its end in that theme, and all its charts are drawn."""
    settled = """scheme => {
        const app = document.querySelector(".stApp");
        const drawn = [...document.querySelectorAll(".ett-chart")].every((box) => box.dataset.drawn);
        const done = app.dataset.testScriptState === "notRunning";
        return drawn && done && getComputedStyle(app).colorScheme === scheme;
    }"""
    until(page, lambda: page.evaluate(settled, scheme), f"the page does not come to rest in {scheme}")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_fault_and_fits(places, page, name):
    """In either theme and width axe-core finds nothing, and nobody has to scroll sideways."""
    page.goto(places[name])
    page.get_by_text(PAGES[name][1]).first.wait_for()
    grounds = set()
    for scheme, (width, height) in SEEN_AS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        rest(page, scheme)
        grounds.add(page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor"))
        assert faults(page) == [], (scheme, width)
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), (scheme, width)
    assert len(grounds) == 2


def test_the_settings_have_no_fault(places, page):
    """The same of what opens over a page."""
    page.goto(places["fleet"])
    page.get_by_text(PAGES["fleet"][1]).first.wait_for()
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("spinbutton", name="Price of an accelerator-hour").wait_for()
    rest(page, "light")
    assert faults(page) == []
