"""The page of the classes says what the tables say."""

from __future__ import annotations

from pathlib import Path

from ett_core.failures import CLASSES
from ett_core.failures.page import page

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_what_the_tables_give():
    assert (DOCS / "failures.md").read_text() == page(), "run scripts/failure-docs"


def test_every_class_has_a_section():
    text = page()
    assert all(f"\n## {name}\n" in text for name in CLASSES)
