"""A report in a real browser without a network: figures drawn, both themes, on paper, every word inert."""

from __future__ import annotations

import time

import pytest
from axe_faults import faults
from browser import expect, until, visiting
from stories import Story, post, recovered

from ett_cli.main import main

HOSTILE = "</script><script>window.broken=1</script><img src=x onerror='window.broken=1'> =1+1 **b**"

pytestmark = pytest.mark.service("chromium")


@pytest.fixture(scope="module")
def reports(exporter, tmp_path_factory):
    """The folder of a report of a job with a hostile name, and of the fleet that it belongs to."""
    folder = tmp_path_factory.mktemp("reports")
    story = recovered("report/hostile", time.time() - 900, 890, job_name=HOSTILE, team=HOSTILE)
    post(exporter, story)
    failed = Story("report/failed", time.time() - 600, job_name="Failed for good")
    failed.train(failed.start(5, 0), 300, 0)
    failed.fail(310, 0, text=HOSTILE)
    post(exporter, failed)
    for words in (["report/hostile"], ["report/failed"], ["--fleet", "24h"]):
        name = words[-1].replace("/", "-")
        assert main(["report", *words, "--exporter", exporter, "--out", str(folder / f"{name}.html")]) == 0
    return folder


@pytest.mark.parametrize("name", ["report-hostile", "report-failed", "24h"])
def test_a_report_opens_without_a_network(chromium, reports, name):
    """Every figure is drawn, nothing is asked for, words of a job show as text; axe-core finds no fault."""
    with visiting(chromium, offline=True) as page:
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto((reports / f"{name}.html").as_uri())
        boxes = page.locator(".ett-chart")
        assert boxes.count() >= 2
        for box in boxes.all():
            expect(box).to_have_attribute("data-drawn", "1")
            assert box.locator("svg.main-svg").count() > 0
        assert requests == [page.url]
        assert page.evaluate("window.broken") is None
        assert page.locator("img, iframe, bdi *, svg a").count() == 0
        assert page.get_by_text("<script>window.broken=1</script>").count() > 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert faults(page) == [], scheme


def test_a_report_follows_the_theme_and_can_be_turned_round(chromium, reports):
    """Dark where the reader's system is; the button turns it, and the figures with it."""
    with visiting(chromium, offline=True, color_scheme="dark") as page:
        page.goto((reports / "report-failed.html").as_uri())
        ground = "getComputedStyle(document.body).backgroundColor"
        expect(page.locator(".ett-chart").first).to_have_attribute("data-drawn", "1")
        assert page.evaluate(ground) == "rgb(18, 24, 27)"
        inked = "document.querySelector('.ett-chart')._fullLayout.font.color"
        assert page.evaluate(inked) == "#e6ebe9"
        page.get_by_role("button", name="Light or dark").click()
        expect(page.locator(".ett-chart").first).to_have_attribute("data-drawn", "2")
        assert page.evaluate(ground) == "rgb(246, 247, 245)"
        assert page.evaluate(inked) == "#1c2529"


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_on_paper_a_report_is_light_and_open(chromium, reports, scheme):
    """Printed, the theme is light, evidence is unfolded, and figures are as wide as the paper."""
    with visiting(chromium, offline=True, color_scheme=scheme) as page:
        page.goto((reports / "report-failed.html").as_uri())
        expect(page.locator(".ett-chart").first).to_have_attribute("data-drawn", "1")
        page.locator("details > summary").first.click()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
        assert page.locator("details:not([open])").count() == 0
        until(
            page,
            lambda: page.evaluate("document.querySelector('.ett-chart')._fullLayout.width") <= 690,
            "figures are wider than the paper",
        )
        wide = "[...document.querySelectorAll('.ett-chart')].map((box) => box._fullLayout.width)"
        assert min(page.evaluate(wide)) > 600  # none as narrow as the column that it stands in on a screen
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == scheme
        assert page.locator("details:not([open])").count() == 1
        assert page.pdf().startswith(b"%PDF-")
