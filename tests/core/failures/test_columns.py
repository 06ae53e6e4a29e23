"""Lines that a terminal broke at its last column are read whole, and others stay as they are."""

from __future__ import annotations

import pytest
from labelled_logs import Labelled, cases, diagnosed

from ett_core.failures import judge, scan
from ett_core.failures.columns import rejoined

NOT_ALIKE = 0.04
"""Of the texts: where one line was broken, and nothing tells of a column."""
MESSAGE = "RuntimeError: the checkpoint of step 7 was written by a run of a different world size than this is"
STAMPED = (
    "2026-11-29 10:00:0{0} INFO rank {0} has its part of the table and waits for the other ranks to come"
)


def broken(text: str, columns: int) -> str:
    """The text as a terminal of so many columns would copy it."""
    pieces = (
        line[at : at + columns] for line in text.splitlines() for at in range(0, max(len(line), 1), columns)
    )
    return "".join(f"{piece}\n" for piece in pieces)


def _unlike(each: Labelled, text: str) -> bool:
    was, found = diagnosed(each), judge(scan(text.encode()))
    is_lost = was.failure_class in each.accept and found.failure_class not in each.accept
    return is_lost or (found.confidence == "certain" and not each.may_be_certain)


@pytest.mark.parametrize("columns", [80, 120])
def test_a_log_means_the_same_broken_at_the_columns_of_a_terminal(columns: int):
    some = cases()[::8]
    unlike = [each.name for each in some if _unlike(each, broken(each.text, columns))]
    assert len(unlike) <= NOT_ALIKE * len(some), unlike


@pytest.mark.sweep
@pytest.mark.parametrize("columns", [80, 97, 120, 211])
def test_every_log_means_the_same_broken_at_the_columns_of_a_terminal(columns: int):
    unlike = [each.name for each in cases() if _unlike(each, broken(each.text, columns))]
    assert len(unlike) <= NOT_ALIKE * len(cases()), unlike


def test_lines_keep_their_numbers_and_places():
    log = broken(
        f"step 1\n{MESSAGE}\n{MESSAGE[7:]}\nOSError: [Errno 28] No space left on device\n", 80
    ).encode()
    whole = rejoined(log)
    assert (len(whole), whole.count(MESSAGE.encode())) == (len(log), 1)
    assert [(line.line, line.text[:7]) for line in scan(log)][-1] == (6, "OSError")


UNBROKEN = {
    "lines that are alike": "".join(f"{STAMPED.format(n)}\n" for n in range(4)),
    "one line, again and again": f"{MESSAGE[:80]}\n" * 3,
    "boxes": "\u2502 an error of the second stage                                                 \u2502\n"
    * 2
    + "\u2502 said the compiler of the kernel                                              \u2502\n",
    "rules": f"{'=' * 80}\ntrain.py FAILED\n{'-' * 80}\nFailures:\n",
    "frames below": f"{MESSAGE[:80]}\n  File 'x.py', line 3, in go\n{MESSAGE[3:83]}\n    go()\n",
    "others who speak below": f"{MESSAGE[:80]}\n[rank3]: step 7\n{MESSAGE[3:83]}\n10:00:00 step 8\n",
}


@pytest.mark.parametrize("name", UNBROKEN)
def test_what_was_not_broken_stays_as_it_is(name: str):
    log = UNBROKEN[name].encode()
    assert rejoined(log) == log
