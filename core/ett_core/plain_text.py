r"""Text of logs made harmless for whoever shows it: pure.

Log lines may move the cursor of a terminal, hide what stands after them or turn the order of
letters round. Colour and cursor sequences are taken out; other control characters, and those that
change the direction of text, become visible escapes. Line ends and tabs stay.

>>> plain("\x1b[31mError\x1b[0m: a\x00b \u202egnp.exe")
'Error: a\\x00b \\u202egnp.exe'
"""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,16}[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|[@-Z\\^_])"
)
_HARMFUL_RANGES = (
    (0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x200B, 0x200F),
    (0x2028, 0x202E), (0x2060, 0x2069), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB),
)  # fmt: skip
_ESCAPES = {
    code: f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - two digits hold it
    for first, last in _HARMFUL_RANGES
    for code in range(first, last + 1)
}
_HARMFUL = re.compile("[" + "".join(map(re.escape, map(chr, _ESCAPES))) + "]")


def plain(text: str) -> str:
    r"""The text without terminal sequences, other control characters as visible escapes.

    >>> plain("line one\r\nline\ttwo")
    'line one\nline\ttwo'
    """
    if _HARMFUL.search(text) is None:
        return text
    return _SEQUENCES.sub("", text.replace("\r\n", "\n")).translate(_ESCAPES)


def name_as_text(name: str) -> str:
    r"""The name of a file as text that can be written anywhere: bytes that are no text are visible escapes.

    >>> name_as_text("rank-\udcff.log"), name_as_text("größe.log")
    ('rank-\\xff.log', 'größe.log')
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
