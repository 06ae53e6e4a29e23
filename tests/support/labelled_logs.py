"""Texts of failed jobs with the classes that are right for each, of every labelled set: one list."""

from __future__ import annotations

import csv
import importlib.util
import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ett_core.failures import Diagnosis, Where, judge, scan

HERE = Path(__file__).resolve().parents[1] / "core" / "failures"
CASES = HERE / "cases"
EFFECTS = {"peer_failure", "collective_timeout"}


class Labelled(NamedTuple):
    """A text, its classes (the first is the best), and what may not be said of it."""

    name: str
    text: str
    accept: tuple[str, ...]
    failure_class: str
    is_victim: bool
    """The cause does not stand in the text."""
    may_be_certain: bool


def module(name: str) -> ModuleType:
    """A module of texts beside the tests."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@cache
def cases() -> tuple[Labelled, ...]:
    """Reductions of real logs with all their labels."""
    rows = [
        {**label, "text": (CASES / label["file"]).read_text()}
        for label in csv.DictReader((CASES / "labels.csv").read_text().splitlines())
    ]
    rows += [
        {"file": f"sample_{number:03d}", **json.loads(line)}
        for number, line in enumerate((HERE / "sample.jsonl").read_text().splitlines(), start=1)
    ]
    return tuple(
        Labelled(
            row["file"],
            row["text"],
            tuple(row["accept"].split("|")),
            row["failure_class"],
            row["victim_only"] == "yes",
            row["certain"] != "no",
        )
        for row in rows
    )


@cache
def worded() -> tuple[Labelled, ...]:
    """Short texts, of which only the accepted classes are known."""
    pairs = [
        *module("texts").TEXTS,
        *module("family_texts").FAMILY_TEXTS,
        *((accept, text) for accept, texts in module("further_texts").FURTHER.items() for text in texts),
        *(
            (row["accept"], row["text"])
            for row in map(json.loads, (HERE / "worded.jsonl").read_text().splitlines())
        ),
    ]
    return tuple(_of_pair(number, accept.split("|"), text) for number, (accept, text) in enumerate(pairs))


def _of_pair(number: int, accept: list[str], text: str) -> Labelled:
    return Labelled(
        name=f"{number}-{'-'.join(accept)}",
        text=text,
        accept=tuple(accept),
        failure_class=accept[0],
        is_victim=set(accept) <= EFFECTS,
        may_be_certain=True,
    )


@cache
def diagnosed(each: Labelled) -> Diagnosis:
    """What is found of a text as it is; many tests compare with that."""
    return judge(scan(each.text.encode(), Where(source="log")))
