"""What axe-core, which comes with a package and is put into the page from here, holds against a page."""

from __future__ import annotations

import pytest
from browser import sync_api

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing")


def faults(page: sync_api.Page) -> list[str]:
    """Each fault with its weight, its rule, the place and the reason."""
    return [
        f"{found['impact']} {found['id']} at {node['html'][:120]}: {node['failureSummary']}"
        for found in axe.Axe().run(page).response["violations"]
        for node in found["nodes"]
    ]
