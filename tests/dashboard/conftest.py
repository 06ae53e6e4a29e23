"""Fixtures of the app's tests: a real exporter, a real app, a real browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stories import exporting, running


@pytest.fixture(scope="session")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real exporter that all tests share; each has jobs of its own."""
    with exporting(tmp_path_factory.mktemp("exporter")) as (url, _process):
        yield url


@pytest.fixture(scope="session")
def app(exporter: str) -> Iterator[str]:
    """The address of the real app over that exporter, refreshing every second."""
    with running("dashboard", "--exporter", exporter, "--refresh-s", "1") as (url, _process):
        yield url
