"""What the pages have people type is understood by `ett`, and the files that they name are there."""

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr

import pytest
from pages import DOCS, NAMES, PAGES, ROOT, options_of, parser_of

from ett_cli.main import COMMANDS

BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"(?:^|^\$ |[|(] ?|^srun )(ett [a-z]+(?![\w:])(?: [^|&;)\n]*)?)", re.MULTILINE)
SPAN = re.compile(r"`(ett [a-z]+ [^`]*)`")
HOUSES = "core|trainer_hooks|exporter|dashboard|grafana|cli|tests|benchmarks|examples|scripts"
PATH = re.compile(rf"`((?:{HOUSES})/[^`\s<]*)")


def typed(page: str) -> Iterator[str]:
    """The commands in the blocks of a page; what a command prints begins with its name and a colon."""
    for block in BLOCK.findall(page):
        lines = re.sub(r"\s+# .*$", "", block.replace("\\\n", " "), flags=re.MULTILINE)
        yield from map(str.strip, TYPED.findall(lines))


def refusal(line: str) -> str:
    """Why `ett` does not take a line; empty where it does."""
    _, command, *words = shlex.split(line)
    if command not in COMMANDS:
        return f"there is no 'ett {command}'"
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            parser_of(command).parse_args(words)
    except SystemExit as end:
        return said.getvalue() if end.code else ""
    return ""


def test_commands_are_found_among_what_they_print():
    page = (
        "```\n$ ett import a.txt | ett account -\nett import: 1 job\nsrun ett run -- x  # all\n```\nett no\n"
    )
    assert list(typed(page)) == ["ett import a.txt", "ett account -", "ett run -- x"]


def test_a_command_that_is_not_understood_is_refused():
    assert refusal("ett interval --blocking-s 15 --failures 3 --train-s 5") == ""
    assert "unrecognized arguments: --jsn" in refusal("ett account x --jsn")
    assert refusal("ett acount x") == "there is no 'ett acount'"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_each_command_in_a_block_is_understood(page):
    assert {line: said for line in typed(page.read_text()) if (said := refusal(line))} == {}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_each_option_in_a_sentence_is_one_of_its_command(page):
    """As `ett run --standby`: such words may lack what a whole command needs."""
    strange = [
        (line, option)
        for line in SPAN.findall(page.read_text())
        for option in re.findall(r"--[a-z][\w-]*", line.partition(" -- ")[0])
        if option not in {*options_of(parser_of(line.split()[1])), "--help"}
    ]
    assert strange == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_each_file_that_a_page_names_is_there(page):
    gone = [path for path in PATH.findall(page.read_text()) if not any(ROOT.glob(path.rstrip("/")))]
    assert gone == []


def test_each_page_is_found_from_the_first_one():
    index = (DOCS / "index.md").read_text()
    names = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert [name for name in sorted(names) if f"]({name})" not in index] == []
