"""What a program gave for an event, as a line can hold it: used where it cannot be written as it is.

Arguments and paths may hold any byte, counters of steps may be arrays of numpy or torch, losses may be no
numbers, names may be endless. None of that is worth the event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from ett_core.events import Event

KINDS_REMEMBERED = 64


def sayable(kind: Callable[..., Event], fields: Mapping[str, Any]) -> dict[str, Any]:
    r"""The fields of an event of a kind as plain values, none longer than readers take.

    >>> from ett_core.events import Counters, PhaseBegin
    >>> sayable(PhaseBegin, {"phase": "save \udcff" + "x" * 999})["phase"][:8]
    'save ?xx'
    >>> sayable(Counters, {"values": {"loss": math.nan, "lr": 0.5}})
    {'values': {'lr': 0.5}}
    """
    longest = _longest_texts(kind)
    return {name: _cut(plain_value(value), longest.get(name)) for name, value in fields.items()}


def plain_value(value: Any) -> Any:  # noqa: ANN401 - the field of an event, by its type
    r"""A value as JSON knows it; numbers that are none are left out of mappings.

    >>> plain_value("b\udcff"), plain_value({"a": math.inf, "b": 1})
    ('b?', {'b': 1})
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        pairs = ((plain_value(name), plain_value(each)) for name, each in value.items())
        return {name: each for name, each in pairs if not isinstance(each, float) or math.isfinite(each)}
    if isinstance(value, tuple):
        return tuple(map(plain_value, value))
    if not isinstance(value, msgspec.Struct) and callable(item := getattr(value, "item", None)):
        return item()  # an array of one element, of numpy, torch and others
    return value


def _cut(value: Any, longest: int | None) -> Any:  # noqa: ANN401 - the field of an event
    return value[:longest] if isinstance(value, str) else value


@lru_cache(KINDS_REMEMBERED)
def _longest_texts(kind: Callable[..., Event]) -> Mapping[str, int]:
    """Characters that the texts of a kind of event may have, by field."""
    from msgspec import inspect  # noqa: PLC0415 - hardly ever needed

    told = inspect.type_info(kind)
    if not isinstance(told, inspect.StructType):
        return {}
    texts = ((field.name, field.type) for field in told.fields)
    return {
        name: text.max_length for name, text in texts if isinstance(text, inspect.StrType) and text.max_length
    }
