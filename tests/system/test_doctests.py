"""Examples in docstrings are run, in every module that has any."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSES = ("core", "trainer_hooks", "exporter", "dashboard", "grafana", "cli")


def modules_with_examples() -> list[str]:
    files = [path for house in HOUSES for path in sorted((ROOT / house).rglob("*.py"))]
    with_examples = [path for path in files if "    >>> " in path.read_text() or "\n>>> " in path.read_text()]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts[1:]) for path in with_examples]


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_are_true(name):
    results = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert results.attempted > 0
    assert results.failed == 0
