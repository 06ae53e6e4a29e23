"""How well a text is read that no row was written for: each labelled text without the rows only it needs.

A row is a list of ways to say a thing (`a|b|c`). For each text, the ways that no text but it and its near
twins uses are taken out of the tables; it is then classified by what is left.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
from labelled_logs import Labelled

from ett_core.failures import Diagnosis, Where, judge, scan
from ett_core.failures.rule import ROOT, Rule
from ett_core.failures.rules import RULES

TWINS = 0.5
"""Texts that share this part of their words are near twins."""
NEVER = r"(?!)"

Way = tuple[int, int]
"""A row by its place, and one of its ways."""


class Score(NamedTuple):
    """What was found of some texts; counts."""

    texts: int
    right: int
    certain: int
    falsely_certain: int
    victims: int
    blamed: int
    harmless: int
    alarms: int


def ways_of(rule: Rule) -> list[str]:
    """The ways of a row: the branches of its pattern, or its needles where it has none.

    >>> ways_of(Rule(failure_class="x", needles=(), pattern="a (?:b|c)|d", example="", counter_example=""))
    ['a (?:b|c)', 'd']
    """
    if not rule.pattern:
        return [re.escape(needle) for needle in rule.needles]
    ways, depth, begin, at, inside = [], 0, 0, 0, False
    pattern = rule.pattern
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            at += 1
        elif inside:
            inside = letter != "]"
        elif letter == "[":
            inside = True
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "|" and depth == 0:
            ways.append(pattern[begin:at])
            begin = at + 1
        at += 1
    return [*ways, pattern[begin:]]


WAYS = [ways_of(rule) for rule in RULES]


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def used_by(text: str) -> set[Way]:
    """The ways that match a line of a text."""
    lines = text.splitlines()
    lows = [line.lower() for line in lines]
    used: set[Way] = set()
    for place, rule in enumerate(RULES):
        for line, low in zip(lines, lows, strict=True):
            if any(needle in low for needle in rule.needles):
                used |= {(place, n) for n, way in enumerate(WAYS[place]) if compiled(way).search(line[:2000])}
    return used


def words_of(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z_]{3,}", text.lower()))


def twins_of(texts: Sequence[Labelled]) -> list[set[int]]:
    """For each text itself and its near twins, by place."""
    words = [words_of(each.text) for each in texts]
    return [
        {other for other, theirs in enumerate(words) if len(own & theirs) >= TWINS * len(own | theirs)}
        | {place}
        for place, own in enumerate(words)
    ]


def without(ways: Iterable[Way]) -> list[Rule]:
    """The tables without some ways."""
    taken = defaultdict(set)
    for place, way in ways:
        taken[place].add(way)
    rules = list(RULES)
    for place, gone in taken.items():
        left = [way for n, way in enumerate(WAYS[place]) if n not in gone]
        rules[place] = msgspec.structs.replace(rules[place], pattern="|".join(left) or NEVER)
    return rules


def diagnosis(each: Labelled, rules: Sequence[Rule]) -> Diagnosis:
    return judge(scan(each.text.encode(), Where(source="log"), rules))


def left_out(texts: Sequence[Labelled]) -> list[Diagnosis]:
    """What each text is found to be by rows that other texts need too."""
    used = [used_by(each.text) for each in texts]
    users: Mapping[Way, set[int]] = defaultdict(set)
    for place, ways in enumerate(used):
        for way in ways:
            users[way].add(place)
    return [
        diagnosis(each, without(way for way in ways if users[way] <= twins))
        for each, ways, twins in zip(texts, used, twins_of(texts), strict=True)
    ]


def is_right(each: Labelled, found: Diagnosis) -> bool:
    return found.failure_class in each.accept


def is_falsely_certain(each: Labelled, found: Diagnosis) -> bool:
    return found.confidence == "certain" and not (is_right(each, found) and each.may_be_certain)


def is_harmless(each: Labelled) -> bool:
    return each.accept == ("not_a_failure",)


def score(judged: Sequence[tuple[Labelled, Diagnosis]]) -> Score:
    victims = [found for each, found in judged if each.is_victim]
    harmless = [found for each, found in judged if is_harmless(each)]
    return Score(
        texts=len(judged),
        right=sum(is_right(each, found) for each, found in judged),
        certain=sum(found.confidence == "certain" for _, found in judged),
        falsely_certain=sum(is_falsely_certain(each, found) for each, found in judged),
        victims=len(victims),
        blamed=sum(found.role == ROOT for found in victims),
        harmless=len(harmless),
        alarms=sum(found.failure_class != "not_a_failure" for found in harmless),
    )
