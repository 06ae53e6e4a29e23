"""Pages are changed in the browser only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ett_dashboard
from ett_dashboard.theme import script


def test_the_server_never_switches_pages():
    """A switch by the server may meet a refresh of the page that is left, and leaves a dead page."""
    calls = re.compile(r"\bswitch_page\(")
    sources = Path(ett_dashboard.__file__).parent.rglob("*.py")
    assert [source.name for source in sources if calls.search(source.read_text(encoding="utf-8"))] == []


def test_no_page_reads_or_writes_the_parameters_that_all_runs_share():
    """A refresh that crosses the run of a page would draw that page by the address of before."""
    sources = Path(ett_dashboard.__file__).parent.rglob("*.py")
    uses = re.compile(r"\bst\.query_params\b(?!`)")
    assert [source.name for source in sources if uses.search(source.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("name", ["boxes.js", "chart.js", "links.js", "table.js"])
def test_whatever_draws_links_lets_them_be_followed_first(name):
    """A link that can be seen is followed in the browser, however late another component comes."""
    assert script(name).index('document.addEventListener("click", followLink)') < script(name).index(
        "export default"
    )
