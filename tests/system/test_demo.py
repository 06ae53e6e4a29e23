"""`ett demo` for real: exporter, app, launcher, torchrun, two ranks, a kill and a recovery."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from browser import browsing, expect

from ett_cli.demo.processes import marked, rank_process
from ett_cli.demo.stage import MARK

pytestmark = pytest.mark.service("torch")

HARD_STOP_S = 300.0
"""What a demo without a head gives itself."""
PATIENCE_S = 900.0
END_S = 60.0
STEPS = "650" if len(os.sched_getaffinity(0)) <= 2 else "900"
"""More than are made before the kill, nine seconds after the first: two slow processors make 25 a second."""
DEMO = (sys.executable, "-u", "-c", "import sys; from ett_cli.main import main; sys.exit(main())", "demo")


@pytest.fixture(autouse=True)
def torchrec_is_here():
    if find_spec("torch") is None or find_spec("torchrec") is None:
        pytest.skip("torch and torchrec are not installed")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    """Where a demo leaves what was compiled in it, for those after it: the first start of one is cold."""
    return tmp_path_factory.mktemp("compiled") / "cache"


@contextmanager
def demo(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """A running demo, and what it has said so far; it ends with the block."""
    said = folder / "said"
    with said.open("wb") as out:
        place = ["--run-dir", str(folder / "run"), "--steps", STEPS]
        child = subprocess.Popen([*DEMO, *words, *place], stdout=out)
    try:
        yield child, said.read_text
    finally:
        child.terminate()
        try:
            child.wait(END_S)
        finally:
            child.kill()
            child.wait()


def until(condition, limit_s=PATIENCE_S, pause=time.sleep):
    end_s = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < end_s, "waited too long"
        pause(0.2)
    return found


def states_until(page, last):
    """The states that the page shows, one after the other, without being loaded again."""
    seen = []

    def ended():
        shown = page.locator(".ett-job .ett-chip").all_inner_texts()
        seen.extend(state for state in shown if state not in seen[-1:])
        return last in seen

    until(ended, pause=lambda pause_s: page.wait_for_timeout(1000 * pause_s))
    return seen


def check_report(text, folder):
    """The report tells ETT, the kill, the recovery and warm caches, and every check holds."""
    assert "FAIL" not in text
    assert "killed by SIGKILL" in text
    assert re.search(r"^ETT [1-9]\d?\.\d %", text, re.MULTILINE)
    assert re.search(r"^  wall time +[\d.]+ s +100\.0 %$", text, re.MULTILINE)
    assert re.search(r"resumed from step [1-9]\d*, [\d.]+ s of training lost, recovered in \d", text)
    assert re.search(r"^  aot_autograd +[1-9]\d* hits", text, re.MULTILINE)
    assert "\nLargest loss: " in text
    assert "FutureWarning" not in (folder / "run" / "trainer.log").read_text()
    assert f" account {folder / 'run' / 'journal'}\n" in text


@pytest.mark.service("chromium")
def test_the_demo_is_watched_through_its_recovery_and_all_of_it_adds_up(tmp_path, compiled):
    """Fleet names the job; its page goes through recovery by itself; table, report and API say the same.

    Asked to go once all is said, it ends as its checks did, and nothing of it is left.
    """
    with demo(tmp_path) as (child, said), browsing() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1000 * PATIENCE_S)

        def found(pattern):
            def look():
                assert child.poll() is None, said()[-3000:]
                return re.search(pattern, said())

            return until(look, pause=lambda pause_s: page.wait_for_timeout(1000 * pause_s))

        fleet, job_page = found(r"fleet (http://\S+)")[1], found(r"job (http://\S+/job\?id=\S+)")[1]
        job_id = job_page.partition("id=")[2]
        page.goto(fleet)
        page.get_by_text("1 job", exact=True).wait_for()
        page.goto(job_page)
        page.evaluate("window.sameDocument = true")
        states = states_until(page, "succeeded")
        assert "recovering" in states, states
        assert "training" in states[states.index("recovering") :], states
        assert page.evaluate("window.sameDocument") is True
        exporter = found(r"Still serving .*?(http://127\.0\.0\.1:\d+)/metrics")[1]
        answer = httpx.get(f"{exporter}/api/v1/jobs/{job_id}", timeout=PATIENCE_S).json()
        rows = page.locator("table.ett-partition tr.ett-share")
        expect(rows).to_have_count(len(answer["components"]))
        for name, seconds in answer["components"].items():
            cells = page.locator(f"tr.ett-share[data-component='{name}'] td")
            expect(cells.nth(3)).to_have_text(f"{seconds:,.1f}")
        child.send_signal(signal.SIGTERM)
        assert child.wait(END_S) == 0
        check_report(said(), tmp_path)
        assert not list(marked(MARK, job_id))
    shutil.copytree(tmp_path / "run" / "compile-cache", compiled, dirs_exist_ok=True)


def test_a_demo_without_a_head_ends_by_itself(tmp_path, compiled):
    """Status 0 within the hard stop."""
    if compiled.exists():
        shutil.copytree(compiled, tmp_path / "run" / "compile-cache")
    with demo(tmp_path, "--headless") as (child, said):
        assert child.wait(HARD_STOP_S) == 0
        check_report(said(), tmp_path)
        assert said().splitlines()[-1].endswith(f" account {tmp_path / 'run' / 'journal'}")


def test_sigterm_in_the_middle_leaves_no_process_behind(tmp_path):
    """Once the ranks run, SIGTERM ends the demo with 143, and every process of the run is gone."""
    with demo(tmp_path, "--headless", "--no-app") as (child, said):
        (job_id,) = until(lambda: re.findall(r"job (demo-[\w-]+)", said()))
        until(lambda: rank_process(MARK, job_id, 1) or child.poll() is not None)
        child.send_signal(signal.SIGTERM)
        assert child.wait(END_S) == 128 + signal.SIGTERM
        until(lambda: not list(marked(MARK, job_id)), END_S)
