"""Samples as lines of the Prometheus text format and of OpenMetrics: pure.

A sample is the same line in both; they differ in the heads of families and in the end of the
answer. Label values are escaped once, when a series is first seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import msgspec

from ett_core.metrics import COUNTER, FAMILIES

EOF = b"# EOF\n"
_BREAK = "\0"
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
    """The lines of one job by family; held by one thread at a time.

    The samples of a job keep their names and labels from one scrape to the next, so their lines
    are one template, into which the values are put at once.
    """

    def __init__(self) -> None:
        self.lines: Mapping[str, str] = {}
        self.series = 0
        self._names: list[str] = []
        self._labels: list[tuple[str, ...]] = []
        self._layout = _layout([])

    def update(self, samples: Sequence[Sample]) -> None:
        """Make the lines of `samples`."""
        names = [sample.name for sample in samples]
        labels = [sample.labels for sample in samples]
        if labels != self._labels or names != self._names:
            self._names, self._labels = names, labels
            self._layout = _layout(samples)
            self.series = len(samples)
        layout = self._layout
        values = [sample.value for sample in samples]
        if layout.order is not None:
            values = [values[place] for place in layout.order]
        lines = layout.template % _numbers(values)
        self.lines = dict(zip(layout.families, lines.split(_BREAK), strict=False))


class _Layout(msgspec.Struct, frozen=True):
    """The lines of samples with a gap for each value and a break between families.

    `order` holds the places of the samples in the order of the lines, None where it is theirs.
    """

    families: list[str]
    template: str
    order: list[int] | None


def _layout(samples: Sequence[Sample]) -> _Layout:
    by_family: dict[str, list[int]] = {}
    for place, sample in enumerate(samples):
        by_family.setdefault(family_of(sample.name), []).append(place)
    order = [place for places in by_family.values() for place in places]
    blocks = ("".join(f"{_prefix(samples[place])}%s\n" for place in places) for places in by_family.values())
    in_order = order == list(range(len(samples)))
    return _Layout(list(by_family), _BREAK.join(blocks), None if in_order else order)


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


def _prefix(sample: Sample) -> str:
    """What stands before the value of a sample, as part of a template."""
    labels = FAMILIES[family_of(sample.name)].labels
    names = (*labels, "le") if sample.name.endswith("_bucket") else labels
    pairs = ",".join(f'{name}="{escaped(value)}"' for name, value in zip(names, sample.labels, strict=True))
    return f"{sample.name}{{{pairs}}} ".replace("%", "%%") if pairs else f"{sample.name} "


def escaped(value: str) -> str:
    r"""A label value as it stands between its quotes; NUL, which no reader is sure of, is replaced.

    >>> escaped('a"b\\c\nd')
    'a\\"b\\\\c\\nd'
    """
    quoted = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return quoted.replace(_BREAK, "\N{REPLACEMENT CHARACTER}")


def _numbers(values: list[float]) -> tuple[str, ...]:
    """Values as Prometheus writes them; the JSON encoder is the fastest writer of floats at hand.

    >>> _numbers([1.5, 3, 1e22]), _numbers([float("inf"), float("nan")])
    (('1.5', '3', '1e22'), ('+Inf', 'NaN'))
    """
    if not math.isfinite(sum(values)):
        return tuple(map(_number, values))
    return tuple(_encode(values)[1:-1].decode().split(",")) if values else ()


_encode = msgspec.json.Encoder().encode


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
