"""How long until a page of the app is of use in a real browser?

Opens each page in a new tab of one Chromium, and waits until what a person looks for is drawn. The first
rounds are not counted: after them the browser has the scripts in its cache, and (which it does when it meets
one for the second time) keeps them compiled, as for everybody who looks every day. `--private` measures in a
private window, where it keeps nothing compiled. Also counts what was asked of other machines, which must be
nothing. Several apps are opened in turns, to be compared. Needs Debian's chromium and the package playwright.

    python benchmarks/app/pages.py --app http://127.0.0.1:8501 --job bench/000001 --rounds 10
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

from playwright.sync_api import BrowserContext, Playwright, sync_playwright
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
CHROMIUM, WINDOW = "/usr/bin/chromium", {"width": 1280, "height": 900}
TIMEOUT_MS = 60_000
UNCOUNTED = 3
"""Rounds until all scripts are kept compiled."""
LOOKED_AT_MS = 5_000
"""For so long a page stays open in these: Chromium keeps what it compiled once a page has come to rest."""
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


@contextmanager
def at_home(playwright: Playwright) -> Iterator[BrowserContext]:
    """A browser with a profile of its own, which keeps compiled scripts."""
    with tempfile.TemporaryDirectory() as profile:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=SWITCHES, viewport=WINDOW
        )
        yield context
        context.close()


@contextmanager
def private(playwright: Playwright) -> Iterator[BrowserContext]:
    """A private window."""
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
    yield browser.new_context(viewport=WINDOW)
    browser.close()


def opened_s(
    context: BrowserContext, address: str, wanted: str, strangers: set[str], looked_at_ms: int
) -> float:
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
        took_s = time.perf_counter() - began
        page.wait_for_timeout(looked_at_ms)
    except NotInTime:
        return math.inf
    else:
        return took_s
    finally:
        page.close()


def middle(seconds: list[float]) -> str:
    """The median, and the range."""
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def main() -> None:
    """Measure each page in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--app", nargs="+", default=["http://127.0.0.1:8501"], help="one, or rivals")
    parser.add_argument("--job", required=True, help="the job to open")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pages", nargs="*", help="names of pages (default: all)")
    parser.add_argument("--private", action="store_true", help="in a private window")
    chosen = parser.parse_args()
    known = {name: page for name, page in pages(chosen.job).items() if name in (chosen.pages or pages(""))}
    taken: dict[str, list[list[float]]] = {name: [[] for _ in chosen.app] for name in known}
    strangers: set[str] = set()
    with sync_playwright() as playwright, (private if chosen.private else at_home)(playwright) as context:
        for number in range(UNCOUNTED + chosen.rounds):
            for name, (address, wanted) in known.items():
                for place, app in enumerate(chosen.app):
                    looked_at_ms = LOOKED_AT_MS if number < UNCOUNTED else 0
                    took_s = opened_s(context, app + address, wanted, strangers, looked_at_ms)
                    if number >= UNCOUNTED:
                        taken[name][place].append(took_s)
    sys.stdout.write(f"| page: of use after, s, median (range) | {' | '.join(chosen.app)} |\n")
    sys.stdout.write("|---" * (1 + len(chosen.app)) + "|\n")
    for name, of_apps in taken.items():
        sys.stdout.write(f"| {name} | {' | '.join(map(middle, of_apps))} |\n")
    sys.stdout.write(f"asked of other machines: {', '.join(sorted(strangers)) or 'nothing'}\n")


if __name__ == "__main__":
    main()
