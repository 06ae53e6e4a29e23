"""What does the timeline of a very long job cost the exporter and the browser?

Asks the exporter for the joined timeline with and without what it keeps of it, and draws three figures in
Chromium: everything in 900 columns with every share cut out, the figure of the page, and that of a zoom.
Fill the exporter with `long_job.py` first. Needs Debian's chromium and the package playwright.

    python benchmarks/app/timeline.py --exporter http://127.0.0.1:9410 --rounds 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timezone
from typing import Any

import httpx
from pages import SWITCHES
from playwright.sync_api import sync_playwright

from ett_dashboard import frames, timeline
from ett_dashboard.chart import plotly_file
from ett_dashboard.client import Client
from ett_dashboard.timeline import Seen

JOB_ID = "bench/long"
PATIENCE_S = 120.0
ZOOM_S = 4 * 3600.0
OLD_COLUMNS = 900
DRAW = """async (figure) => {
  const began = performance.now();
  await Plotly.react(box, figure.data, figure.layout);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
}"""


def timed(act: Callable[[], Any]) -> float:
    """Seconds that something takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def told(name: str, values: Sequence[float], unit: str, factor: float = 1.0) -> str:
    """A row of the table."""
    low, middle, high = (factor * each for each in (min(values), statistics.median(values), max(values)))
    return f"| {name} | {middle:.3g} ({low:.3g} to {high:.3g}) {unit} |\n"


def exporter_rows(url: str, rounds: int) -> str:
    """What the exporter takes for the timeline, in turns."""
    joined, kept = [], []
    address = f"{url}/api/v1/jobs/{JOB_ID}"
    with httpx.Client(timeout=PATIENCE_S) as http:
        for _ in range(rounds):
            joined.append(timed(lambda: http.get(f"{address}/timeline?limit=2000").raise_for_status()))
            kept.append(timed(lambda: http.get(address).raise_for_status()))
    return told("timeline, joined anew", joined, "s") + told("whole job, with what is kept of it", kept, "s")


def figures(url: str) -> dict[str, dict[str, Any]]:
    """The figures to draw."""
    client = Client(url, timeout_s=PATIENCE_S)
    job = client.job(JOB_ID)
    middle = (job.start + job.end) / 2
    zoom = Seen(middle, middle + ZOOM_S)
    question = timeline.finer(JOB_ID, job.timeline, zoom)
    part = client.ask(question).stretches if question else ()
    shown = {
        "every share in 900 columns": (frames.bars(job.timeline, OLD_COLUMNS), None),
        "the page": (timeline.drawn(job.timeline, (), None), None),
        "the page, zoomed to four hours": (timeline.drawn(job.timeline, part, zoom), zoom),
    }
    return {
        f"{name}: {len(bars):,} bars": timeline.figure(bars, job.failure_list, timezone.utc, seen)
        for name, (bars, seen) in shown.items()
    }


def browser_rows(drawn: dict[str, dict[str, Any]], rounds: int) -> str:
    """What drawing takes in the browser, in turns; the first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in drawn}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=SWITCHES)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_content('<div id="box" style="width: 1200px; height: 430px"></div>')
        page.add_script_tag(path=str(plotly_file()))
        for number in range(rounds + 1):
            for name, figure in drawn.items():
                took_ms = page.evaluate(DRAW, figure)
                if number:
                    taken[name].append(took_ms)
        browser.close()
    return "".join(told(name, values, "ms") for name, values in taken.items())


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--exporter", default="http://127.0.0.1:9410")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    sys.stdout.write("| what | median (range) |\n|---|---|\n")
    sys.stdout.write(exporter_rows(chosen.exporter, chosen.rounds))
    sys.stdout.write(browser_rows(figures(chosen.exporter), chosen.rounds))


if __name__ == "__main__":
    main()
