"""Real log texts with known causes fall into a class that is right, and say no more than they can."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest

from ett_core.failures import Diagnosis, Where, judge, scan

HERE = Path(__file__).parent
CASES = HERE / "cases"


def _module(name: str):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LABELS = [
    {**label, "text": (CASES / label["file"]).read_text()}
    for label in csv.DictReader((CASES / "labels.csv").read_text().splitlines())
] + [
    {"file": f"sample_{number:03d}", **json.loads(line)}
    for number, line in enumerate((HERE / "sample.jsonl").read_text().splitlines(), start=1)
]
"""Reductions with their labels; of the sample, the project that the text comes from stands beside it."""
FURTHER = _module("further_texts").FURTHER
TEXTS = (
    *_module("texts").TEXTS,
    *_module("family_texts").FAMILY_TEXTS,
    *((accepted, text) for accepted, texts in FURTHER.items() for text in texts),
    *(
        (row["accept"], row["text"])
        for row in map(json.loads, (HERE / "worded.jsonl").read_text().splitlines())
    ),
)
MATRIX = HERE.parents[2] / "docs" / "failures-confusion.md"


def diagnosis(text: bytes) -> Diagnosis:
    return judge(scan(text, Where(source="log")))


def of_case(label) -> Diagnosis:
    return diagnosis(label["text"].encode())


@pytest.mark.parametrize("label", LABELS, ids=[label["file"] for label in LABELS])
def test_a_real_text_falls_into_an_accepted_class(label):
    assert of_case(label).failure_class in label["accept"].split("|"), label["text"]


@pytest.mark.parametrize("label", LABELS, ids=[label["file"] for label in LABELS])
def test_nothing_is_more_certain_than_it_can_be(label):
    found = of_case(label)
    if label["certain"] == "no":
        assert found.confidence != "certain"
    if label["victim_only"] == "yes":
        assert found.role != "root"


@pytest.mark.parametrize(("accepted", "text"), TEXTS, ids=[f"{n}-{a}" for n, (a, _) in enumerate(TEXTS)])
def test_a_text_of_the_same_kinds_does_too(accepted: str, text: str):
    assert diagnosis(text.encode()).failure_class in accepted.split("|")


def test_the_confusion_matrix_of_the_docs_is_true(capsys):
    """Printed, so that a change of the tables shows what it moves; after one, the page is what is printed."""
    page = _module("confusion").page([(label, of_case(label)) for label in LABELS])
    with capsys.disabled():
        print(f"\n{page}")
    assert MATRIX.read_text() == page
