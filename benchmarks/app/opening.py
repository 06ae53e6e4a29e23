"""What the opening of a page of the app is made of, as Chromium itself tells.

Opens each page in a new tab of a browser that has been there before (its scripts are in the cache, compiled,
as for everybody who looks every day), with Chromium's trace on. Prints when which part is seen, which
messages the app sent, and for how long the main thread of the page had a processor, by what it did. The trace
itself costs time: for how long an opening takes, see `pages.py`. Needs Debian's chromium and the package
playwright.

    python benchmarks/app/opening.py --app http://127.0.0.1:8501 --job bench/000001 --rounds 5 --pages Job
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pages import FIRST_PAINT, LOOKED_AT_MS, TIMEOUT_MS, UNCOUNTED, WATCH, at_home, pages
from playwright.sync_api import BrowserContext, sync_playwright

SEEN = {
    "bar of pages": ".ett-nav",
    "head": ".ett-head, .ett-name",
    "tiles": ".ett-tiles",
    "table": ".ett-table tbody tr",
    "chart": ".ett-chart[data-drawn]",
}
PAINTED = "first content, painted,"
OF_USE = "what makes it of use"
CATEGORIES = ("devtools.timeline", "v8", "blink.user_timing", "disabled-by-default-v8.compile", "__metadata")
KINDS = {
    "garbage": ("V8.GC", "MinorGC", "MajorGC", "BlinkGC"),
    "compile": ("V8.", "v8.compile", "v8.produce", "FlushInstructionCache"),
    "run scripts": (
        "v8.",
        "FunctionCall",
        "EvaluateScript",
        "EventDispatch",
        "RunMicrotasks",
        "Fire",
        "TimerFire",
    ),
    "style and layout": ("Layout", "UpdateLayoutTree", "PrePaint", "ParseAuthorStyleSheet"),
    "paint": ("Paint", "Layerize", "Commit"),
    "parse": ("ParseHTML", "HTMLDocumentParser"),
}
"""How the names of events of each kind begin; the first that fits counts."""
Event = Mapping[str, Any]
SCRIPTS = 16


class Opening(NamedTuple):
    """One opening: milliseconds since its begin, messages as (milliseconds, bytes), spent milliseconds."""

    seen: Mapping[str, float]
    messages: Sequence[tuple[float, int]]
    requests: int
    spent: Counter[str]
    by_script: Counter[str]


def opened(context: BrowserContext, address: str, wanted: str, looked_at_ms: int) -> Opening:
    """Open a page with the trace on."""
    page = context.new_page()
    page.add_init_script(WATCH % repr({name: [one] for name, one in {**SEEN, OF_USE: wanted}.items()}))
    devtools, events, messages, requests = context.new_cdp_session(page), [], [], []
    devtools.on("Tracing.dataCollected", lambda told: events.extend(told["value"]))
    devtools.on("Network.webSocketFrameReceived", _into(messages))
    devtools.on("Network.requestWillBeSent", _into(requests))
    devtools.send("Network.enable")
    chosen = {"traceConfig": {"includedCategories": list(CATEGORIES)}, "transferMode": "ReportEvents"}
    devtools.send("Tracing.start", chosen)
    page.goto(address, wait_until="commit")
    page.locator(wanted).first.wait_for(state="attached", timeout=TIMEOUT_MS)
    seen = {PAINTED: page.evaluate(FIRST_PAINT), **page.evaluate("window.ettSeen")}
    ended = []
    devtools.on("Tracing.tracingComplete", _into(ended))
    devtools.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(20)
    began_s = next(told["timestamp"] for told in requests if told["type"] == "Document")
    page.wait_for_timeout(looked_at_ms)
    page.close()
    told = [(1000 * (m["timestamp"] - began_s), len(m["response"]["payloadData"]) * 3 // 4) for m in messages]
    until = [(at, size) for at, size in told if at <= seen[OF_USE]]
    begun_us = max(event["ts"] for event in events if event["name"] == "navigationStart")
    spent, by_script = _spent([event for event in events if event["ts"] <= begun_us + 1000 * seen[OF_USE]])
    return Opening(seen, until, len(requests), spent, by_script)


def _into(kept: list[Event]) -> Callable[[Event], None]:
    """What keeps what a browser tells; a bound method of a list is none that playwright takes."""

    def keep(told: Event) -> None:
        kept.append(told)

    return keep


def _spent(events: Sequence[Event]) -> tuple[Counter[str], Counter[str]]:
    """Milliseconds of the busiest thread that is the main one of a page, by kind and by script."""
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    of_thread: dict[tuple[int, int], list[Event]] = {main: [] for main in mains}
    for event in events:
        if event["ph"] == "X" and (event["pid"], event["tid"]) in mains:
            of_thread[event["pid"], event["tid"]].append(event)
    busiest = max(of_thread.values(), key=len)
    spent: Counter[str] = Counter()
    by_script: Counter[str] = Counter()
    for event, own_us in _own(busiest):
        kind = next((kind for kind, names in KINDS.items() if event["name"].startswith(names)), "else")
        spent[kind] += own_us / 1000
        about = event.get("args", {}).get("data", {}) or {}
        address = str(about.get("url", "") or event.get("args", {}).get("fileName", ""))
        if address and kind in ("compile", "run scripts"):
            by_script[f"{urlsplit(address).path.rsplit('/', 1)[-1] or address[:40]}, {kind}"] += own_us / 1000
    return spent, by_script


def _own(events: Sequence[Event]) -> Iterator[tuple[Event, float]]:
    """Each event with the microseconds that none of those within it took."""
    inside: list[tuple[Event, float, list[float]]] = []
    for event in sorted(events, key=lambda one: (one["ts"], -one.get("dur", 0))):
        while inside and inside[-1][1] <= event["ts"]:
            done, _, parts = inside.pop()
            yield done, _busy_us(done) - sum(parts)
        if inside:
            inside[-1][2].append(_busy_us(event))
        inside.append((event, event["ts"] + event.get("dur", 0), []))
    for done, _, parts in inside:
        yield done, _busy_us(done) - sum(parts)


def _busy_us(event: Event) -> float:
    """Processor time where it is known, which a busy machine does not change."""
    return float(event.get("tdur", event.get("dur", 0)))


def report(name: str, openings: Sequence[Opening]) -> str:
    """What of each is in the middle, as lines of Markdown."""
    scripts = set().union(*(one.by_script for one in openings))
    by_script = Counter({script: median(one.by_script[script] for one in openings) for script in scripts})
    told = {
        **{
            f"{what} seen": median(one.seen.get(what, inf) for one in openings)
            for what in (PAINTED, *SEEN, OF_USE)
        },
        "first message of the app": median(one.messages[0][0] for one in openings),
        "last message of the app until then": median(one.messages[-1][0] for one in openings),
        "main thread": median(one.spent.total() for one in openings),
        **{f"main thread: {kind}": median(one.spent[kind] for one in openings) for kind in (*KINDS, "else")},
        **dict(by_script.most_common(SCRIPTS)),
    }
    count = median(len(one.messages) for one in openings)
    size = median(sum(size for _, size in one.messages) for one in openings)
    requests = median(one.requests for one in openings)
    lines = [f"\n{name}, median of {len(openings)} openings: {count:.0f} messages, {size / 1000:.0f} kB, "]
    lines += [f"{requests:.0f} requests\n", "| what | ms |", "|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {ms:.0f} |" for what, ms in told.items())])


def main() -> None:
    """Open each page in turns, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--app", default="http://127.0.0.1:8501")
    parser.add_argument("--job", required=True, help="the job to open")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", nargs="+", choices=[*pages("")], help="default: all")
    chosen = parser.parse_args()
    known = {name: page for name, page in pages(chosen.job).items() if name in (chosen.pages or pages(""))}
    told: dict[str, list[Opening]] = {name: [] for name in known}
    with sync_playwright() as playwright, at_home(playwright) as context:
        for number in range(chosen.rounds + UNCOUNTED):
            for name, (address, wanted) in known.items():
                is_counted = number >= UNCOUNTED
                opening = opened(context, chosen.app + address, wanted, 0 if is_counted else LOOKED_AT_MS)
                if is_counted:
                    told[name].append(opening)
    for name, openings in told.items():
        sys.stdout.write(report(name, openings) + "\n")


if __name__ == "__main__":
    main()
