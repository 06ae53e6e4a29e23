"""Tables in text: a header line, then a record a line. Each record comes with its line number."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping

from ett_core.lines import BadLine

LIMIT = 1 << 17
"""Characters of the longest line that is read."""

Record = tuple[int, Mapping[str, str]]


def records(
    lines: Iterable[str], source: str, delimiter: str, wanted: Iterable[str], *, quoted: bool
) -> Iterator[Record | BadLine]:
    """The records of a table by the names of its columns, and what is wrong with the others.

    Args:
        lines: of the table, the header first.
        source: what the table is called in reports.
        delimiter: one character between two fields.
        wanted: columns that must be there.
        quoted: a field may stand in double quotes and then hold the delimiter.
    """
    header: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n").lstrip("\ufeff")
        if not text.strip():
            continue
        try:
            fields = _fields(text, delimiter, quoted=quoted)
        except ValueError as error:
            yield BadLine(source, number, str(error))
            continue
        if not header:
            header = [field.strip() for field in fields]
            if missing := [name for name in wanted if name not in header]:
                yield BadLine(source, number, f"this header lacks the column {missing[0]}")
                return
        elif fields == header:
            continue
        elif len(fields) != len(header):
            yield BadLine(source, number, f"{len(fields)} fields where the header has {len(header)}")
        else:
            yield number, dict(zip(header, fields, strict=True))


def _fields(text: str, delimiter: str, *, quoted: bool) -> list[str]:
    if len(text) > LIMIT:
        raise ValueError(f"longer than {LIMIT} characters")
    if not quoted:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration) as error:
        raise ValueError(f"no fields of a table ({error})") from error


def count(text: str) -> int:
    """A whole number of 0 or more; 0 where there is none.

    >>> count("8"), count("8.0"), count("")
    (8, 8, 0)
    """
    digits = text.strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else 0  # noqa: PLR2004 - enough accelerators for all
