"""How long until a page of the app is of use in a real browser?

Opens each page in a new tab of one Chromium, so that its scripts are in the browser's cache from the
first round, which is not counted, and waits until what a person looks for is drawn. Also counts what was
asked of other machines, which must be nothing. Needs Debian's chromium and the package playwright.

    python benchmarks/app/pages.py --app http://127.0.0.1:8501 --job bench/000001 --rounds 10
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from urllib.parse import quote, urlsplit

from playwright.sync_api import BrowserContext, sync_playwright
from playwright.sync_api import TimeoutError as NotInTime

SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 30_000
DRAWN = ".ett-chart[data-drawn]"


def pages(job: str) -> dict[str, tuple[str, str]]:
    """Each page: its address, and what has to be there for it to be of use."""
    return {
        "Fleet": ("/", ".ett-table tbody tr"),
        "Job": (f"/job?id={quote(job, safe='')}", f".st-key-timeline {DRAWN}"),
        "Failures": ("/failures", DRAWN),
        "Caches": ("/caches", f".st-key-rates {DRAWN}"),
        "Checkpoints": ("/checkpoints", f".st-key-curve {DRAWN}"),
        "What-if": ("/what-if", f".st-key-gains {DRAWN}"),
        "Regressions": ("/regressions", DRAWN),
    }


def opened_s(context: BrowserContext, address: str, wanted: str, strangers: set[str]) -> float:
    """Seconds from the address to what is wanted; infinite where that does not come."""
    page = context.new_page()

    def note(url: str) -> None:
        host = urlsplit(url).hostname
        if host not in (None, "127.0.0.1"):
            strangers.add(str(host))

    page.on("request", lambda request: note(request.url))
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    try:
        page.locator(wanted).first.wait_for(state="attached", timeout=TIMEOUT_MS)
        return time.perf_counter() - began
    except NotInTime:
        return math.inf
    finally:
        page.close()


def main() -> None:
    """Measure each page in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--app", default="http://127.0.0.1:8501")
    parser.add_argument("--job", required=True, help="the job to open")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pages", nargs="*", help="names of pages (default: all)")
    chosen = parser.parse_args()
    known = {name: page for name, page in pages(chosen.job).items() if name in (chosen.pages or pages(""))}
    taken: dict[str, list[float]] = {name: [] for name in known}
    strangers: set[str] = set()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=SWITCHES)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        for number in range(chosen.rounds + 1):
            for name, (address, wanted) in known.items():
                took_s = opened_s(context, chosen.app + address, wanted, strangers)
                if number:
                    taken[name].append(took_s)
        browser.close()
    sys.stdout.write("| page | of use after, s, median (range) |\n|---|---|\n")
    for name, seconds in taken.items():
        low, high = min(seconds), max(seconds)
        sys.stdout.write(f"| {name} | {statistics.median(seconds):.2f} ({low:.2f} to {high:.2f}) |\n")
    sys.stdout.write(f"asked of other machines: {', '.join(sorted(strangers)) or 'nothing'}\n")


if __name__ == "__main__":
    main()
