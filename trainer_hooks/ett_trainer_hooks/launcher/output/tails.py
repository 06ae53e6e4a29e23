"""The last output of each rank, and the lines of it that may explain a failure.

Pure state over lines as they come, used by the launcher's main thread. torchrun lays the output
of all ranks into one stream; a line that says whose it is (`[rank1]:`, `[default1]:`) is kept
with that rank, the others together. Memory is bounded whatever comes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

MOST_RANKS = 256
BLOCK_LINES = 400
BLOCK_LINE_CHARACTERS = 2000
_PREFIX = re.compile(r"\[([A-Za-z_]{1,40})(\d{1,6})\]:\s?")
_TELLING = re.compile(
    r"Error\b|Exception\b|Traceback|exitcode|[Ss]ignal \d|SIG(?:KILL|TERM|SEGV|ABRT|BUS|ILL)|OOM"
    r"|[Oo]ut of memory|Killed|[Ss]egmentation fault|[Aa]ssert|NCCL WARN|[Tt]imed? ?out|No space left",
)
_OPENS = "Traceback (most recent call last):"
_GOES_ON = ("During handling of the above", "The above exception was")


class Spoken(msgspec.Struct, frozen=True):
    """A line and the rank that said it; `rank` is None where the line does not tell."""

    text: str
    rank: int | None = None


def spoken(line: str, rank_of_local: Mapping[int, int]) -> Spoken:
    """Who said a line, and what remains of it; `rank_of_local` knows the ranks of this node.

    Of `[rank1]:` and the mark that torchrun sets with `--tee`, `[default1]:`, the inner one counts.

    >>> spoken("[default0]:[rank4]: ValueError: bad", {0: 4})
    Spoken(text='ValueError: bad', rank=4)
    >>> spoken("[trainer1]:to be or not", {0: 4, 1: 5}).rank, spoken("[step99]: 0.1", {0: 4}).rank
    (5, None)
    """
    rank: int | None = None
    while (mark := _PREFIX.match(line)) is not None:
        number = int(mark[2])
        found = number if mark[1] == "rank" else rank_of_local.get(number)
        if found is None:
            break
        rank = found
        line = line[mark.end() :]
    return Spoken(line, rank)


class Tails:
    r"""The last lines of each rank, together at most `limit` bytes a rank.

    >>> tails = Tails(limit=12)
    >>> for line in ("one", "two", "three", "four"):
    ...     tails.add(Spoken(line, 1))
    >>> tails.take(1), tails.take(1)
    ('three\nfour', '')
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines: dict[int | None, deque[str]] = {}
        self._sizes: dict[int | None, int] = {}

    def add(self, said: Spoken) -> None:
        """Keep a line, and forget the oldest ones of that rank where there is no more room."""
        known = said.rank in self._lines or len(self._lines) < MOST_RANKS
        rank = said.rank if known else None
        lines = self._lines.setdefault(rank, deque())
        lines.append(said.text[: self._limit])
        size = self._sizes.get(rank, 0) + len(lines[-1].encode()) + 1
        while size > self._limit + 1 and len(lines) > 1:
            size -= len(lines.popleft().encode()) + 1
        self._sizes[rank] = size

    def take(self, rank: int | None) -> str:
        """What a rank said last, once: it is forgotten here."""
        self._sizes.pop(rank, None)
        return "\n".join(self._lines.pop(rank, ()))


class Findings:
    r"""Picks the lines that may explain a failure; those of one traceback stay together.

    >>> findings = Findings()
    >>> findings.feed([Spoken("Traceback (most recent call last):", 1), Spoken("Killed", 0)])
    ['[rank0]: Killed']
    >>> findings.feed([Spoken("  File 'x', line 3", 1), Spoken("ValueError: bad", 1)])
    ["[rank1]: Traceback (most recent call last):\n  File 'x', line 3\nValueError: bad"]
    """

    def __init__(self) -> None:
        self._open: dict[int | None, list[str]] = {}

    def feed(self, lines: Iterable[Spoken]) -> list[str]:
        """The findings that these lines complete."""
        return [found for said in lines if (found := self._fed(said))]

    def finish(self) -> list[str]:
        """Tracebacks that have not come to their end."""
        return [self._close(rank) for rank in list(self._open)]

    def _fed(self, said: Spoken) -> str:
        block = self._open.get(said.rank)
        if block is not None:
            block.append(said.text[:BLOCK_LINE_CHARACTERS])
            if len(block) > BLOCK_LINES:
                del block[BLOCK_LINES // 2]
            return "" if _is_inside(said.text) else self._close(said.rank)
        if _OPENS in said.text and (said.rank in self._open or len(self._open) < MOST_RANKS):
            self._open[said.rank] = [said.text]
            return ""
        return _marked(said.rank, said.text) if is_telling(said.text) else ""

    def _close(self, rank: int | None) -> str:
        return _marked(rank, "\n".join(self._open.pop(rank)))


def is_telling(line: str) -> bool:
    """The line may explain a failure."""
    return _TELLING.search(line) is not None


def shortened(text: str, limit: int) -> str:
    r"""The beginning and the end of a text that is longer than `limit` characters.

    >>> shortened("abcdefghijklmnopqrstuvwxyz", 15)
    'abc\n ... \nvwxyz'
    """
    if len(text) <= limit:
        return text
    gap = "\n ... \n"
    head = (limit - len(gap)) // 3 + 1
    return text[:head] + gap + text[len(text) - (limit - len(gap) - head) :]


def _is_inside(text: str) -> bool:
    """The line belongs to a traceback that is not over."""
    return not text.strip() or text[0] in " \t+|" or text.startswith(_GOES_ON) or _OPENS in text


def _marked(rank: int | None, text: str) -> str:
    return text if rank is None else f"[rank{rank}]: {text}"
