"""Which lines of a log are worth reading: those that hold a word of the tables, told in linear time.

One pass finds all words, by a pattern in which they share their beginnings. Of each word the first
and the last lines count, and of a log in which very many do, fewer of each: what repeats a
thousand times tells nothing new, and a log may be written to cost time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

LINES_TRIED = (3, 6, 12, 25, 50, 100, 200)
"""Lines of one word that are read, from either end of the log: the most of which all can be afforded."""
LINE_LIMIT = 2000
"""Characters of a line that are read around what was found in it."""
CHARACTERS_READ = 500_000
"""What all lines that are read may cost together: their characters, and `LINE_COSTS` for each line."""
LINE_COSTS = 100
WORDS_A_LINE = 8
"""Words that a line holds at most on average, so far as the number of lines to look at goes."""
BLOCK_BYTES = 1 << 16


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
        """The lines of a lower-case log that are to be read, in their order.

        Which words stand in which block is told first; only blocks of which lines are wanted are
        looked at word by word.
        """
        blocks = list(_blocks(low))
        counts: Counter[bytes] = Counter()
        said: list[frozenset[bytes]] = []
        for start, end in blocks:
            words = self._in_log.findall(low, start, end)
            counts.update(words)
            said.append(frozenset(words))
        most = _most(counts)
        read: dict[int, Mapping[bytes, Sequence[int]]] = {}
        found: dict[bytes, set[int]] = {}
        for way in (1, -1):
            left = dict.fromkeys(counts, most)
            for number in range(len(blocks))[::way]:
                wanted = [word for word in said[number] if left[word]]
                if wanted and number not in read:
                    read[number] = self._places(low, *blocks[number], said[number])
                for word in wanted:
                    places = read[number][word][::way][: left[word]]
                    left[word] -= len(places)
                    found.setdefault(word, set()).update(places)
        return _affordable([sorted(places) for places in found.values()], low, most)

    def _places(
        self, low: bytes, start: int, end: int, words: Iterable[bytes]
    ) -> Mapping[bytes, Sequence[int]]:
        """Where each word of a block stands, once a line; in a block of one line, where its first does."""
        if low.find(b"\n", start, end - 1) < 0 and (only := self._in_log.search(low, start, end)):
            return dict.fromkeys(words, (only.start(),))
        found: dict[bytes, list[int]] = {}
        line_end = -1
        line_ends: dict[bytes, int] = {}
        for match in self._in_log.finditer(low, start, end):
            at, word = match.start(), match[1]
            if at < line_ends.get(word, -1):
                continue
            if at > line_end:
                line_end = low.find(b"\n", at, end)
                if line_end < 0:
                    line_end = end
            line_ends[word] = line_end
            found.setdefault(word, []).append(at)
        return found


def _blocks(low: bytes) -> Iterator[tuple[int, int]]:
    """Whole lines of about `BLOCK_BYTES` together: where each block begins and ends."""
    start = 0
    while start < len(low):
        end = low.find(b"\n", start + BLOCK_BYTES) + 1 or len(low)
        yield start, end
        start = end


def _most(counts: Mapping[bytes, int]) -> int:
    """Lines of one word, from either end, beyond which not all can be afforded."""
    for most in reversed(LINES_TRIED):
        lines = sum(min(count, 2 * most) for count in counts.values())
        if lines * LINE_COSTS <= CHARACTERS_READ * WORDS_A_LINE:
            return most
    return LINES_TRIED[0]


def _affordable(found: Sequence[Sequence[int]], low: bytes, most: int) -> list[Hit]:
    """The lines of the first and the last places of each word, of as many as may be read."""
    hits: list[Hit] = []
    for count in LINES_TRIED:
        kept = {at for places in found for at in (*places[:count], *places[count:][-count:])}
        more = list(_lines_at(sorted(kept), low))
        if hits and sum(hit.cost for hit in more) > CHARACTERS_READ:
            break
        hits = more
        if count == most:
            break
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
