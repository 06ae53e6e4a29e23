"""What all pages share, in a real browser: the bar on top, choices in the address, pause."""

from __future__ import annotations

import re
import time

import pytest
from browser import expect, until
from stories import post, recovered
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from ett_dashboard.views.pages import PAGES

AT_THE_TOP = "getComputedStyle(document.querySelector('.stApp'), '::before').animationName"
"""What moves there a second after the page has begun to work."""

pytestmark = pytest.mark.service("chromium")


def test_choices_go_into_the_address_along_to_other_pages_and_back(app, exporter, page):
    """A filter stands in the address, survives a reload and goes along; the back button undoes it."""
    post(exporter, recovered("frame/kept", time.time() - 700, 690, job_name="Kept", team="Frame team"))
    post(exporter, recovered("frame/left", time.time() - 700, 690, job_name="Left out", team="Other team"))
    jobs, team = page.get_by_role("table", name="Jobs"), page.get_by_role("combobox", name="Team")

    def is_offered():
        page.goto(f"{app}/?rows=more")
        expect(jobs).to_contain_text("Left out")
        expect(team).to_be_visible()
        return team.get_by_role("option", name="Frame team").count() == 1

    until(page, is_offered, "the box does not come to know the team")  # sums of a fleet lag behind its jobs
    team.select_option("Frame team")
    page.wait_for_url("**/?*team=Frame+team")
    expect(jobs).not_to_contain_text("Left out")
    page.reload()
    expect(jobs).to_contain_text("Kept")
    expect(jobs).not_to_contain_text("Left out")
    job = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Job")
    job.click()
    page.wait_for_url("**/job?team=Frame+team")
    expect(job).to_have_attribute("aria-current", "page")  # a way back before that leads nowhere in Streamlit
    page.go_back()
    expect(jobs).to_contain_text("Kept")
    page.go_back()
    expect(jobs).to_contain_text("Left out")
    assert "team" not in page.url


def test_a_link_that_is_drawn_anew_while_it_is_pressed_is_followed(app, exporter, page):
    """As a refresh does with all that says how long ago something was; dragged away from, it is not."""
    story = recovered("frame/pressed", time.time() - 700, 690, job_name="Pressed", model="pressed")
    story.fail(695, 1)
    post(exporter, story)
    page.goto(f"{app}/?model=pressed")
    link = page.locator("a.ett-alarm", has_text="Pressed")

    def press_until_gone():
        link.hover()
        page.mouse.down()
        pressed = page.evaluate_handle("document.querySelector('a.ett-alarm:active')")
        until(page, lambda: not pressed.evaluate("link => link?.isConnected"), "nothing is drawn anew")

    press_until_gone()
    page.mouse.move(900, 700, steps=5)
    page.mouse.up()
    expect(link).to_be_visible()
    assert "/job" not in page.url
    press_until_gone()
    page.mouse.up()
    expect(page.locator(".ett-name h1")).to_have_text("Pressed")
    assert "id=frame%2Fpressed" in page.url


def test_each_page_leads_to_its_board(app, page):
    """The board of the same job and team, in a tab of its own."""
    page.goto(f"{app}/job?id=frame/any&team=ads")
    board = page.get_by_role("navigation", name="Grafana").get_by_role("link", name="Board")
    expect(board).to_have_attribute(
        "href", "https://grafana.example/ops/d/ettwatch-job?var-job_id=frame%2Fany&var-team=ads"
    )
    expect(board).to_have_attribute("target", "_blank")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Failures").click()
    expect(board).to_have_attribute("href", re.compile("/d/ettwatch-failures"))


def test_the_head_of_a_column_sorts_and_the_way_back_restores(app, exporter, page):
    """The order of the table is a link."""
    post(exporter, recovered("frame/sorted", time.time() - 700, 690))
    page.goto(f"{app}/?rows=more")
    head = page.get_by_role("columnheader", name=re.compile("Wall time"))
    head.get_by_role("link").click()
    page.wait_for_url("**/?*sort=-wall_s")
    expect(head).to_have_attribute("aria-sort", "descending")
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "ascending")


def test_pause_holds_the_figures_still(app, exporter, page):
    """What another page shows already does not show until the switch is off again."""
    post(exporter, recovered("frame/there", time.time() - 700, 690, job_name="There before"))
    page.goto(f"{app}/?rows=more")
    jobs, aside = page.get_by_role("table", name="Jobs"), page.locator(".ett-aside")
    expect(jobs).to_contain_text("There before")
    page.get_by_text("Pause", exact=True).click()
    expect(aside).to_contain_text("paused")
    other = page.context.new_page()
    other.goto(f"{app}/?rows=more")
    there = other.get_by_role("table", name="Jobs")
    expect(there).to_contain_text("There before")
    seen = other.locator(".ett-aside")

    def stays():  # a refresh may have been under way
        now, since = aside.inner_text(), seen.inner_text()
        expect(seen).not_to_have_text(since)
        return aside.inner_text() == now

    until(page, stays, "the figures go on")
    held = aside.inner_text()
    post(exporter, recovered("frame/paused", time.time() - 700, 690, job_name="Paused meanwhile"))
    expect(there).to_contain_text("Paused meanwhile")
    assert aside.inner_text() == held
    expect(jobs).not_to_contain_text("Paused meanwhile")
    page.get_by_text("Pause", exact=True).click()
    expect(jobs).to_contain_text("Paused meanwhile")


def test_the_window_and_the_weight_are_chosen_by_buttons_that_say_what_they_mean(app, exporter, page):
    """The figures and the sentence follow; a price turns time into money."""
    post(exporter, recovered("frame/weighed", time.time() - 700, 690, team="Weighed"))
    page.goto(f"{app}/?team=Weighed")
    said = page.locator(".ett-summary")
    expect(said).to_contain_text(re.compile(r"accelerator-hours within the last 24 hours"))
    page.get_by_role("radio", name="7 days").click()
    page.wait_for_url("**/?team=Weighed&window=7d")
    expect(said).to_contain_text("within the last 7 days")
    page.get_by_role("radio", name="Jobs").click()
    expect(said).to_contain_text("Every second of every job weighs the same")
    page.get_by_role("radio", name="Cost").click()
    expect(said).to_contain_text("no prices of accelerators are set")
    page.goto(f"{app}/?team=Weighed&weight=cost&price=100")
    expect(said).to_contain_text(re.compile(r"1 job spent \d"))


class Withheld:
    """What the app says to a page; while it is held none of that arrives, and then all of it in its order.

    With `since` it is held from the first message of that kind on.
    """

    def __init__(self, page, since=None):
        self.is_on, self.held, self._since = False, [], since
        page.route_web_socket("**/_stcore/stream", self._listen)

    def __enter__(self):
        self.is_on = True
        return self.held

    def __exit__(self, *_):
        self.is_on = False
        for socket, message in self.held:
            socket.send(message)

    def _listen(self, socket):
        server = socket.connect_to_server()

        def heard(said):
            if self.is_on and (
                self.held or self._since in (None, ForwardMsg.FromString(said).WhichOneof("type"))
            ):
                self.held.append((socket, said))
            else:
                socket.send(said)

        server.on_message(heard)


def test_choices_that_are_made_before_the_app_answers_all_count(app, exporter, page):
    """What crosses on the way (another choice, a pause) loses no choice and draws none of before."""
    post(exporter, recovered("frame/hasty", time.time() - 700, 690, team="Hasty"))
    answers = Withheld(page)
    page.goto(f"{app}/?team=Hasty")
    said = page.locator(".ett-summary")
    expect(said).to_contain_text("accelerator-hours within the last 24 hours")
    with answers as held:
        page.get_by_role("radio", name="7 days").click()
        until(page, lambda: held, "the app does not answer")
        page.get_by_role("radio", name="Jobs").click()
        page.get_by_text("Pause", exact=True).click()
    page.wait_for_url(re.compile("window=7d.*weight=job"))
    expect(said).to_contain_text("Every second of every job weighs the same")
    expect(said).to_contain_text("within the last 7 days")
    expect(page.locator(".ett-aside")).to_contain_text("paused")
    for name in ("7 days", "Jobs"):
        expect(page.get_by_role("radio", name=name)).to_be_checked()


def test_a_page_shows_that_it_works_until_what_was_chosen_is_there(app, exporter, page):
    """A choice of which the app has begun to draw nothing yet."""
    post(exporter, recovered("frame/works", time.time() - 700, 690, team="Works"))
    answers = Withheld(page, since="delta")
    page.goto(f"{app}/?team=Works")
    said = page.locator(".ett-summary")
    expect(said).to_contain_text("within the last 24 hours")
    with answers:
        page.get_by_role("radio", name="7 days").click()
        until(
            page, lambda: page.evaluate(AT_THE_TOP) == "ett-waiting", "the page does not show that it works"
        )
        expect(said).to_contain_text("within the last 24 hours")
    expect(said).to_contain_text("within the last 7 days")
    until(page, lambda: page.evaluate(AT_THE_TOP) == "none", "the page seems to work for ever")


def bar_of(page):
    """The bar on top, and where it says that one is."""
    bar = page.get_by_role("navigation", name="Pages")
    return bar, bar.locator("[aria-current=page]")


@pytest.mark.parametrize("path", [page.path for page in PAGES])
def test_a_page_that_is_opened_by_its_address_has_the_bar(app, exporter, page, path):
    """The bar marks where one is and leads to Fleet."""
    post(exporter, recovered("frame/any", time.time() - 700, 690))
    page.goto(f"{app}/{path}")
    bar, here = bar_of(page)
    expect(here).to_have_text(next(one.title for one in PAGES if one.path == path))
    until(page, lambda: page.locator(".ett-head, .ett-quiet, .ett-job").count() > 0, "the page stays empty")
    bar.get_by_role("link", name=PAGES[0].title).click()
    expect(here).to_have_text(PAGES[0].title)


def test_every_page_is_reached_from_the_bar(app, exporter, page):
    """From one to the next, and on from the last; the bar marks where one is."""
    post(exporter, recovered("frame/any", time.time() - 700, 690))
    page.goto(app)
    bar, here = bar_of(page)
    for one in (*PAGES, *PAGES[:2]):
        bar.get_by_role("link", name=one.title).click()
        expect(here).to_have_text(one.title)


def test_times_are_in_the_zone_that_the_viewer_chose(app, exporter, page):
    """The zone of the address goes before that of the browser."""
    post(exporter, recovered("frame/zone", time.time() - 700, 690))
    page.goto(f"{app}/?rows=more")
    expect(page.locator(".ett-aside")).to_contain_text(re.compile("CES?T"))
    page.goto(f"{app}/?zone=Asia%2FTokyo")
    expect(page.locator(".ett-aside")).to_contain_text("JST")


def test_one_of_very_many_is_found_by_parts_of_its_name_with_keys_alone(app, page):
    """Parts in any order; Escape takes nothing; what is chosen stands in the address; so does none."""
    page.goto(f"{app}/?zone=Asia%2FTokyo")
    page.get_by_role("button", name="Settings").click()
    box = page.get_by_role("combobox", name="Time zone")
    options = page.get_by_role("listbox", name="Time zone").get_by_role("option")
    expect(box).to_have_value("Asia/Tokyo")
    box.click()
    expect(options.filter(has_text="more: type a part")).to_be_visible()
    box.press_sequentially("aires argentina")
    expect(options).to_have_text(["America/Argentina/Buenos_Aires"])
    box.press("Escape")
    expect(box).to_have_value("Asia/Tokyo")
    expect(options).to_have_count(0)
    box.fill("nowhere at all")
    expect(options).to_have_text(["Nothing has this in its name"])
    box.press("Enter")
    assert "zone=Asia%2FTokyo" in page.url
    box.fill("europe/b")
    box.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    chosen = options.nth(1).inner_text()
    box.press("Enter")
    page.wait_for_url(f"**/?zone={chosen.replace('/', '%2F')}")
    page.reload()
    page.get_by_role("button", name="Settings").click()
    expect(box).to_have_value(chosen)
    box.fill("browser")
    options.filter(has_text="That of the browser").click()
    page.wait_for_url(f"{app}/")
