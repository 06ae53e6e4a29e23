"""Hostile text of logs does no harm to who shows it."""

from __future__ import annotations

import os
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.plain_text import name_as_text, one_line, plain

HOSTILE = {
    "colour": ("\x1b[1;31mRuntimeError\x1b[0m: x", "RuntimeError: x"),
    "clears the screen": ("\x1b[2J\x1b[Hgone", "gone"),
    "title of the window": ("\x1b]0;rm -rf /\x07after", "after"),
    "a link": ("\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "here"),
    "unfinished sequence": ("\x1b[31", "\\x1b[31"),
    "NUL": ("a\x00b", "a\\x00b"),
    "backspaces over what stood before": ("ok\b\bno", "ok\\x08\\x08no"),
    "carriage return over the line": ("error\rfine ", "error\\x0dfine "),
    "right to left override": ("\u202egnp.exe", "\\u202egnp.exe"),
    "isolates": ("a\u2066b\u2069", "a\\u2066b\\u2069"),
    "eight bit controls": ("\x9b31mred", "\\x9b31mred"),
    "another line end": ("a\u2028b", "a\\u2028b"),
}


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_made_visible(text, shown):
    assert plain(text) == shown


@given(st.text())
def test_nothing_that_controls_is_left(text):
    """Whatever comes, only line ends and tabs are left of control characters, and it stays as it is then."""
    shown = plain(text)
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert not [c for c in shown if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF")]
    assert plain(shown) == shown


def test_hostile_text_takes_linear_time():
    """Half a megabyte of unfinished sequences is through in much less than a squared time would take."""
    began = time.process_time()
    plain("\x1b]" * 100_000 + "\x1b[" * 100_000 + "\x1b]" + "x" * 100_000)
    assert time.process_time() - began < 10.0


@given(st.text() | st.binary().map(os.fsdecode))
def test_a_line_stays_one_line(text):
    """Also the name of a file, whatever its bytes are; what was made harmless stays as it is."""
    assert len(one_line(text).splitlines()) <= 1
    assert one_line(one_line(text)) == one_line(text)
    assert len(name_as_text(text).encode().splitlines()) <= 1
