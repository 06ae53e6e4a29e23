"""How long until a page of the app is of use in a real browser?

Opens each page in a new tab of one Chromium, and tells two times: until it can be read (the sentence, the
figures at its head and the rows of its table are painted), and until what a person looks for is drawn by the
app and alive. What can be read stands in the document of some pages: then it is painted with the first paint
of any content, and the document is looked into whether it held all of it. The first rounds are not counted:
after them the browser has the scripts in its cache, and (which it does when it meets one for the second time)
keeps them compiled, as for everybody who looks every day. `--private` measures in a private window, where it
keeps nothing compiled. Also counts what was asked of other machines, which must be nothing. Several apps are
opened in turns, to be compared. Needs Debian's chromium and the package playwright.

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
from typing import NamedTuple
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
SENTENCE, FIGURES, ROWS = 'class="ett-said"', 'class="ett-tile"', "<tbody><tr"
"""What a document holds that can be read: of the classes of the app's pieces, and rows of a table."""
WATCH = """
(() => {
  const wanted = %s, seen = (window.ettSeen = {});
  const look = () => {
    for (const [name, all] of Object.entries(wanted))
      if (!(name in seen) && all.every((one) => document.querySelector(one))) seen[name] = performance.now();
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
})();
"""
"""Notes when all of some selectors have found something."""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity"


def pages(job: str) -> dict[str, tuple[str, str]]:
    """Each page: its address, and what the app has to draw for it to be of use."""
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


READ = [".ett-said", ".ett-tile", ".ett-table tbody tr"]
"""What the app has drawn once a page can be read, of those of which the document holds nothing."""
READABLE = ("Fleet", "Job")
"""The pages that have all of that."""


class Opened(NamedTuple):
    """Seconds from the address until a page can be read, and until it is drawn; infinite for never."""

    readable: float
    drawn: float


def opened(
    context: BrowserContext, address: str, wanted: str, strangers: set[str], looked_at_ms: int
) -> Opened:
    """Open a page until what is wanted is there."""
    page = context.new_page()
    page.add_init_script(WATCH % repr({"read": READ}))

    def note(url: str) -> None:
        host = urlsplit(url).hostname
        if host not in (None, "127.0.0.1"):
            strangers.add(str(host))

    page.on("request", lambda request: note(request.url))
    began = time.perf_counter()
    document = page.goto(address, wait_until="commit")
    try:
        page.locator(wanted).first.wait_for(state="attached", timeout=TIMEOUT_MS)
        took_s = time.perf_counter() - began
        page.wait_for_timeout(looked_at_ms)
        text = document.text() if document else ""
        is_told = all(part in text for part in (SENTENCE, FIGURES, ROWS))
        readable_ms = page.evaluate(FIRST_PAINT if is_told else "window.ettSeen.read ?? Infinity")
        return Opened(readable_ms / 1000, took_s)
    except NotInTime:
        return Opened(math.inf, math.inf)
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
    parser.add_argument("--pages", nargs="+", choices=[*pages("")], help="default: all")
    parser.add_argument("--private", action="store_true", help="in a private window")
    chosen = parser.parse_args()
    known = {name: page for name, page in pages(chosen.job).items() if name in (chosen.pages or pages(""))}
    taken: dict[str, list[list[Opened]]] = {name: [[] for _ in chosen.app] for name in known}
    strangers: set[str] = set()
    with sync_playwright() as playwright, (private if chosen.private else at_home)(playwright) as context:
        for number in range(UNCOUNTED + chosen.rounds):
            for name, (address, wanted) in known.items():
                for place, app in enumerate(chosen.app):
                    looked_at_ms = LOOKED_AT_MS if number < UNCOUNTED else 0
                    took = opened(context, app + address, wanted, strangers, looked_at_ms)
                    if number >= UNCOUNTED:
                        taken[name][place].append(took)
    sys.stdout.write(f"| page, s, median (range) | {' | '.join(chosen.app)} |\n")
    sys.stdout.write("|---" * (1 + len(chosen.app)) + "|\n")
    for name, of_apps in taken.items():
        if name in READABLE:
            read = (middle([one.readable for one in of_app]) for of_app in of_apps)
            sys.stdout.write(f"| {name}: to be read after | {' | '.join(read)} |\n")
        drawn = (middle([one.drawn for one in of_app]) for of_app in of_apps)
        sys.stdout.write(f"| {name}: drawn after | {' | '.join(drawn)} |\n")
    sys.stdout.write(f"asked of other machines: {', '.join(sorted(strangers)) or 'nothing'}\n")


if __name__ == "__main__":
    main()
