"""The demo's own job, watched in a real browser while it is killed and recovers."""

import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import httpx
import pytest
from browser import browsing, expect

pytestmark = [pytest.mark.service("torch"), pytest.mark.service("chromium")]

HARD_STOP_S = 300.0
DEMO = (sys.executable, "-u", "-c", "import sys; from ett_cli.main import main; sys.exit(main())", "demo")


@pytest.fixture
def demo(tmp_path):
    """A running demo that goes on serving, and the file that holds what it says."""
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")
    said = tmp_path / "said"
    with said.open("wb") as out:
        child = subprocess.Popen([*DEMO, "--run-dir", str(tmp_path / "run")], stdout=out)
    yield said
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


@pytest.fixture
def page():
    with browsing() as browser:
        yield browser.new_page(viewport={"width": 1280, "height": 900})


def found(page, pattern, said):
    """The first match in what the demo says, within the hard stop."""
    end_s = time.monotonic() + HARD_STOP_S
    while not (match := re.search(pattern, said.read_text())):
        assert time.monotonic() < end_s, said.read_text()[-2000:]
        page.wait_for_timeout(200)
    return match


def states_until(page, last):
    """The states that the page shows, one after the other, without being loaded again."""
    seen = []
    end_s = time.monotonic() + HARD_STOP_S
    while not seen or seen[-1] != last:
        assert time.monotonic() < end_s, seen
        shown = page.locator(".ett-job .ett-chip").all_inner_texts()
        seen += [state for state in shown if state not in seen[-1:]]
        page.wait_for_timeout(200)
    return seen


def test_the_demos_job_is_watched_through_its_recovery_and_the_partition_is_the_apis(demo, page):
    """Fleet names the job; its page goes through recovery by itself; its table is the API's."""
    fleet = found(page, r"fleet (http://\S+)", demo)[1]
    job_page = found(page, r"job (http://\S+/job\?id=\S+)", demo)[1]
    found(page, r"training, step", demo)
    page.goto(fleet)
    page.get_by_text("1 job", exact=True).wait_for(timeout=60_000)
    page.goto(job_page)
    page.evaluate("window.sameDocument = true")
    states = states_until(page, "succeeded")
    assert "recovering" in states, states
    assert "training" in states[states.index("recovering") :], states
    assert page.evaluate("window.sameDocument") is True
    exporter = found(page, r"Still serving .*?(http://127\.0\.0\.1:\d+)/metrics", demo)[1]
    answer = httpx.get(f"{exporter}/api/v1/jobs/{job_page.partition('id=')[2]}").json()
    rows = page.locator("table.ett-partition tr.ett-share")
    expect(rows).to_have_count(len(answer["components"]))
    shown = {
        row.get_attribute("data-component"): row.locator("td").all_inner_texts()[3] for row in rows.all()
    }
    assert shown == {name: f"{seconds:,.1f}" for name, seconds in answer["components"].items()}
