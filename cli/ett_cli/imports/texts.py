r"""Texts that come in pieces of any size, taken apart: as lines, or as the elements of a JSON array. Pure.

Nothing here grows with the text: of a line or element without an end only a bounded part is held.

>>> list(lines_of([b"one\ntw", b"o\n", b"thr", b"ee"]))
[b'one', b'two', b'three']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

LONGEST_LINE = 1 << 20
"""Bytes of a longer line that are given; no format that is read here has such lines."""
LONGEST_ELEMENT = 16 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|["\[\]{},]', re.DOTALL)
_BEGUN, _ENDED = b"[{", b"]}"


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without their ends; a last one needs none. Longer ones are cut to `LONGEST_LINE`."""
    begun: list[bytes] = []
    size = 0
    for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield (b"".join([*begun, end]) if begun else end)[:LONGEST_LINE]
            begun, size = [], 0
        if rest and size < LONGEST_LINE:
            begun.append(rest)
            size += len(rest)
    if begun:
        yield b"".join(begun)[:LONGEST_LINE]


def elements_of(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    r"""The elements of a text that is one JSON array, each with the number of its first line, from 1.

    Only brackets, commas and strings are looked at: whether an element is JSON is left to its reader.

    Raises:
        ValueError: the text is no array, ends inside it, or goes on behind it, or an element is longer than
            `LONGEST_ELEMENT` bytes; the elements before were given.

    >>> list(elements_of([b'[1,\n {"a": "],', b'\\"["}', b", 2]\n"]))
    [(1, b'1'), (2, b'{"a": "],\\"["}'), (2, b'2')]
    """
    reader = _Elements()
    for piece in pieces:
        yield from reader.take(piece)
    reader.check_end()


class _Elements:
    """What is held of an array between two pieces: the element that is not at its end yet."""

    def __init__(self) -> None:
        self._text = b""
        self._from = 0
        """Where the element in hand begins in the text."""
        self._at = 0
        """Up to where the text was looked at."""
        self._line = 1
        """Number of the line on which the element in hand begins."""
        self._depth = 0
        self._has_begun = False

    def take(self, piece: bytes) -> Iterator[tuple[int, bytes]]:
        """The elements that end in the next piece."""
        self._text = self._text[self._from :]
        self._at -= self._from
        self._from = 0
        if len(self._text) > LONGEST_ELEMENT:
            raise ValueError(f"an element has more than {LONGEST_ELEMENT} bytes")
        self._text += piece
        while found := _TOKEN.search(self._text, self._at):
            token = found[0]
            if token == b'"':  # the end of this string is still to come
                self._at = found.start()
                return
            self._at = found.end()
            if self._depth == 0:
                self._begin(token, self._text[self._from : found.start()])
                continue
            self._depth += (token in _BEGUN) - (token in _ENDED)
            if self._depth == 0 or (self._depth == 1 and token == b","):
                yield from self._element(self._text[self._from : found.start()])
                self._go_on()
        self._at = len(self._text)

    def check_end(self) -> None:
        """The text ends here.

        Raises:
            ValueError: the array does not.
        """
        if not self._has_begun:
            raise ValueError("it does not begin with [")
        if self._depth:
            raise ValueError("it ends inside the array")
        if self._text[self._from :].strip():
            raise ValueError("something follows the array")

    def _begin(self, token: bytes, before: bytes) -> None:
        if self._has_begun:
            raise ValueError("something follows the array")
        if token != b"[" or before.removeprefix(BYTE_ORDER_MARK).strip():
            raise ValueError("it does not begin with [")
        self._has_begun, self._depth = True, 1
        self._go_on()

    def _element(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        element = text.strip()
        if element:
            yield self._line + text[: text.index(element)].count(b"\n"), element

    def _go_on(self) -> None:
        """The next element begins where the text was looked at."""
        self._line += self._text.count(b"\n", self._from, self._at)
        self._from = self._at
