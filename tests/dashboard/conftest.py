"""Fixtures of the app's tests: a real exporter, a real app, a real browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from processes import serving
from stories import exporting

if TYPE_CHECKING:
    from playwright import sync_api


@pytest.fixture(scope="session")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real exporter that all tests share; each has jobs of its own."""
    with exporting(tmp_path_factory.mktemp("exporter")) as (url, _process):
        yield url


@pytest.fixture(scope="session")
def app(exporter: str) -> Iterator[str]:
    """The address of the real app over that exporter, refreshing every second."""
    words = ("--exporter", exporter, "--refresh-s", "1", "--grafana", "https://grafana.example/ops")
    with serving("dashboard", *words) as (url, _process):
        yield url


@pytest.fixture(scope="module")
def chromium() -> Iterator[sync_api.Browser]:
    """One browser for a file of tests.

    Not for all tests: while it is there an event loop runs in this thread, and tests elsewhere run their own.
    """
    from browser import browsing  # noqa: PLC0415 - skips where playwright is not installed

    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def visitor(chromium: sync_api.Browser) -> Iterator[sync_api.BrowserContext]:
    """One visitor for a file of tests: the scripts of the app, which are large, are compiled once."""
    from browser import keeping  # noqa: PLC0415 - skips where playwright is not installed

    with keeping(chromium) as context:
        yield context


@pytest.fixture
def page(visitor: sync_api.BrowserContext) -> Iterator[sync_api.Page]:
    """A page of its own for each test."""
    from browser import looking  # noqa: PLC0415 - skips where playwright is not installed

    with looking(visitor) as page:
        yield page
