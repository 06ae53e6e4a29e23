"""Real log texts with known causes fall into a class that is right, and say no more than they can."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_logs import Labelled, cases, module, worded
from left_out import left_out, score

from ett_core.failures import Diagnosis, Where, judge, scan

MATRIX = Path(__file__).resolve().parents[3] / "docs" / "failures-confusion.md"


def of(each: Labelled) -> Diagnosis:
    return judge(scan(each.text.encode(), Where(source="log")))


MISSED = {
    "sample_140": "a hang of which only the silence of one of several writers tells, in a text",
    "sample_293": "a run that goes on behind lost links, of which it prints too few steps to tell",
    "sample_346": "another text gives the same words another class",
    "sample_375": "an actor that died may be the cause or a victim: the words are the same",
    "sample_381": "a time-out of an accelerator's stream, in words of that vendor alone",
    "sample_389": "errors of requests to a bucket, each of which is tried again in words that no table knows",
}
"""Texts that are not read right, and why: `ett diagnose` sees no clock behind the last line."""


def _marked(each: Labelled):
    marks = [pytest.mark.xfail(reason=MISSED[each.name], strict=True)] if each.name in MISSED else []
    return pytest.param(each, marks=marks, id=each.name)


@pytest.mark.parametrize("each", [_marked(each) for each in (*cases(), *worded())])
def test_a_text_falls_into_an_accepted_class(each: Labelled):
    assert of(each).failure_class in each.accept, each.text


@pytest.mark.parametrize("each", cases(), ids=lambda each: each.name)
def test_nothing_is_more_certain_than_it_can_be(each: Labelled):
    found = of(each)
    if not each.may_be_certain:
        assert found.confidence != "certain"
    if each.is_victim:
        assert found.role != "root"


@pytest.fixture(scope="module")
def left_out_score():
    """How texts are read without the rows that only they need."""
    texts = (*cases(), *worded())
    return score(list(zip(texts, left_out(texts), strict=True)))


@pytest.mark.sweep
def test_texts_are_read_without_the_rows_that_only_they_need(left_out_score):
    """A change of a table, or of what stands behind the tables, may not cost what carries over."""
    found = left_out_score
    assert found.right >= 0.92 * found.texts
    assert found.falsely_certain <= 0.01 * found.texts
    assert found.alarms <= 0.05 * found.harmless


@pytest.mark.sweep
@pytest.mark.xfail(reason="5 of 85 are, of which 3 as ends of an unknown kind", strict=True)
def test_hardly_any_victim_is_blamed_without_the_rows_that_only_it_needs(left_out_score):
    assert left_out_score.blamed <= 0.05 * left_out_score.victims


def test_the_confusion_matrix_of_the_docs_is_true(capsys):
    """Printed, so that a change of the tables shows what it moves; after one, the page is what is printed."""
    page = module("confusion").page([(label, of(label)) for label in cases()])
    with capsys.disabled():
        print(f"\n{page}")
    assert MATRIX.read_text() == page
