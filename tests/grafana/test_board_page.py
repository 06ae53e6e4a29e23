"""The pictures of the boards in the docs: every word of a job stands in them as text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from browser import browsing, expect, sync_api, visiting

ROOT = Path(__file__).parents[2]
HOSTILE = "</script><script>window.broken=1</script><img src=x onerror='window.broken=1'><b>b</b>"
BEGIN_S = 1_764_000_000

sys.path.insert(0, str(ROOT / "scripts"))

from board_page import page_of  # noqa: E402 - scripts are no package

pytestmark = pytest.mark.service("chromium")


@pytest.fixture(scope="module")
def chromium() -> Iterator[sync_api.Browser]:
    with browsing() as browser:
        yield browser


def answered(board: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], list[Any]]]:
    """Each panel with answers of one series whose labels are all hostile."""
    labels = dict.fromkeys(re.findall(r"\{\{(\w+)\}\}", json.dumps(board)), HOSTILE)
    for panel in board["panels"]:
        for step in panel.get("transformations", ()):
            labels |= dict.fromkeys(step["options"].get("indexByName", {}), HOSTILE)
        mappings = panel.get("fieldConfig", {}).get("defaults", {}).get("mappings")
        value = next(iter(mappings[0]["options"])) if mappings else "1"
        row = {"metric": labels, "value": [BEGIN_S, value]}
        rows = {"metric": labels, "values": [[BEGIN_S, value], [BEGIN_S + 60, value]]}
        yield panel, [(target, [row if target["instant"] else rows]) for target in panel.get("targets", ())]


def test_words_of_a_job_stay_words_in_the_picture_of_a_board(board, chromium):
    """No label ends the script in which it stands, and none is read as HTML, by the page or by Plotly."""
    with visiting(chromium, offline=True) as page:
        page.set_content(page_of(board, answered(board)))
        page.wait_for_function("window.drawn === true")
        expect(page.get_by_text("<b>b</b>").first).to_be_attached()
        assert page.evaluate("window.broken") is None
        assert page.locator("script").count() == 2
        assert page.locator("img, svg a").count() == 0
