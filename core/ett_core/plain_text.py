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


def plain_json(text: str) -> str:
    r"""JSON of the same value, in which what is not to be obeyed stands as escapes of JSON.

    >>> print(plain_json('{"größe": "a\u202eb"}'))
    {"größe": "a\u202eb"}
    """
    return _HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    r"""As `plain`, with visible escapes for what begins another line too: no text makes up lines of a report.

    >>> one_line("team\nJob x: succeeded\x1b[2J")
    'team\\nJob x: succeeded'
    """
    return plain(text).replace("\n", "\\n").replace("\t", "\\t")


def name_as_text(name: str) -> str:
    r"""The name of a file as one line of text that can be written anywhere.

    Bytes that are no text are visible escapes, as is what a terminal would obey.

    >>> name_as_text("rank-\udcff.log"), name_as_text("größe.log"), name_as_text("a\n\x07b")
    ('rank-\\xff.log', 'größe.log', 'a\\n\\x07b')
    """
    return one_line(name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
