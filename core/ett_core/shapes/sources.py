r"""The value of TORCH_COMPILE_DYNAMIC_SOURCES: names, commas, and dimensions. Pure.

Torch takes all spaces out of the value, splits it at commas, reads `:N` at the end of an entry as a
dimension (from 2.13 on), and compares what is left with each name: for equality, then as the
beginning of a regular expression. A name with a space, a comma, or anything else that could make it
a wrong regular expression (which would break every compilation) is therefore written as one that
matches it alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ett_core.shapes.facts import Symbol, order

VARIABLE = "TORCH_COMPILE_DYNAMIC_SOURCES"
DIMENSIONS_SINCE = (2, 13)
"""The first torch that understands a dimension behind a name."""

_PLAIN = re.compile(r"^(?:[\w.()]|\['[\w.]*'\]|\[\d+\])+$")
"""Names that may stand as they are: as regular expressions they match no name."""

_VERSION = re.compile(r"^(\d+)\.(\d+)")


def knows_dimensions(torch_version: str) -> bool:
    """Whether this torch understands a dimension behind a name; one that nobody told is taken to.

    >>> knows_dimensions("2.13.0+cpu"), knows_dimensions("2.9.1"), knows_dimensions("")
    (True, False, True)
    """
    found = _VERSION.match(torch_version)
    return found is None or (int(found[1]), int(found[2])) >= DIMENSIONS_SINCE


def value_of(symbols: Iterable[Symbol], *, dimensions: bool = True) -> str:
    r"""The value that leaves these open, in order of names.

    Args:
        symbols: what is to be left open.
        dimensions: whether torch understands dimensions; else all of a tensor are left open.

    >>> value_of([Symbol("L['x']", 0), Symbol("L['n']"), Symbol("L['x']", 1)])
    "L['n'],L['x']:0,L['x']:1"
    >>> value_of([Symbol("L['x']", 0), Symbol("L['x']", 1)], dimensions=False)
    "L['x']"
    >>> print(value_of([Symbol("L['d']['user-id, hashed']", 0)]))
    L\['d'\]\['user\-id..hashed'\]$:0
    """
    entries = [_entry(symbol, dimensions=dimensions) for symbol in sorted(symbols, key=order)]
    return ",".join(dict.fromkeys(entries))


def shell_line(value: str) -> str:
    r"""The line of a shell that sets the variable.

    >>> print(shell_line("L['x']:0"))
    export TORCH_COMPILE_DYNAMIC_SOURCES="L['x']:0"
    >>> print(shell_line(r"L\['a.b'\]$:0"))
    export TORCH_COMPILE_DYNAMIC_SOURCES="L\\['a.b'\\]\$:0"
    """
    quoted = re.sub(r'([\\$"`])', r"\\\1", value)
    return f'export {VARIABLE}="{quoted}"'


def _entry(symbol: Symbol, *, dimensions: bool) -> str:
    suffix = f":{symbol.dim}" if dimensions and symbol.dim is not None else ""
    return _pattern(symbol.source) + suffix


def _pattern(source: str) -> str:
    if _PLAIN.match(source):
        return source
    return "".join("." if mark in " ," else re.escape(mark) for mark in source) + "$"
