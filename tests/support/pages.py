"""The pages of the documentation, and the parsers of the commands that they are about."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path

from ett_cli.main import module_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("benchmarks/**/README.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of a subcommand of `ett`."""
    parser = argparse.ArgumentParser(prog=f"ett {command}")
    importlib.import_module(module_of(command)).add_arguments(parser)
    return parser


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a parser and of those of its subcommands."""
    for action in parser._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from options_of(each)
