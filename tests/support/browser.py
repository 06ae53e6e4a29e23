"""A real Chromium for tests: how it is started, how long it is waited for, what a page may do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect
TooLate = sync_api.TimeoutError

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 180_000
"""How long a condition is waited for, on a slow machine with much to do."""

expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Heard:
    """What a page asked for and complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def listen(self, page: sync_api.Page) -> None:
        """Note everything that the page does from now on."""
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        page.on("console", self._console)

    def _console(self, message: sync_api.ConsoleMessage) -> None:
        probing = "/_stcore/" in message.location.get("url", "")  # Streamlit looks for its own base path
        leaving = "closed before the connection is established" in message.text
        if message.type == "error" and not (probing or leaving):
            self.complaints.append(message.text)

    def strangers(self) -> set[str | None]:
        """Hosts other than this machine that were asked for anything."""
        return {urlsplit(url).hostname for url in self.requests if url.startswith("http")} - {"127.0.0.1"}


@contextmanager
def browsing() -> Iterator[sync_api.Browser]:
    """A browser that ends with the block; the test is skipped where there is none."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(SWITCHES))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def keeping(browser: sync_api.Browser, **options: Any) -> Iterator[sync_api.BrowserContext]:
    """A visitor with pages of 1280 by 900, which share what the browser keeps of the scripts of a server."""
    shape: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "timezone_id": "Europe/Berlin"}
    context = browser.new_context(**shape | options)
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield context
    finally:
        context.close()


@contextmanager
def looking(context: sync_api.BrowserContext) -> Iterator[sync_api.Page]:
    """A page that must stay on this machine and complain of nothing; with it all pages of the visitor go."""
    heard = Heard()
    page = context.new_page()
    heard.listen(page)
    try:
        yield page
    finally:
        complaints = [*heard.complaints]  # while the page goes it may miss the server
        for each in context.pages:
            each.unroute_all(behavior="ignoreErrors")
            each.close()
        context.clear_permissions()
    assert not heard.strangers(), heard.strangers()
    assert not complaints, complaints


@contextmanager
def visiting(browser: sync_api.Browser, **options: Any) -> Iterator[sync_api.Page]:
    """A page of a visitor of its own."""
    with keeping(browser, **options) as context, looking(context) as page:
        yield page


def until(page: sync_api.Page, met: Callable[[], bool], why: str) -> None:
    """Wait until something is so; `why` tells what was missing."""
    ends = time.monotonic() + PATIENCE_MS / 1000
    while not met():
        assert time.monotonic() < ends, why
        page.wait_for_timeout(100)
