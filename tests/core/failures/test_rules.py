"""Every row of the tables finds its example and leaves its counter-example alone."""

from __future__ import annotations

import time

import pytest

from ett_core.failures import CLASSES, Where, read_line, scan
from ett_core.failures.rule import ROLES, ROOT, Rule
from ett_core.failures.rules import RULES

IDS = [f"{place}-{rule.failure_class}-{rule.role}" for place, rule in enumerate(RULES)]


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_row_finds_its_example(rule: Rule):
    assert rule.finds(rule.example)
    found = read_line(rule.example)
    assert found is not None
    assert (found.failure_class, found.role) == (rule.failure_class, rule.role)


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_row_leaves_its_counter_example_alone(rule: Rule):
    found = read_line(rule.counter_example)
    assert found is None or (found.failure_class, found.role) != (rule.failure_class, rule.role)


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_row_is_well_formed(rule: Rule):
    assert rule.failure_class in CLASSES
    assert rule.role in ROLES
    assert all(needle == needle.lower() for needle in rule.needles)


def test_every_class_that_a_text_can_tell_has_a_row():
    told = {rule.failure_class for rule in RULES if rule.role == ROOT}
    by_other_means = {
        "collective_timeout",
        "peer_failure",
        "hang",
        "checkpoint_stall",
        "compile_slow",
        "native_crash",
        "unknown",
        "not_a_failure",
    }
    assert set(CLASSES) == told | by_other_means


HOSTILE = {
    "needles of every row": "".join(needle + " " for rule in RULES for needle in rule.needles),
    "a needle of a row a line": "".join(needle + "\n" for rule in RULES for needle in rule.needles),
    "one needle": "out of memory ",
    "a near match": "nccl wait loss is nan compiling saving checkpoint error ",
    "brackets": "[[[(((Xid (((((",
    "spaces": " " * 40,
    "one letter": "e" * 40,
    "beginnings of needles": "failed to sav connection reset by pee dataloader worke no space left on devic ",
    "noise": "q3jhG7nanxv0Zxidw8lKinfdB5 ",
    "stamps": "2026-02-18 10:28:25,496 ",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("end", ["", "\n"], ids=["one line", "many lines"])
def test_reading_takes_time_in_proportion_to_the_text(text: str, end: str):
    """Ten times the text must not take a hundred times as long."""
    unit = (text + end).encode()
    small, large = (unit * (size // len(unit)) for size in (100_000, 1_000_000))
    scan(small)
    assert _cpu_s(large) < 40 * max(_cpu_s(small), 0.005)


def test_words_that_stand_inside_one_another_are_all_found():
    """Lines of a needle that is only met within others, after these were met too often to count."""
    often = "ValueError: x" + "\n" + "step 1\n"
    found = scan((often * 2000 + "OSError: [Errno 28] No space left on device\n" + often * 2000).encode())
    assert "storage_full" in {each.failure_class for each in found}
    assert len(found) <= 2 * 200 + 1


def test_what_is_said_once_is_found_in_a_log_full_of_every_word():
    """However many lines hold words of the tables, a word that is rare in the log is read."""
    words = sorted({needle for rule in RULES for needle in rule.needles if "fallen" not in needle})
    flood = ("\n".join(word for word in words if word not in ("off the bus", "xid")) + "\n") * 300
    found = scan((flood + "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.\n" + flood).encode())
    assert any("fallen off the bus" in each.text for each in found)


def _cpu_s(data: bytes) -> float:
    began = time.process_time()
    scan(data, Where(source="x"))
    return time.process_time() - began
