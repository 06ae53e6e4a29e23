"""What users can name stands in the docs, and what the docs name exists."""

import re
from pathlib import Path

import pytest

from ett_cli.main import COMMANDS
from ett_core.components import COMPONENTS
from ett_core.events import EVENT_KINDS, FirstBatch, Progress

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("benchmarks/*/README.md")])
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_stands_in_the_docs(command):
    assert f"`ett {command}`" in (DOCS / "index.md").read_text()


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_component_stands_in_the_docs(component):
    assert f"`{component}`" in (DOCS / "accounting.md").read_text()


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_each_kind_of_event_stands_in_the_docs_with_its_fields(kind):
    row = next(
        line for line in (DOCS / "events.md").read_text().splitlines() if line.startswith(f"| `{kind}` |")
    )
    envelope = {*FirstBatch.__struct_fields__} - {"step"}
    fields = {kind.kind: kind.__struct_fields__ for kind in all_kinds()}[kind]
    assert all(f"`{field}`" in row for field in fields if field not in envelope)


def all_kinds() -> list[type]:
    return Progress.__mro__[1].__subclasses__()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_between_pages_lead_somewhere(page):
    dead = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_no_page_holds_both_sides_of_a_merge(page):
    assert re.findall(r"^(?:<{7}|={7}|>{7})(?: .*)?$", page.read_text(), re.MULTILINE) == []
