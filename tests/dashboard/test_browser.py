"""The app in a real browser, over a real exporter that is fed over HTTP."""

from __future__ import annotations

import re
import time
from urllib.parse import quote

import pytest
from browser import expect, sync_api, until
from processes import serving
from stories import Story, exporting, get, post, recovered

HOSTILE = (
    "<script>window.broken=1</script><img src=x onerror='window.broken=1'> ![i](http://x.invalid/i.png) **b**"
)
HEBREW = "\u05e1\u05d5\u05d3"
TURNED = f"\u202e{HEBREW} 🚀 :red[x] $x^2$"

SAID_BY_THE_BUTTON = """
window.said = [];
new MutationObserver((changes) => changes.forEach(({ target }) => window.said.push(target.textContent)))
  .observe(document.querySelector(".ett-copy"), { childList: true });
"""
"""What it says for a second and a half only."""

pytestmark = pytest.mark.service("chromium")


def at(app: str, job_id: str) -> str:
    return f"{app}/job?id={quote(job_id, safe='')}"


def row_of(page: sync_api.Page, name: str) -> sync_api.Locator:
    """The row of a job in the table of jobs."""
    return page.get_by_role("table", name="Jobs").get_by_role("row").filter(has_text=name)


def drawn(page: sync_api.Page, key: str) -> int:
    """How often a chart was drawn so far."""
    return int(page.locator(f".st-key-{key} .ett-chart").get_attribute("data-drawn") or 0)


def test_the_state_of_a_job_changes_on_fleet_without_a_reload(app, exporter, page):
    """A job is seen training, then recovering, then training again, in the page that was opened."""
    story = Story("state/changes", time.time() - 600, job_name="Changing states")
    loop = story.start(5, 0)
    story.train(loop, 560, 0)
    post(exporter, story)
    page.goto(f"{app}/?text=Changing+states")
    page.evaluate("window.sameVisit = true")
    row = row_of(page, "Changing states")

    def trains(attempt):
        story.go_on(attempt)
        post(exporter, story)
        return row.filter(has_text="training").count() == 1

    until(page, lambda: trains(0), "the job is not shown as training")
    story.fail(time.time() - story.begin, 0)
    post(exporter, story)
    expect(row).to_contain_text("recovering")
    expect(page.locator("a.ett-alarm", has_text="Changing states")).to_contain_text("after failure 1")
    story.start(time.time() - story.begin, 1, resumed_step=story.step // 300 * 300, speed=0.01)
    until(page, lambda: trains(1), "the job is not shown as training again")
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
    answer = get(f"{exporter}/api/v1/jobs/partition/equal").json()
    page.goto(at(app, "partition/equal"))
    rows = page.locator("table.ett-partition tr.ett-share")
    expect(rows).to_have_count(len(answer["components"]))
    shown = {row.get_attribute("data-component"): row.locator("td").all_inner_texts() for row in rows.all()}
    assert {name: cells[3] for name, cells in shown.items()} == {
        name: f"{seconds:,.1f}" for name, seconds in answer["components"].items()
    }
    assert round(sum(float(cells[4].removesuffix(" %")) for cells in shown.values()), 6) == 100.0
    total = page.locator("tr.ett-sum", has_text="Wall time").locator("td").all_inner_texts()
    assert total[3:] == [f"{answer['wall_s']:,.1f}", "100.0 %"]
    expect(page.locator(".ett-tile", has_text="Effective")).to_contain_text(f"{answer['ett_percent']:.1f} %")


def test_the_causes_and_evidence_of_a_failure_are_shown(app, exporter, page):
    """A failure shows its cause in words and the lines that tell of it."""
    post(exporter, recovered("failure/shown", time.time() - 900, 890))
    page.goto(at(app, "failure/shown"))
    cause = get(f"{exporter}/api/v1/jobs/failure/shown").json()["failure_list"][0]["cause"]
    expect(page.locator("[data-testid=stExpander] summary")).to_contain_text(cause)
    expect(page.get_by_role("region", name="Evidence")).to_contain_text("Killed process 4711 (python)")


def test_evidence_is_copied_by_a_button(app, exporter, page):
    """With the mouse or a key, all lines of it; without a clipboard they are selected."""
    post(exporter, recovered("evidence/copied", time.time() - 900, 890))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(at(app, "evidence/copied"))
    lines, button = page.locator(".ett-lines").first, page.get_by_role("button", name="Copy: Evidence")
    until(page, lambda: page.evaluate("window.ettCopies") is True, "the script of the button does not come")
    expect(button).to_be_visible()
    page.evaluate(SAID_BY_THE_BUTTON)
    button.press("Enter")
    until(page, lambda: "Copied" in page.evaluate("window.said"), "nothing is copied")
    assert page.evaluate("navigator.clipboard.readText()") == lines.text_content()
    assert "Killed process 4711 (python)" in lines.text_content()
    expect(button).to_have_text("Copy")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    button.click()
    until(page, lambda: "Selected" in page.evaluate("window.said"), "nothing is selected")
    assert page.evaluate("String(getSelection())").strip() == lines.inner_text().strip()


def test_zoom_outlives_refreshes(app, exporter, page):
    """The stretch of time that a viewer zoomed into stays while new data is drawn, three times and more."""
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
    shown = "box => box._fullLayout.xaxis.range.map(String)"
    until(page, lambda: chart.evaluate(shown) != before, "nothing is zoomed into")
    zoomed = chart.evaluate(shown)
    was_drawn = drawn(page, "timeline")
    story.go_on(1)
    post(exporter, story)
    step = f"step {story.step:,}"
    expect(page.locator(".ett-job .ett-said")).to_contain_text(step)
    until(page, lambda: drawn(page, "timeline") >= was_drawn + 3, "the timeline is not drawn again")
    assert chart.evaluate("box => box._fullLayout.xaxis.range.map(String)") == zoomed


def test_what_has_the_focus_keeps_it_over_refreshes(app, exporter, page):
    """A definition reached by key stays to be read, and a link to be followed, while figures change."""
    post(exporter, recovered("focus/kept", time.time() - 700, 690))
    page.goto(at(app, "focus/kept"))
    until(page, lambda: page.evaluate("window.ettKeeps") is True, "the script does not come")
    tile = page.locator(".ett-tile", has_text="Wall time")
    value, bubble = tile.locator("strong"), page.locator(".ett-bubble:not([hidden])")
    for reached in (tile, page.get_by_role("link", name="Its failures")):
        reached.focus()
        for _ in range(3):
            expect(value).not_to_have_text(value.inner_text())
            expect(reached).to_be_focused()
            expect(bubble).to_have_count(int(reached is tile))
    tile.focus()
    expect(bubble).to_contain_text("From the allocation of hardware")
    page.locator(".ett-name h1").click()
    expect(value).not_to_have_text(value.inner_text())
    expect(value).not_to_have_text(value.inner_text())
    expect(page.locator(".stHtml :focus")).to_have_count(0)
    expect(bubble).to_have_count(0)


def test_a_box_that_is_scrolled_stays_so_over_refreshes(app, exporter, page):
    """The saves of a job, while another one comes."""
    story = recovered("scroll/kept", time.time() - 2400, 2300)
    post(exporter, story)
    page.goto(at(app, "scroll/kept"))
    saves = page.get_by_role("region", name="Saves")
    rows = saves.get_by_role("row")
    expect(rows.nth(20)).to_be_attached()
    saves.evaluate("box => box.scrollTo(0, 77)")
    before = rows.count()
    story.go_on(1)
    story.save(time.time() - story.begin - 4.0, 1)
    post(exporter, story)
    expect(rows).to_have_count(before + 1)
    assert saves.evaluate("box => box.scrollTop") == 77


def test_words_of_a_job_are_never_interpreted(app, exporter, page):
    """Names, labels and log lines show as they are: no script, picture, link, format or direction."""
    story = Story("hostile/job", time.time() - 300, job_name=HOSTILE, team=TURNED, model="<b>m</b>")
    story.train(story.start(5, 0), 250, 0)
    story.fail(260, 0, text=HOSTILE)
    post(exporter, story)
    for address in (f"{app}/?rows=more", at(app, "hostile/job")):
        page.goto(address)
        expect(page.get_by_text("<script>window.broken=1</script>").first).to_be_attached()
        assert page.evaluate("window.broken") is None
        assert page.locator("img[src*=invalid], bdi *, .ett-facts b").count() == 0
    expect(page.locator(".ett-facts")).to_contain_text(f"{HEBREW} 🚀 :red[x] $x^2$")
    assert "\u202e" not in page.locator("body").inner_text()
    expect(page.get_by_role("region", name="Evidence")).to_contain_text(HOSTILE)


def test_a_row_of_fleet_opens_its_job(app, exporter, page):
    """Choosing a row leads to the page of that job, with an address that can be passed on."""
    post(exporter, recovered("row/opened", time.time() - 700, 690, job_name="Opened by a click"))
    page.goto(f"{app}/?rows=more")
    page.evaluate("window.sameVisit = true")
    row_of(page, "Opened by a click").get_by_role("cell").nth(3).click()
    page.wait_for_url("**/job?id=row*opened")
    expect(page.locator(".ett-name h1")).to_have_text("Opened by a click")
    until(page, lambda: drawn(page, "timeline") >= 2, "the page of the job does not refresh")
    assert page.evaluate("window.sameVisit") is True
    page.go_back()
    expect(row_of(page, "Opened by a click")).to_be_visible()


def test_the_box_on_top_of_a_job_leads_to_another_one(app, exporter, page):
    """A job chosen from the box is shown at its own address; the way back leads to the first one."""
    for place in ("first", "second"):
        post(exporter, recovered(f"box/{place}", time.time() - 700, 690, job_name=f"Boxed {place}"))
    page.goto(f"{at(app, 'box/first')}&text=boxed")  # asked for the first time, so that the box knows both
    expect(page.locator(".ett-name h1")).to_have_text("Boxed first")
    page.get_by_role("combobox", name="Job").fill("Boxed second")
    page.get_by_role("option", name="Boxed second").click()
    page.wait_for_url("**/job?id=box*second*")
    expect(page.locator(".ett-name h1")).to_have_text("Boxed second")
    page.go_back()
    page.wait_for_url("**/job?id=box*first*")
    expect(page.locator(".ett-name h1")).to_have_text("Boxed first")


def test_a_part_of_a_name_narrows_the_box_of_jobs(app, exporter, page):
    """The part stands in the address; jobs without it are not offered."""
    for name in ("Narrowed to", "Apart from"):
        post(exporter, recovered(f"part/{name[:4]}", time.time() - 700, 690, job_name=f"{name} the box"))
    page.goto(f"{app}/job?text=narrowed")
    expect(page.get_by_role("textbox", name="Text")).to_have_value("narrowed")
    page.get_by_role("combobox", name="Job").click()
    expect(page.get_by_role("option")).to_have_text(["Narrowed to the box"])
    page.get_by_role("option").click()
    page.wait_for_url("**/job?*id=part*Narr")
    page.goto(f"{at(app, 'part/Narr')}&text=apart+from")
    page.get_by_role("combobox", name="Job").click()
    expect(page.get_by_role("option")).to_have_text(["Apart from the box", "Narrowed to the box"])


def test_an_unknown_job_is_said_to_be_unknown(app, page):
    """An address with a job that the exporter never heard of says so in words."""
    page.goto(at(app, "never/heard-of"))
    expect(page.locator(".ett-empty")).to_contain_text("no job of this name")
    expect(page.locator(".ett-empty")).to_contain_text("never/heard-of")


def test_an_exporter_that_is_gone_leaves_the_last_figures_greyed(page, tmp_path):
    """Without jobs the page says what to do; without an exporter it keeps what it knew, marked as old."""
    with (
        exporting(tmp_path) as (exporter, process),
        serving("dashboard", "--exporter", exporter, "--refresh-s", "1") as (app, _),
    ):
        page.goto(f"{app}/?rows=more")
        expect(page.locator(".ett-empty pre")).to_contain_text(f"export ETT_EXPORTER_URL={exporter}")
        post(exporter, recovered("kept", time.time() - 700, 690, job_name="Kept in sight"))
        expect(row_of(page, "Kept in sight")).to_be_visible()
        process.terminate()
        expect(page.locator(".ett-banner")).to_contain_text(re.compile("nothing answers at|broke"))
        expect(row_of(page, "Kept in sight")).to_be_visible()
        expect(page.locator(".st-key-live")).to_have_css("opacity", "0.45")
        page.goto(f"{app}/job")
        expect(page.locator(".ett-banner")).to_contain_text("Nothing was read so far")
        assert page.get_by_text("No job to show").count() == 0
        page.goto(f"{app}/checkpoints?job=kept")
        expect(page.locator(".st-key-curve-head")).to_contain_text("kept cannot be read now")
        page.goto("about:blank")  # a page that is open notices when its server stops
