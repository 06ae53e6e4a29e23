"""Which lines of a log are worth reading: those that hold a word of the tables, told in linear time.

One pass finds all words, by a pattern in which they share their beginnings. Of each word the first
and the last lines count, and of a log in which very many do, fewer of each: what repeats a
thousand times tells nothing new, and a log may be written to cost time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

LINES_TRIED = (3, 6, 12, 25, 50, 100, 200)
"""Lines of one word that are read, from either end of the log: the most of which all can be afforded."""
HITS_PER_NEEDLE = LINES_TRIED[-1]
LINE_LIMIT = 2000
"""Characters of a line that are read around what was found in it."""
CHARACTERS_READ = 500_000
"""What all lines that are read may cost together: their characters, and `LINE_COSTS` for each line."""
LINE_COSTS = 100


class Hit(NamedTuple):
    """A line that holds words: where it begins and ends, and where its first known word stands."""

    start: int
    end: int
    at: int

    @property
    def cost(self) -> int:
        """What reading it costs, in characters."""
        return LINE_COSTS + min(self.end - self.start, LINE_LIMIT)


class Needles:
    """Lower-case words, and what each stands for.

    >>> needles = Needles({"out of memory": (1, 2), "out": (3,)})
    >>> sorted(needles.meant_by("oom: out of memory"))
    [1, 2, 3]
    """

    def __init__(self, meanings: Mapping[str, Iterable[int]]) -> None:
        pattern = f"(?=({pattern_of(meanings)}))"
        self._in_log = re.compile(pattern.encode())
        self._in_line = re.compile(pattern)
        self._meanings = {word: _of_word_and_beginnings(word, meanings) for word in meanings}

    def meant_by(self, low: str) -> set[int]:
        """What the words in a lower-case line stand for."""
        found = set(self._in_line.findall(low))
        return set().union(*(self._meanings[word] for word in found))

    def lines(self, low: bytes) -> list[Hit]:
        """The lines of a lower-case log that are to be read, in their order."""
        found: dict[bytes, _Places] = {}
        end = -1
        for match in self._in_log.finditer(low):
            at, needle = match.start(), match[1]
            places = found.get(needle)
            if places is None:
                places = found[needle] = _Places()
            elif at < places.line_end:
                continue
            if at > end:
                end = low.find(b"\n", at)
                if end < 0:
                    end = len(low)
            places.line_end = end
            places.last.append(at)
            if len(places.last) == HITS_PER_NEEDLE and not places.first:
                places.first, places.last = places.last, deque(maxlen=HITS_PER_NEEDLE)
        return _affordable([(*places.first, *places.last) for places in found.values()], low)


class _Places:
    """Where a word stands: once a line, the first lines and, where there are more, the last ones."""

    __slots__ = ("first", "last", "line_end")

    def __init__(self) -> None:
        self.first: deque[int] = deque()
        self.last: deque[int] = deque(maxlen=HITS_PER_NEEDLE)
        self.line_end = -1


def _affordable(found: Sequence[Sequence[int]], low: bytes) -> list[Hit]:
    """The lines of the first and the last places of each word, of as many as may be read."""
    hits: list[Hit] = []
    for count in LINES_TRIED:
        kept = {at for places in found for at in (*places[:count], *places[count:][-count:])}
        more = list(_lines_at(sorted(kept), low))
        if hits and sum(hit.cost for hit in more) > CHARACTERS_READ:
            break
        hits = more
    return hits


def _lines_at(places: Iterable[int], low: bytes) -> Iterator[Hit]:
    """The lines on which these places stand, each once; linear in the log."""
    end = -1
    for at in places:
        if at > end:
            start = low.rfind(b"\n", max(end, 0), at) + 1
            end = low.find(b"\n", at)
            if end < 0:
                end = len(low)
            yield Hit(start, end, at)


def _of_word_and_beginnings(word: str, meanings: Mapping[str, Iterable[int]]) -> frozenset[int]:
    """Where a word is found, those that it begins with are there too."""
    return frozenset(each for end in range(len(word)) for each in meanings.get(word[: end + 1], ()))


def pattern_of(words: Iterable[str]) -> str:
    """A pattern that finds any of the words, at each place the longest, in time linear in the text.

    >>> pattern_of(["efa", "edquot", "efault"])
    'e(?:dquot|fa(?:ult)?)'
    """
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branches(tree)


def _branches(node: dict[str, Any]) -> str:
    ways = [re.escape(letter) + _branches(below) for letter, below in sorted(node.items()) if letter]
    if not ways:
        return ""
    if "" in node:
        return f"(?:{'|'.join(ways)})?"
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"
