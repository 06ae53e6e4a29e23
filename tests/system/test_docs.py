"""What users can name stands in the docs, and what the docs name exists."""

import re
from pathlib import Path

import pytest
from pages import DOCS, NAMES, PAGES, options_of, parser_of

from ett_cli.main import COMMANDS
from ett_core.components import COMPONENTS
from ett_core.events import EVENT_KINDS, FirstBatch, Progress

LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#]*)#([^)]+)\)")
PAGES_OF = {
    "demo": ["demo"],
    "simulate": ["simulate"],
    "run": ["run", "stalls"],
    "env": ["automatic"],
    "ship": ["hooks"],
    "exporter": ["exporter"],
    "dashboard": ["dashboard"],
    "grafana": ["grafana", "publishing"],
    "account": ["account"],
    "diagnose": ["diagnose"],
    "failures": ["failure-analysis"],
    "report": ["report"],
    "import": ["import"],
    "train": ["train", "run", "stalls"],
    "interval": ["interval"],
    "advise": ["advise"],
    "cache": ["bundles"],
    "publish": ["model-publishing"],
}
"""Command to the pages that say all of it."""


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_stands_in_the_docs(command):
    assert f"`ett {command}`" in (DOCS / "index.md").read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_of_a_command_stands_in_the_docs(command):
    """As it is typed, or, of `ett train`, as the setting of a file that it stands for."""
    told = "\n".join((DOCS / f"{page}.md").read_text() for page in PAGES_OF[command])
    options = {*options_of(parser_of(command))} - {"--help"}
    if command == "train":
        options -= {option for option in options if f"`{setting_of(option)}`" in told}
    assert [option for option in sorted(options) if not re.search(rf"{option}(?![\w-])", told)] == []


def setting_of(option: str) -> str:
    return option.removeprefix("--").removeprefix("no-").replace("-", "_")


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


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_between_pages_lead_somewhere(page):
    dead = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_page_holds_both_sides_of_a_merge(page):
    assert re.findall(r"^(?:<{7}|={7}|>{7})(?: .*)?$", page.read_text(), re.MULTILINE) == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_to_a_part_of_a_page_lead_to_a_heading(page):
    links = [(page.parent / name if name else page, part) for name, part in ANCHOR.findall(page.read_text())]
    dead = [(at.name, part) for at, part in links if at.suffix == ".md" and part not in parts_of(at)]
    assert dead == []


def parts_of(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
