"""Samples as lines of the Prometheus text format and of OpenMetrics: pure.

A sample is the same line in both; they differ in the heads of families and in the end of the
answer. Label values are escaped once, when a series is first seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeAlias

import msgspec

from ett_core.metrics import COUNTER, FAMILIES

EOF = b"# EOF\n"
_BREAK = b"\0"
_SUFFIXES = ("_sum", "_count", "_bucket")


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One sample; its name is that of its family, with `_sum`, `_count` or `_bucket` where it has such."""

    name: str
    labels: tuple[str, ...]
    value: float


Samples: TypeAlias = Iterator[Sample]


def summary(family: str, labels: tuple[str, ...], count: int, total: float) -> Samples:
    """The two samples of a summary."""
    yield Sample(f"{family}_count", labels, count)
    yield Sample(f"{family}_sum", labels, total)


def histogram(
    family: str, labels: tuple[str, ...], bounds: Sequence[float], cumulative: Sequence[int], total: float
) -> Samples:
    """The samples of a histogram; `cumulative` has one more number than `bounds`: all observations."""
    for bound, count in zip((*bounds, math.inf), cumulative, strict=True):
        yield Sample(f"{family}_bucket", (*labels, _number(bound)), count)
    yield Sample(f"{family}_count", labels, cumulative[-1])
    yield Sample(f"{family}_sum", labels, total)


class JobText:
    """The lines of one job, or of none, by family; held by one thread at a time.

    The samples of a job keep their names and labels from one scrape to the next, so what stands
    between the values is kept, and all values are put there at once.
    """

    def __init__(self, first: tuple[str, ...] = ()) -> None:
        """`first` are the labels that all samples begin with, which they leave out."""
        self._first = first
        self.families: Sequence[str] = ()
        """The same object as long as names and labels stay."""
        self.lines: Sequence[bytes] = ()
        """Of each of the families."""
        self.series = 0
        self._names: list[str] = []
        self._labels: list[tuple[str, ...]] = []
        self._parts: list[bytes] = []
        self._order: Sequence[int] | None = None
        """The places of the samples in the order of the lines, None where it is theirs."""

    def update(self, samples: Sequence[Sample]) -> None:
        """Make the lines of `samples`."""
        names = [sample.name for sample in samples]
        labels = [sample.labels for sample in samples]
        if labels != self._labels or names != self._names:
            self._names, self._labels = names, labels
            self._lay_out(samples)
        values = [sample.value for sample in samples]
        if self._order is not None:
            values = [values[place] for place in self._order]
        self._parts[1::2] = _numbers(values)
        self.lines = b"".join(self._parts).split(_BREAK) if samples else ()

    def by_family(self) -> dict[str, bytes]:
        """The lines by family."""
        return dict(zip(self.families, self.lines, strict=True))

    def _lay_out(self, samples: Sequence[Sample]) -> None:
        """What stands before, between and after the values, with breaks between families."""
        by_family: dict[str, list[int]] = {}
        for place, sample in enumerate(samples):
            by_family.setdefault(family_of(sample.name), []).append(place)
        parts = [b""]
        for places in by_family.values():
            for place in places:
                parts[-1] += _prefix(samples[place], self._first)
                parts += [b"", b"\n"]
            parts[-1] += _BREAK
        self._parts = [*parts[:-1], b"\n"]
        order = [place for places in by_family.values() for place in places]
        self.families = list(by_family)
        self._order = None if order == list(range(len(samples))) else order
        self.series = len(samples)


@cache
def family_of(name: str) -> str:
    """The family of a series.

    >>> family_of("ett_job_time_to_recover_seconds_sum"), family_of("ett_job_samples_total")
    ('ett_job_time_to_recover_seconds', 'ett_job_samples_total')
    """
    if name in FAMILIES:
        return name
    return next(family for s in _SUFFIXES if (family := name.removesuffix(s)) in FAMILIES)


def head(family: str, *, openmetrics: bool) -> bytes:
    r"""The two lines before the samples of a family.

    >>> head("ett_job_failures_total", openmetrics=True).decode().splitlines()[1]
    '# TYPE ett_job_failures counter'
    >>> head("ett_job_failures_total", openmetrics=False).decode().splitlines()[1]
    '# TYPE ett_job_failures_total counter'
    """
    return _head(family, openmetrics)


@cache
def _head(family: str, openmetrics: bool) -> bytes:  # noqa: FBT001 - the cache asks by position
    described = FAMILIES[family]
    name = family.removesuffix("_total") if openmetrics and described.kind == COUNTER else family
    text = described.help.replace("\\", "\\\\").replace("\n", "\\n")
    if openmetrics:
        text = text.replace('"', '\\"')
    return f"# HELP {name} {text}\n# TYPE {name} {described.kind}\n".encode()


def _prefix(sample: Sample, first: tuple[str, ...]) -> bytes:
    """What stands before the value of a sample."""
    labels = FAMILIES[family_of(sample.name)].labels
    names = (*labels, "le") if sample.name.endswith("_bucket") else labels
    values = (*first, *sample.labels)
    pairs = ",".join(f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True))
    return (f"{sample.name}{{{pairs}}} " if pairs else f"{sample.name} ").encode()


def escaped(value: str) -> str:
    r"""A label value as it stands between its quotes; NUL, which no reader is sure of, is replaced.

    >>> escaped('a"b\\c\nd')
    'a\\"b\\\\c\\nd'
    """
    quoted = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return quoted.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _numbers(values: list[float]) -> list[bytes]:
    """Values as Prometheus writes them; the JSON encoder is the fastest writer of floats at hand.

    >>> _numbers([1.5, 3, 1e22]), _numbers([float("inf"), float("nan")])
    ([b'1.5', b'3', b'1e22'], [b'+Inf', b'NaN'])
    """
    if not math.isfinite(sum(values)):
        return [_number(value).encode() for value in values]
    return _encode(values)[1:-1].split(b",") if values else []


_encode = msgspec.json.Encoder().encode


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
