"""The Failures page and the page of one failure in a real browser, over a real exporter."""

from __future__ import annotations

import csv
import io
import time
from urllib.parse import quote

import pytest
from browser import expect, until
from stories import Story, get, post

HOSTILE = (
    "<script>window.broken=1</script><img src=x onerror='window.broken=1'> ![i](http://x.invalid/i.png) **b**"
)
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus"
KILLED = "Killed process 4711 (python)"
FORMULA = "=cmd|'/c calc'!A1"

pytestmark = pytest.mark.service("chromium")


def failed(job_id: str, ago: float, *, model: str, text: str = KILLED, **labels: str) -> Story:
    """A job that trained for five minutes until rank 1 was killed, so many seconds ago."""
    story = Story(job_id, time.time() - ago - 400, model=model, **labels)
    story.train(story.start(5, 0), 390, 0)
    story.fail(400, 0, text=text)
    return story


def rows(page):
    return page.get_by_role("table", name="Failures").get_by_role("row")


def test_a_failure_appears_without_a_reload(app, exporter, page):
    """Where nothing had failed the page says so; a failure that happens then is listed and drawn."""
    page.goto(f"{app}/failures?model=appears")
    page.evaluate("window.sameVisit = true")
    expect(page.locator(".ett-empty")).to_contain_text("No failures")
    post(exporter, failed("appears/one", 60, model="appears", job_name="Fails now"))
    row = rows(page).filter(has_text="Fails now")
    expect(row).to_contain_text("rank 1")
    expect(page.locator(".ett-said")).to_contain_text("1 failure cost")
    for chart in ("classes", "over_time"):
        drawn = page.locator(f".st-key-{chart} .ett-chart")
        until(page, lambda box=drawn: int(box.get_attribute("data-drawn") or 0) > 0, f"{chart} is not drawn")
    assert page.evaluate("window.sameVisit") is True


def test_words_of_a_failure_are_never_interpreted(app, exporter, page):
    """Names and log lines show as they are in the list and in the evidence."""
    labels = {"job_name": HOSTILE, "team": "<b>t</b>"}
    post(exporter, failed("hostile/failure", 60, model="hostile", text=HOSTILE, **labels))
    failure_id = get(f"{exporter}/api/v1/failures?model=hostile").json()["failures"][0]["id"]
    for address in (f"{app}/failures?model=hostile", f"{app}/failures?id={quote(failure_id, safe='')}"):
        page.goto(address)
        expect(page.get_by_text("<script>window.broken=1</script>").first).to_be_visible()
        assert page.evaluate("window.broken") is None
        assert page.locator("img[src*=invalid], bdi *, .ett-facts b").count() == 0
    expect(page.locator("tr.ett-line .ett-text").first).to_contain_text("**b**")


def test_three_clicks_lead_from_the_worst_job_to_the_line_of_the_rank_that_failed(app, exporter, page):
    """From Fleet to the job in trouble, to its failure, to the evidence in order of time across ranks."""
    post(exporter, failed("drill/down", 30, model="drill", job_name="Worst of all", text=LOST))
    page.goto(f"{app}/?model=drill")
    page.locator("a.ett-alarm", has_text="Worst of all").click()
    expect(page.locator(".ett-name h1")).to_have_text("Worst of all")
    page.get_by_role("link", name="Evidence across ranks").first.click()
    expect(page.locator(".ett-name h1")).to_have_text("gpu_lost")
    line = page.locator("tr.ett-line[data-role=root]").first
    expect(line).to_contain_text("fallen off the bus")
    expect(line).to_contain_text("on node-a")
    expect(page.locator(".ett-said")).to_contain_text("power-cycle")
    times = page.locator("tr.ett-line td:nth-child(2)").all_inner_texts()
    seconds = [float(text.removesuffix(" s")) for text in times]
    assert seconds == sorted(seconds)


def test_a_failure_leads_to_what_its_class_means_and_to_the_caches_of_its_job(app, exporter, page):
    """With the settings of the viewer."""
    post(exporter, failed("leads/on", 60, model="leads", text=LOST))
    failure_id = get(f"{exporter}/api/v1/failures?model=leads").json()["failures"][0]["id"]
    page.goto(f"{app}/failures?id={quote(failure_id, safe='')}&zone=UTC")
    page.get_by_role("link", name="gpu_lost").click()
    page.wait_for_url("**/definitions?zone=UTC&of=gpu_lost")
    expect(page.locator(".ett-said")).to_contain_text("fell off the bus")
    page.go_back()
    page.get_by_role("link", name="Its compile caches").click()
    page.wait_for_url("**/caches?zone=UTC&text=leads%2Fon")
    expect(page.locator(".ett-head h1")).to_have_text("Caches")


def test_the_list_can_be_taken_away_with_formulas_disarmed(app, exporter, page):
    """The link gives what is asked for, all fields of it; a name that starts a formula is only text."""
    post(exporter, failed("taken/one", 60, model="taken", job_name=FORMULA))
    page.goto(f"{app}/failures?model=taken")
    with page.expect_download() as downloading:
        page.locator(".st-key-live a[href^='csv/failures?']").click()
    (row,) = csv.DictReader(io.StringIO(downloading.value.path().read_text(encoding="utf-8")))
    told = get(f"{exporter}/api/v1/failures?model=taken").json()["failures"][0]
    assert row["id"] == told["id"]
    assert float(row["unsaved_s"]) == told["losses"]["unsaved_s"]
    assert row["job_name"] == f"'{FORMULA}"


def test_conditions_stand_in_the_address(app, exporter, page):
    """Choosing a domain or a time changes the address, and the address alone gives the same page."""
    post(exporter, failed("chosen/one", 60, model="chosen", job_name="Chosen one"))
    page.goto(f"{app}/failures?model=chosen")
    expect(rows(page).filter(has_text="Chosen one")).to_have_count(1)
    page.get_by_role("link", name="platform", exact=True).click()
    page.wait_for_url("**/failures?*domain=platform*")
    expect(page.locator(".ett-empty")).to_contain_text("domain")
    assert "model=chosen" in page.url
    page.reload()
    expect(page.locator(".ett-empty")).to_contain_text("domain")
    page.get_by_role("link", name="anybody").click()
    expect(rows(page).filter(has_text="Chosen one")).to_have_count(1)


def test_a_failure_that_nobody_knows_is_said_to_be_unknown(app, page):
    page.goto(f"{app}/failures?id=never~7")
    expect(page.locator(".ett-empty")).to_contain_text("no failure of this name")
    page.get_by_role("link", name="All failures").click()
    expect(page.locator(".ett-head h1")).to_have_text("Failures")
