"""Every page as axe-core and the pictures of the docs judge it, over a simulated fleet.

In both themes, on a desk and on a tablet.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from axe_faults import faults
from browser import expect, sync_api, until, visiting
from likeness import Face, face, face_of, likeness
from PIL import Image
from processes import ETT, serving
from stories import exporting, get

DESK, TABLET = (1280, 900), (820, 1180)
SEEN_AS = (("light", DESK), ("dark", DESK), ("dark", TABLET), ("light", TABLET))
PAGES = {
    "fleet": ("/", "Jobs by state"),
    "job": ("/job?id={job}", "Attempts over time"),
    "failures": ("/failures", "Nodes at which failures point"),
    "failure": ("/failures?id={failure}", "pieces of evidence"),
    "caches": ("/caches", "Runs over time"),
    "checkpoints": ("/checkpoints?job={job}", "Jobs and their intervals"),
    "what-if": ("/what-if?window=7d&levers=recovery,caches", "Each lever alone"),
    "regressions": ("/regressions", "History of"),
    "definitions": ("/definitions?of=start.compile", "Classes of failures"),
    "nothing": ("/failures?model=none-of-these", "No failures"),
    "unknown": ("/job?id=none-of-these", "no job of this name"),
}
"""Pages by name: the address, and words that are shown once there is something to see."""
IMAGES = Path(__file__).parents[2] / "docs" / "img"
PICTURED = ("fleet", "job", "failures", "failure", "caches", "checkpoints", "what-if", "regressions")
JOBS = 40
DELIVERED_WITHIN_S = 900
"""Their past takes up to 90 s on two processors that others use as well."""
ALIKE = 0.6
"""Pages are at least so much like their pictures; two pages are less like each other."""
SAME_GROUND = 6
"""Levels of 255."""

pytestmark = pytest.mark.service("chromium")


@contextmanager
def playing(exporter: str) -> Iterator[None]:
    """A fleet of 40 jobs that goes on: silent ones are called stalled a minute later and stand first."""
    words = ("--scenario", "incident", "--ranks", "8", "--live", "--exporter", exporter)
    with subprocess.Popen([ETT, "simulate", *words], stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + DELIVERED_WITHIN_S
            while not told(exporter):
                assert process.poll() is None, "ett simulate ended"
                assert time.monotonic() < deadline, "the exporter does not come to know the fleet"
                time.sleep(0.5)
            yield
        finally:
            process.terminate()


def told(exporter: str) -> bool:
    """Whether all that lies behind the jobs has come: none hangs in the middle of its past."""
    states = [job["state"] for job in get(f"{exporter}/api/v1/jobs").json()["jobs"]]
    return len(states) >= JOBS and not {"stalled", "lost"} & set(states)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The full address of every page, of an app that stands still over a fleet of 40 jobs."""
    folder = tmp_path_factory.mktemp("accessible")
    with (
        exporting(folder) as (exporter, _),
        serving(
            "dashboard", "--exporter", exporter, "--refresh-s", "3600", "--grafana", "https://grafana.example"
        ) as (app, _),
        playing(exporter),
    ):
        failures = get(f"{exporter}/api/v1/failures").json()["failures"]
        shown = next(one for one in failures if len(one["diagnosis"]["evidence"]) > 1)
        job, failure = quote(shown["job_id"], safe=""), quote(shown["id"], safe="")
        yield {name: app + at.format(job=job, failure=failure) for name, (at, _) in PAGES.items()}


def rest(page: sync_api.Page, scheme: str) -> None:
    """Wait until the page ran to its end in that theme, and all its charts are drawn."""
    settled = """scheme => {
        const app = document.querySelector(".stApp");
        const drawn = [...document.querySelectorAll(".ett-chart")].every((box) => box.dataset.drawn);
        const comes = document.querySelector("[data-testid=stSkeleton]");
        const done = app.dataset.testScriptState === "notRunning" && !comes;
        return drawn && done && getComputedStyle(app).colorScheme === scheme;
    }"""
    until(page, lambda: page.evaluate(settled, scheme), f"the page does not come to rest in {scheme}")


@cache
def picture_of(name: str, scheme: str) -> Face:
    """The picture of a page in the docs."""
    return face_of(path_of(name, scheme))


def path_of(name: str, scheme: str) -> Path:
    return IMAGES / f"{name}{'' if scheme == 'light' else '-dark'}.png"


def sticking_out(page: sync_api.Page) -> list[str]:
    """What is wider than the window, and words that a chart cuts off.

    What scrolls by itself may be wider.
    """
    return page.evaluate("""() => {
        const boxes = [document.scrollingElement, document.querySelector(".stMain")];
        const wide = boxes.filter((box) => box.scrollWidth > box.clientWidth);
        const inside = [...document.querySelectorAll(".stMain *")].filter((node) => {
            const { right, left, width } = node.getBoundingClientRect();
            const isOut = width && (right > innerWidth + 1 || left < -1);
            return isOut && !node.closest(".ett-scroll, svg, caption");
        });
        const cut = [...document.querySelectorAll(".ett-chart text")].filter((text) => {
            const { right, left, width } = text.getBoundingClientRect();
            const chart = text.closest(".ett-chart").getBoundingClientRect();
            return width && (right > chart.right + 2 || left < chart.left - 2);
        });
        const named = [...wide, ...inside].map(({ tagName, className }) => `${tagName} ${className}`);
        return [...named, ...cut.map(({ textContent }) => textContent)];
    }""")


def looks_like_its_picture(page: sync_api.Page, name: str, scheme: str) -> None:
    """Of the same size and ground, and more like its own picture than like that of any other page."""
    own = picture_of(name, scheme)
    page.set_viewport_size({"width": own.size[0], "height": own.size[1]})
    rest(page, scheme)
    shown = face_of(page.screenshot())
    assert shown.size == own.size
    assert max(abs(shown.ground - own.ground)) <= SAME_GROUND, scheme
    found = {other: likeness(shown, picture_of(other, scheme)) for other in PICTURED}
    assert found[name] == max(found.values()) >= ALIKE, (scheme, found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_are_told_apart(scheme):
    """A blank page is like none, a page whose words are a little off is like itself, others are not."""
    for name in PICTURED:
        own = picture_of(name, scheme)
        pixels = np.asarray(Image.open(path_of(name, scheme)).convert("RGB"), dtype=np.int16)
        blank = pixels * 0 + own.ground
        moved = blank.copy()
        moved[4:, 3:] = pixels[:-4, :-3]
        assert likeness(face(blank), own) == 0.0
        assert likeness(face(moved), own) > ALIKE
        assert max(likeness(own, picture_of(other, scheme)) for other in PICTURED if other != name) < ALIKE


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_fault_fits_and_looks_like_its_picture(places, page, name):
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
        assert sticking_out(page) == [], (scheme, width)
        if name in PICTURED and width == DESK[0]:
            looks_like_its_picture(page, name, scheme)
    assert len(grounds) == 2


def test_the_settings_have_no_fault(places, page):
    """The same of what opens over a page."""
    page.goto(places["fleet"])
    page.get_by_text(PAGES["fleet"][1]).first.wait_for()
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("spinbutton", name="Price of an accelerator-hour").wait_for()
    rest(page, "light")
    assert faults(page) == []
    page.get_by_role("combobox", name="Time zone").click()
    page.get_by_role("option", name="Africa/Cairo").wait_for()
    assert faults(page) == []


def test_a_figure_says_what_it_means_to_those_who_cannot_point_at_it(places, page):
    """Reached by key it shows its definition, within the page and without a fault, until Escape."""
    page.goto(places["fleet"])
    page.get_by_text(PAGES["fleet"][1]).first.wait_for()
    rest(page, "light")
    bubble = page.locator(".ett-bubble:not([hidden])")
    for tile in (page.locator(".ett-tile").last, page.locator(".ett-tile").first):
        tile.focus()
        expect(bubble).to_have_text(tile.get_attribute("title"))
        box = bubble.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= DESK[0]
        assert box["y"] + box["height"] <= tile.bounding_box()["y"]
        assert faults(page) == []
    page.keyboard.press("Escape")
    expect(bubble).to_have_count(0)
    page.get_by_role("columnheader", name="ETT").get_by_role("link").focus()
    expect(bubble).to_contain_text("Share of the job's wall time")


def test_a_finger_brings_up_what_a_figure_or_a_column_means(places, chromium):
    """On a tablet, where nothing can be pointed at; a row that leads somewhere still does."""
    with visiting(chromium, viewport={"width": TABLET[0], "height": TABLET[1]}, has_touch=True) as page:
        page.goto(places["job"])
        page.get_by_text(PAGES["job"][1]).first.wait_for()
        rest(page, "light")
        bubble = page.locator(".ett-bubble:not([hidden])")
        page.locator(".ett-tile").nth(1).tap()
        expect(bubble).to_have_text(page.locator(".ett-tile").nth(1).get_attribute("title"))
        page.get_by_role("columnheader", name="Held up by").tap()
        expect(bubble).to_have_text("The rank that was last to begin training.")
        page.locator("tr.ett-share").first.tap()
        expect(bubble).to_have_text(page.locator("tr.ett-share").first.get_attribute("title"))
        page.locator("h1").first.tap()
        expect(bubble).to_have_count(0)
