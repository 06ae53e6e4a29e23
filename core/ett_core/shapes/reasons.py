"""Torch's reasons to compile again, read. Pure; the forms are those of torch 2.6 to 2.13.

A reason names one guard of the newest graph that did not hold. Names in it are shortened: torch
writes `kw['a']` for what its frame knows as `L['kw']['a']`.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Kind = Literal["size", "layout", "tensor", "small", "branch", "length", "number", "fraction", "other"]
"""What differed: a size; how a tensor lies in memory; what else it is (dtype, rank, gradient); a size
that is 0 or 1; a size that the code decides by; how many items there are; a whole number; a number
with a fraction; anything else."""


class Reason(msgspec.Struct, frozen=True):
    """One reason.

    Args:
        kind: what differed.
        text: the guard in torch's words, without where it stands in the code.
        source: the whole name of what differed; empty where the guard names no single thing.
        dim: the dimension, for `size`, `layout` and `small`.
        values: what was expected and what came, as far as torch says.
    """

    kind: Kind
    text: str
    source: str = ""
    dim: int | None = None
    values: tuple[int, ...] = ()


_GRAPH = re.compile(r"^(?:\[\S+\] *)?!?\d+(?:/\d+)+: ")
_PLACE = re.compile(r"\s+# ")
_FRACTION = r"-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf|nan)"
_FORMS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "size",
        re.compile(
            r"^tensor '(?P<source>.+)' size mismatch at index (?P<dim>\d+)\. "
            r"expected (?P<before>-?\d+), actual (?P<after>-?\d+)"
        ),
    ),
    ("layout", re.compile(r"^tensor '(?P<source>.+)' stride mismatch at index (?P<dim>\d+)")),
    ("tensor", re.compile(r"^tensor '(?P<source>.+)' (?:\w+ )+mismatch")),
    ("small", re.compile(r"^2 <= (?P<source>\S.*)\.size\(\)\[(?P<dim>\d+)\]$")),
    ("branch", re.compile(r"\.size\(\)\[\d+\]")),
    ("length", re.compile(r"^len\((?P<source>.+)\) == \d+$")),
    ("number", re.compile(r"^(?P<source>[^\s=].*?) == (?P<before>-?\d+)$")),
    ("fraction", re.compile(rf"^(?P<source>[^\s=].*?) == {_FRACTION}$")),
)
"""The forms in the order in which they are tried."""

_CALL = re.compile(r"^(\w+)\((.+)\)(.*)$")
_LOCAL = re.compile(r"^([A-Za-z_]\w*)(.*)$", re.DOTALL)


def parse(reason: str) -> Reason:
    """A reason as torch wrote it.

    >>> found = parse("0/0: tensor 'x' size mismatch at index 0. expected 64, actual 65")
    >>> found.kind, found.source, found.dim, found.values
    ('size', "L['x']", 0, (64, 65))
    >>> parse("0/1: 2 <= kw['a'].size()[0]  # y = x * 2  # train.py:8 in forward").source
    "L['kw']['a']"
    >>> parse("0/0: n == 64          # y = x * n").values, parse("0/0: s == 0.5  # y").kind
    ((64,), 'fraction')
    >>> parse("0/0: 51 <= x.size()[0]  # if len(x) > 50").kind, parse("0/0: len(ys) == 1").kind
    ('branch', 'length')
    >>> parse("1/0: tensor 'x' dtype mismatch. expected Float, actual Double").kind
    'tensor'
    """
    first = reason.strip().partition("\n")[0]
    text = _PLACE.split(_GRAPH.sub("", first), maxsplit=1)[0].strip()
    for kind, form in _FORMS:
        if found := form.search(text):
            named = {name: value for name, value in found.groupdict().items() if value is not None}
            values = tuple(int(named[name]) for name in ("before", "after") if name in named)
            dim = int(named["dim"]) if "dim" in named else None
            return Reason(kind, text, whole_name(named.get("source", "")), dim, values)
    return Reason("other", text)


def whole_name(short: str) -> str:
    """A name as torch's frame knows it, from how a reason shortens it.

    >>> whole_name("args[0]"), whole_name("self._buffers['b']"), whole_name("G['W']")
    ("L['args'][0]", "L['self']._buffers['b']", "G['W']")
    >>> whole_name("___from_numpy(a)")
    "___from_numpy(L['a'])"
    """
    if short.startswith(("G[", "L[")):
        return short
    if call := _CALL.match(short):
        return f"{call[1]}({whole_name(call[2])}){call[3]}"
    local = _LOCAL.match(short)
    return f"L['{local[1]}']{local[2]}" if local else short
