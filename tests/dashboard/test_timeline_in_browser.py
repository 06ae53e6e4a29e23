"""The timeline of a job in a real browser: finer where it is zoomed, clicks that lead on, the way back."""

from __future__ import annotations

import time
from urllib.parse import quote

import pytest
from browser import TooLate, expect, until
from stories import Story, get, post, recovered

pytestmark = pytest.mark.service("chromium")

TIMELINE = ".st-key-timeline .ett-chart"
PLACE = """(box, [name, way]) => {
  const trace = box.data.find((each) => each.name === name);
  const { xaxis, yaxis } = box._fullLayout;
  const { x, y } = box.getBoundingClientRect();
  const across = trace.x.map((moment) => xaxis.d2p(moment));
  const isMeant = (at, point) => at > 9 && at < xaxis._length && trace.customdata[point].includes(way);
  const place = across.findIndex(isMeant);
  const height = trace.base ? trace.base[place] + trace.y[place] / 2 : trace.y[place];
  return [x + xaxis._offset + across[place], y + yaxis._offset + yaxis.d2p(height)];
}"""
UNDER = "(box, way) => String(box._hoverdata?.[0]?.customdata).includes(way)"
FACE = """timeline => {
  const box = document.querySelector(timeline);
  return box && JSON.stringify([box.dataset.drawn, box.getBoundingClientRect()]);
}"""
SOON_MS = 5_000
RANGE = "box => box._fullLayout.xaxis.range.map(String)"
NARROWEST = "box => Math.min(...box.data.flatMap((trace) => trace.width ?? []))"


def timeline_of(page, app, job_id):
    page.goto(f"{app}/job?id={quote(job_id, safe='')}")
    expect(page.locator(f"{TIMELINE}[data-drawn]")).to_be_visible()
    return page.locator(TIMELINE)


def drag(page, chart, begin, end):
    """Zoom into a part of the width."""
    chart.scroll_into_view_if_needed()
    area = chart.locator(".nsewdrag").bounding_box()
    middle = area["y"] + area["height"] * 0.8
    page.mouse.move(area["x"] + area["width"] * begin, middle)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * end, middle, steps=8)
    page.mouse.up()
    past = "box => Date.now() - box._mouseDownTime > 500"  # a click at once would make a double one
    until(page, lambda: chart.evaluate(past), "the clock stands still")


def choose(page, chart, name, way, address):
    """Click on a bar or a mark in sight that leads to an address with some words in it, and go there.

    A chart that is drawn anew or moves between the look and the click has something else under the mouse:
    then, and only then, it is clicked again, as a viewer would.
    """
    chart.scroll_into_view_if_needed()

    # Plotly looks at most every 50 ms what is under the mouse, and a click takes what it saw last.
    def is_over():
        page.mouse.move(*chart.evaluate(PLACE, [name, way]), steps=3)
        return chart.evaluate(UNDER, way)

    is_still = False
    while not is_still:
        until(page, is_over, f"the mouse finds no {name}")
        face = page.evaluate(FACE, TIMELINE)
        page.mouse.down()
        page.mouse.up()
        try:
            page.wait_for_url(address, timeout=SOON_MS)
        except TooLate:
            is_still = page.evaluate(FACE, TIMELINE) == face
        else:
            return
    page.wait_for_url(address)


def test_what_is_zoomed_into_is_drawn_finer(app, exporter, page):
    """Of a job of days the zoomed hours show each report, and stay zoomed."""
    story = Story("finer/job", time.time() - 60_000)
    story.succeed(story.train(story.start(5, 0), 40_000, 0), 0)
    post(exporter, story)
    chart = timeline_of(page, app, "finer/job")
    assert chart.evaluate(NARROWEST) > 20_000
    drag(page, chart, 0.5, 0.52)
    zoomed = chart.evaluate(RANGE)
    until(page, lambda: chart.evaluate(NARROWEST) < 12_000, "nothing finer is drawn")
    assert chart.evaluate(RANGE) == zoomed


def test_an_attempt_and_a_failure_are_chosen_by_a_click(app, exporter, page):
    """A bar chooses its attempt in the address and keeps the zoom; a cross leads to its failure."""
    story = recovered("chosen/job", time.time() - 1000, 900)
    story.succeed(910, 1)
    post(exporter, story)
    failure = get(f"{exporter}/api/v1/jobs/chosen/job").json()["failure_list"][0]["id"]
    chart = timeline_of(page, app, "chosen/job")
    drag(page, chart, 0.1, 0.9)
    zoomed = chart.evaluate(RANGE)
    choose(page, chart, "training", "attempt=0", "**/job?id=chosen*attempt=0")
    expect(page.locator(".ett-table", has_text="attempt 0").locator(".ett-chosen")).to_contain_text(
        "attempt 0"
    )
    assert chart.evaluate(RANGE) == zoomed
    choose(page, chart, "failure", "failures", f"**/failures?id={quote(failure, safe='')}")
    page.go_back()
    page.wait_for_url("**/job?id=chosen*attempt=0")
    expect(page.locator(".ett-name h1")).to_have_text("chosen/job")


def test_back_and_forward_at_once_leave_the_page_of_the_address(app, exporter, page):
    """However fast a viewer goes to and fro, what is drawn in the end is what the address says."""
    for name in ("one", "two"):
        post(exporter, recovered(f"hasty/{name}", time.time() - 700, 690))
    page.goto(f"{app}/failures")
    until(page, lambda: page.evaluate("window.ettFollows"), "links are not followed in the page")
    visit = """href => {
      const link = Object.assign(document.createElement("a"), { href, className: "ett-go" });
      document.body.append(link);
      link.click();
      link.remove();
    }"""
    for hurry_ms in (0, 40, 150):
        for href in ("job?id=hasty/one", "job?id=hasty/two", "checkpoints"):
            page.evaluate(visit, href)
            page.wait_for_timeout(hurry_ms)
        for _ in range(2):
            page.evaluate("history.back()")
            page.wait_for_timeout(hurry_ms)
        page.wait_for_url("**/job?id=hasty/one")
        expect(page.locator(".ett-name h1")).to_have_text("hasty/one")
        page.evaluate("history.forward()")
        page.wait_for_url("**/job?id=hasty/two")
        expect(page.locator(".ett-name h1")).to_have_text("hasty/two")
        expect(page.locator("h1")).to_have_count(1)
