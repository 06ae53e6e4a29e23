"""Pages are changed in the browser only."""

from __future__ import annotations

import re
from pathlib import Path

import ett_dashboard


def test_the_server_never_switches_pages():
    """A switch by the server may meet a refresh of the page that is left, and leaves a dead page."""
    calls = re.compile(r"\bswitch_page\(")
    sources = Path(ett_dashboard.__file__).parent.rglob("*.py")
    assert [source.name for source in sources if calls.search(source.read_text(encoding="utf-8"))] == []
