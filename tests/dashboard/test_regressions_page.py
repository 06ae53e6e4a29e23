"""The Regressions page in a real browser, over a real exporter with a release that slowed starts."""

from __future__ import annotations

import csv
import io
import time
from urllib.parse import quote

import pytest
from browser import expect, until
from stories import Story, post

BEFORE, SINCE = 10, 8
SLOWER = 3.0
MODEL = "slowed <b>x</b>"

pytestmark = pytest.mark.service("chromium")


@pytest.fixture(scope="module")
def slowed(exporter):
    """Ten jobs of a family, and eight since that take three times as long to start, on a new version."""
    begin = time.time() - 86_400
    for number in range(BEFORE + SINCE):
        is_new = number >= BEFORE
        story = Story(f"slowed/{number:02d}", begin + 1800 * number, model=MODEL, team=f"t{number % 3}")
        loop = story.start(5, 0, speed=(SLOWER if is_new else 1.0) * (1.0 + number / 100))
        story.succeed(story.train(loop, loop + 700, 0, every=50), 0)
        post(exporter, story)
    return MODEL


def test_what_became_slower_is_told_and_drawn_with_its_change(app, slowed, page):
    """A card says it in words, the history shows every run and the change; the family can be chosen."""
    page.goto(f"{app}/regressions?model={quote(slowed)}")
    card = page.locator("a.ett-alarm", has_text="Time to start")
    expect(card.first).to_contain_text(f"{SINCE} jobs against {BEFORE}")
    chart = page.locator(".st-key-history_time_to_start .ett-chart")
    points = "boxes => boxes.flatMap(box => (box.data ?? []).map(trace => trace.x.length))"
    until(page, lambda: chart.evaluate_all(points) == [BEFORE, SINCE], "not every run is drawn")
    assert chart.evaluate("box => box.layout.shapes.length") == 3
    assert page.locator("bdi *, .ett-alarm b").count() == 0
    page.get_by_role("table", name="Families").get_by_role("link", name=slowed).click()
    page.wait_for_url("**/regressions?*family=slowed*")
    expect(page.locator(".ett-section h2", has_text="History of")).to_have_text(f"History of {slowed}")


def test_the_runs_behind_a_history_can_be_taken_away(app, slowed, page):
    page.goto(f"{app}/regressions?model={quote(slowed)}")
    links = page.locator(".st-key-live").get_by_role("link", name="Download as CSV")
    expect(links).to_have_count(2)
    with page.expect_download() as downloading:
        links.first.click()
    rows = list(csv.DictReader(io.StringIO(downloading.value.path().read_text(encoding="utf-8"))))
    assert len(rows) == BEFORE + SINCE
    assert all(float(row["time_to_start"]) > 0 for row in rows)


def test_without_runs_the_page_says_what_is_needed(app, page):
    page.goto(f"{app}/regressions?model=none-of-these")
    expect(page.locator(".ett-empty")).to_contain_text("once four jobs of a family have new runs")
