"""The parts of the Job page in a real browser, over a real exporter that is fed over HTTP."""

from __future__ import annotations

import re
import time
from urllib.parse import quote

import pytest
from browser import expect
from stories import deciding, post, recovered

HOSTILE = "<img src=x onerror='window.broken=1'> **b**"

pytestmark = pytest.mark.service("chromium")


def at(app: str, job_id: str) -> str:
    return f"{app}/job?id={quote(job_id, safe='')}"


def components(waterfall):
    return [row.get_attribute("data-component") for row in waterfall.locator("tr[data-component]").all()]


def test_starts_and_recoveries_are_taken_apart(app, exporter, page):
    """The latest start is shown, another one once it is chosen; a failure shows what its recovery took."""
    post(exporter, recovered("parts/starts", time.time() - 900, 890, job_name=HOSTILE))
    page.goto(at(app, "parts/starts"))
    latest = page.get_by_role("table", name="Start of attempt 1")
    expect(latest.locator("tr[data-component='recover.checkpoint_load']")).to_contain_text("3.0 s")
    expect(page.locator(".ett-said", has_text="Attempt 1 was in its loop after")).to_be_visible()
    recovery = page.get_by_role("table", name="Recovery from the failure of attempt 0")
    assert components(recovery)[0] == "recover.teardown"
    assert set(components(latest)) < set(components(recovery))
    attempts = page.get_by_role("table", name="Attempts")
    attempts.get_by_role("link", name="attempt 0").click()
    first = page.get_by_role("table", name="Start of attempt 0")
    expect(first.locator("tr[data-component='start.allocation']")).to_contain_text("12 s")
    assert "attempt=0" in page.url
    assert "id=parts" in page.url
    page.get_by_role("link", name="Its failures").click()
    expect(
        page.get_by_role("table", name="Failures").get_by_role("row").filter(has_text=HOSTILE)
    ).to_have_count(1)
    assert page.evaluate("window.broken") is None


def test_ranks_checkpoints_and_throughput_are_told(app, exporter, page):
    """Who died first, how fast the job trains, how often it saves, and the way to the curve of intervals."""
    post(exporter, recovered("parts/ranks", time.time() - 900, 890))
    page.goto(at(app, "parts/ranks"))
    expect(page.get_by_text("Rank 1 on node-a died first once, last in attempt 0.")).to_be_visible()
    ranks = page.get_by_role("table", name="Ranks").get_by_role("row")
    expect(ranks.filter(has_text="rank 1")).to_contain_text("last to start, died first once")
    expect(ranks.filter(has_text="rank 0")).to_contain_text("leads the loop")
    expect(page.locator(".ett-tile", has_text="Steps a second")).to_contain_text(re.compile(r"\d"))
    expect(page.get_by_role("figure", name="Samples a second over time")).to_have_attribute(
        "data-drawn", re.compile("[1-9]")
    )
    expect(page.locator(".ett-tile", has_text="Blocks for")).to_contain_text("1.5 s")
    page.get_by_role("link", name="What other intervals would waste").click()
    page.wait_for_url("**/checkpoints?job=parts*ranks")


def test_decisions_and_what_was_compiled_again_are_told(app, exporter, page):
    """Who decided what and why, the latest first; the setting that spares graphs; every word inert."""
    post(exporter, deciding("parts/told", time.time() - 900, 890, hostile=HOSTILE))
    page.goto(at(app, "parts/told"))
    decisions = page.get_by_role("table", name="Decisions").get_by_role("row")
    expect(decisions).to_have_count(3)
    expect(decisions.nth(1)).to_contain_text("rank 0 and 1 more")
    expect(decisions.nth(1)).to_contain_text(f"fails every 6.7 h{HOSTILE}")
    expect(decisions.nth(2)).to_contain_text("launcher")
    again = page.get_by_role("table", name="Compiled again").get_by_role("row")
    expect(again.nth(1)).to_contain_text("L['x'], dimension 0: 512, 1000, 1024")
    expect(again.nth(1)).to_contain_text(f"forward{HOSTILE}")
    setting = """export TORCH_COMPILE_DYNAMIC_SOURCES="L['x']:0" """.strip()
    expect(page.get_by_text(setting)).to_be_visible()
    assert page.evaluate("window.broken") is None
