"""What a server of the query API answers: vectors and matrices, from JSON. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from ett_dashboard.client import LacksError


class Sample(msgspec.Struct, frozen=True):
    """One series at one moment (`at`, Unix seconds); values are finite."""

    labels: Mapping[str, str]
    at: float
    value: float


class Line(msgspec.Struct, frozen=True):
    """One series over time: moments in Unix seconds with finite values."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]


class _Vector(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]


class _Matrix(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _VectorData(msgspec.Struct, frozen=True):
    result: list[_Vector]


class _MatrixData(msgspec.Struct, frozen=True):
    result: list[_Matrix]


class _Refusal(msgspec.Struct, frozen=True):
    error: str = ""


class _VectorAnswer(msgspec.Struct, frozen=True):
    data: _VectorData


class _MatrixAnswer(msgspec.Struct, frozen=True):
    data: _MatrixData


def vector(body: bytes) -> list[Sample]:
    r"""The samples of an instant vector.

    Raises:
        ValueError: it is none.

    >>> vector(b'{"status": "success", "data": {"result": [{"metric": {"a": "b"}, "value": [5, "1.5"]}]}}')
    [Sample(labels={'a': 'b'}, at=5.0, value=1.5)]
    """
    rows = msgspec.json.decode(body, type=_VectorAnswer).data.result
    samples = [Sample(row.metric, row.value[0], float(row.value[1])) for row in rows]
    return [sample for sample in samples if math.isfinite(sample.value)]


def matrix(body: bytes) -> list[Line]:
    """The lines of a range vector; moments without a finite value are left out.

    Raises:
        ValueError: it is none.
    """
    rows = msgspec.json.decode(body, type=_MatrixAnswer).data.result
    return [Line(row.metric, _finite(row.values)) for row in rows]


def refusal(body: bytes) -> str:
    """Why a server refused, in its own words; empty where it does not say."""
    try:
        return msgspec.json.decode(body, type=_Refusal).error
    except (ValueError, RecursionError):
        return ""


def _finite(values: Sequence[tuple[float, str]]) -> list[tuple[float, float]]:
    numbers = ((at, float(value)) for at, value in values)
    return [(at, value) for at, value in numbers if math.isfinite(value)]


def by_label(samples: Sequence[Sample], label: str) -> dict[str, float]:
    """Values by one label; those of the same value are added up.

    >>> by_label([Sample({"a": "x"}, 0, 1.0), Sample({"a": "x"}, 0, 2.0), Sample({}, 0, 4.0)], "a")
    {'x': 3.0, '': 4.0}
    """
    totals: dict[str, float] = {}
    for sample in samples:
        key = sample.labels.get(label, "")
        totals[key] = totals.get(key, 0.0) + sample.value
    return totals


def lacks(what: str) -> LacksError:
    """The error that says what no series tells.

    >>> print(lacks("the evidence of failures"))
    the evidence of failures needs the exporter's API
    """
    return LacksError(f"{what} needs the exporter's API")
