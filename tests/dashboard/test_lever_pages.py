"""Caches, Checkpoints and What-if in a real browser, over a real exporter that is fed over HTTP."""

from __future__ import annotations

import re
import threading
import time
from urllib.parse import quote

import pytest
from browser import expect, until
from processes import PATIENCE_S
from stories import Story, get, post

from ett_core.events import Cache, PhaseBegin, PhaseEnd
from ett_dashboard.words import duration

pytestmark = [pytest.mark.service("chromium"), pytest.mark.usefixtures("jobs")]

HOSTILE = "<img src=x onerror='window.broken=1'> **b**"


def told(name: str, began_s_ago: float, *, hits: int, compile_s: float, torch: str = "2.13.0", **labels: str):
    """A job that compiled for some seconds, trained for a while, saved, and was killed."""
    slug = "".join(letter for letter in name if letter.isalnum())
    story = Story(f"levers/{slug}", time.time() - began_s_ago, model="levers", job_name=name, **labels)
    story.versions = {"torch": torch}
    loop = story.start(12.0, 0)
    for rank in (0, 1):
        story.tell(PhaseBegin, loop, 0, rank, phase="compile")
        story.tell(PhaseEnd, loop + compile_s, 0, rank, phase="compile")
        for cache in ("fx_graph", "aot_autograd"):
            story.tell(Cache, loop + compile_s, 0, rank, cache=cache, hits=hits, misses=100 - hits)
    until_s = story.train(loop + compile_s, loop + compile_s + 400.0, 0)
    story.fail(until_s + 1.0, 0)
    return story


@pytest.fixture(scope="module")
def jobs(exporter, app):
    """Three warm runs of one family, then a cold one with another torch: it was expected to be warm.

    Answers about all runs are kept for some seconds: it waits until they hold these.
    """
    for number in range(3):
        post(exporter, told(f"warm {number}", 4000.0 - 600 * number, hits=96, compile_s=20.0))
    post(exporter, told("cold", 1500.0, hits=1, compile_s=300.0, torch="2.14.0"))
    post(exporter, told(HOSTILE, 1000.0, hits=97, compile_s=20.0))
    ends, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while len(get(f"{app}/csv/cache-runs", params={"family": "levers"}).text.splitlines()) < 6:
        assert time.monotonic() < ends, "the runs are not told"
        pause.wait(0.5)


def test_two_runs_are_compared_and_the_cold_one_is_explained(app, page):
    """From what was unexpected to the comparison in one click: which run was cold, how cold, and why."""
    page.goto(f"{app}/caches?family=levers")
    unexpected = page.locator("a.ett-alarm", has_text="cold · attempt 0")
    expect(unexpected).to_contain_text("the 3 runs of its family before it were warm")
    unexpected.click()
    said = page.locator(".st-key-comparison .ett-said")
    expect(said).to_contain_text("The cold one is cold · attempt 0: it compiled 5 m")
    expect(said).to_contain_text("Torch changed from 2.13.0 to 2.14.0")
    rows = page.locator(".ett-pair tr.ett-differs")
    expect(rows.filter(has_text="torch")).to_contain_text("2.14.0")
    expect(rows.filter(has_text="FX graph hit rate")).to_contain_text("96.0 %")
    assert "family=levers" in page.url
    page.get_by_role("link", name="close").click()
    expect(page.locator(".ett-pair")).to_have_count(0)


def test_any_two_runs_can_be_put_side_by_side(app, page):
    """One row is put first, another one beside it; the address can be passed on."""
    page.goto(f"{app}/caches?family=levers")
    page.locator(".ett-table tr", has_text="warm 0").get_by_role("link", name="as first").click()
    page.locator(".ett-table tr", has_text="warm 2").get_by_role("link", name="with the first").click()
    expect(page.locator(".st-key-comparison .ett-said")).to_contain_text("Both were warm")
    page.goto(page.url)
    expect(page.locator(".ett-pair th a")).to_have_text(["warm 0 · attempt 0", "warm 2 · attempt 0"])


def test_words_of_a_job_are_never_interpreted_among_caches(app, page):
    page.goto(f"{app}/caches?family=levers")
    expect(page.locator(".ett-table")).to_contain_text(HOSTILE)
    run = quote("levers/imgsrcxonerrorwindowbroken1b~0", safe="")
    page.goto(f"{app}/caches?one={quote('levers/cold~0', safe='')}&two={run}")
    expect(page.locator(".ett-pair")).to_contain_text(HOSTILE)
    assert page.evaluate("window.broken") is None
    assert page.locator("img[src=x]").count() == 0


def test_runs_that_are_gone_are_said_to_be_unknown(app, page):
    page.goto(f"{app}/caches?one=never~0&two=heard~1")
    expect(page.locator(".st-key-comparison")).to_contain_text("no run 'never~0'")


def test_the_curve_of_a_job_shows_the_measured_point_and_the_best_one(app, exporter, page):
    """A row leads to its curve, read as the exporter says; a slider changes the advice and the address."""
    page.goto(f"{app}/checkpoints?model=levers")
    page.locator(".ett-table a", has_text="warm 1").click()
    expect(page.locator(".st-key-curve-head h2")).to_have_text("warm 1")
    marks = page.locator(".st-key-curve .textpoint")
    expect(marks.first).to_be_attached()

    answer = get(f"{exporter}/api/v1/intervals", params={"text": "warm 1"}).json()["jobs"][0]
    texts = " ".join(marks.all_text_contents())
    assert f"measured: every {duration(answer['interval_s'])}" in texts
    assert f"best: every {duration(answer['best_s'])}" in texts
    said = page.locator(".st-key-curve-box .ett-said")
    before = said.inner_text()
    slider = page.get_by_role("slider", name="Blocking of a save, s")
    slider.focus()
    for _ in range(30):
        slider.press("ArrowRight")
    until(page, lambda: said.inner_text() != before, "the slider changes nothing")
    moved = slider.input_value()
    page.wait_for_url(re.compile(rf"blocking_s={re.escape(moved)}(&|$)"))
    page.reload()
    expect(slider).to_have_value(moved)
    page.get_by_role("link", name="as it began").click()
    expect(said).to_have_text(before)


def test_by_hand_the_page_is_of_use_without_any_job(app, page):
    page.goto(f"{app}/checkpoints")
    expect(page.locator(".st-key-curve-box .ett-said")).to_contain_text("Save every 15 m 30 s")
    expect(page.locator(".st-key-curve-box")).to_contain_text("expected ETTR at the best interval")


def test_levers_are_chosen_together_and_kept_in_the_address(app, page):
    """What is chosen stands in the address, is answered as the API answers it, and outlives a reload."""
    page.goto(f"{app}/what-if")
    page.get_by_role("checkbox", name="recovery takes half as long").click()
    page.get_by_role("checkbox", name="compile caches are warm").click()
    said = page.locator(".st-key-live .ett-said")
    expect(said).to_contain_text("With 2 levers the same training would have taken")
    until(
        page, lambda: "levers=recovery" in page.url and "caches" in page.url, "the address lacks the levers"
    )
    page.goto(page.url)
    expect(said).to_contain_text("With 2 levers")
    page.goto(f"{app}/what-if?levers={quote('caches,failure:host_oom')}&window=24h")
    expect(said).to_contain_text("With 2 levers")
    expect(page.get_by_role("checkbox", name="no host_oom failures")).to_be_checked()


def test_tables_of_the_pages_are_files(app):
    """CSV of runs, intervals and levers, with exact values and harmless first characters."""
    runs = get(f"{app}/csv/cache-runs", params={"family": "levers"}).text.splitlines()
    assert runs[0].startswith("id,job_id,attempt")
    assert len(runs) == 6
    intervals = get(f"{app}/csv/checkpoint-intervals").text.splitlines()
    assert "best_s" in intervals[0]
    levers = get(f"{app}/csv/what-if-levers", params={"levers": "caches"}).text
    assert "compile caches are warm" in levers
    pair = get(f"{app}/csv/cache-comparison", params={"one": "levers/warm0~0", "two": "levers/cold~0"}).text
    assert pair.splitlines()[:2] == ["what,one,two", "run,warm 0 · attempt 0,cold · attempt 0"]
    parts = get(f"{app}/csv/what-if-parts", params={"levers": "caches"}).text.splitlines()
    assert parts[0] == "component,now,together,saved"
    assert get(f"{app}/csv/what-if-levers", params={"levers": "faster"}).status_code == 503
