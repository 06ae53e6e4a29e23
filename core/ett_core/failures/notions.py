"""What a line speaks of, however it is worded: the notions that its words name, without their endings. Pure.

A notion is a thing (the memory of a GPU, a checkpoint, a peer) or a trouble (used up, damaged, gone).
`general` tells what a thing and a trouble together mean.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ett_core.failures.rules.lexicon import THINGS, TROUBLES

LONGEST_PHRASE = 4
CHARACTERS_READ = 600
"""Of a line that no table knows, this much is read."""

_WORD = re.compile(r"[A-Z]{2,}(?=s\b)|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", re.ASCII)
_ENDING = re.compile(r"(?:ings?|ions?|ies|ied|ed|es|s|e)$", re.ASCII)
_SHORTEST_STEM = 3


def words(text: str) -> list[str]:
    """The words of a line in lower case without their endings; names in code are taken apart.

    >>> words("RendezvousTimeoutError: RESOURCE_EXHAUSTED, timed out after 60s")
    ['rendezvou', 'timeout', 'error', 'resourc', 'exhaust', 'tim', 'out', 'after', '60', 's']
    """
    return [_stem(word.lower()) for word in _WORD.findall(text[:CHARACTERS_READ])]


def notions(text: str) -> frozenset[str]:
    """The things and troubles that a line names.

    >>> sorted(notions("cannot read shard 7: checksum mismatch") & {"sample", "damaged", "gpu"})
    ['damaged', 'sample']
    """
    return named_by(words(text))


def named_by(said: Sequence[str]) -> frozenset[str]:
    """The notions that words without their endings name, alone or in a row."""
    found: set[str] = set()
    for place in range(len(said)):
        phrase = ""
        for word in said[place : place + LONGEST_PHRASE]:
            phrase = f"{phrase} {word}" if phrase else word
            found |= _MEANINGS.get(phrase, _NOTHING)
    return frozenset(found)


def _stem(word: str) -> str:
    stem = _ENDING.sub("", word)
    return stem if len(stem) >= _SHORTEST_STEM else word


def _meanings() -> Mapping[str, frozenset[str]]:
    table: dict[str, set[str]] = defaultdict(set)
    for notion, phrases in (*THINGS.items(), *TROUBLES.items()):
        for phrase in phrases.split(","):
            table[" ".join(map(_stem, phrase.split()))].add(notion)
    return {phrase: frozenset(named) for phrase, named in table.items()}


_NOTHING: frozenset[str] = frozenset()
_MEANINGS = _meanings()
