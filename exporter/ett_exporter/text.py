"""Samples as lines of the Prometheus text format and of OpenMetrics: pure.

A sample is the same line in both; they differ in the heads of families and in the end of the
answer. Label values are escaped once, when a series is first seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

import msgspec

from ett_core.metrics import COUNTER, FAMILIES

EOF = b"# EOF\n"
LABELS_SHARED = 4096
"""Labels that jobs have in common, dozens each, are one object, and their text is made once. Those that one
job alone has (`ett_job_info`) pass through."""
LAYOUTS_SHARED = 1024
BETWEEN_FAMILIES = b"\0"
"""No label and no number has it."""
_SUFFIXES = ("_sum", "_count", "_bucket")

Sample: TypeAlias = tuple[str, tuple[str, ...], float]
"""Name, labels and value of one sample; the name is that of its family, with `_sum`, `_count` or `_bucket`
where that has such."""
Samples: TypeAlias = Iterator[Sample]


def summary(family: str, labels: tuple[str, ...], count: int, total: float) -> Samples:
    """The two samples of a summary."""
    yield (f"{family}_count", labels, count)
    yield (f"{family}_sum", labels, total)


def histogram(
    family: str, labels: tuple[str, ...], bounds: Sequence[float], cumulative: Sequence[int], total: float
) -> Samples:
    """The samples of a histogram; `cumulative` has one more number than `bounds`: all observations."""
    for bound, count in zip((*bounds, math.inf), cumulative, strict=True):
        yield (f"{family}_bucket", (*labels, _number(bound)), count)
    yield (f"{family}_count", labels, cumulative[-1])
    yield (f"{family}_sum", labels, total)


class JobText:
    """The lines of one job, or of none, by family; held by one thread at a time.

    The samples of a job keep their names and labels from one scrape to the next, so all that stands
    around the values is kept, as one template.
    """

    __slots__ = ("_job_id", "_labels", "_layout", "_template")

    def __init__(self, job_id: str | None = None, families: tuple[str, ...] = tuple(FAMILIES)) -> None:
        """`families` are all that may have lines; with a `job_id`, samples leave out that label."""
        self._job_id = job_id
        self._layout = _layout((), families)
        self._labels: Sequence[tuple[str, ...]] = ()
        self._template = self._layout.template([])

    def update(self, samples: Sequence[Sample]) -> Sequence[bytes]:
        """The lines of `samples`, of each family of `families`; empty where it has none."""
        names, labels, values = zip(*samples) if samples else ((), (), ())  # noqa: B905 - all are triples
        if labels != self._labels or names != self._layout.names:
            self._lay_out(names, labels)
        return tuple((self._template % self._layout.in_order(_numbers(values))).split(BETWEEN_FAMILIES))

    def _lay_out(self, names: Sequence[str], labels: Sequence[tuple[str, ...]]) -> None:
        self._layout = _layout(tuple(names), self._layout.families)
        self._labels = tuple(map(_shared, labels))
        around = (_around(name, of, self._job_id is not None) for name, of in zip(names, labels, strict=True))
        job = _of_template(escaped(self._job_id or ""))
        self._template = self._layout.template([before + job + after for before, after in around])


class _Layout:
    """Which of the lines of samples with these names belong to which of some families."""

    def __init__(self, names: Sequence[str], families: tuple[str, ...]) -> None:
        self.names = names
        self.families = families
        places: dict[str, list[int]] = {family: [] for family in families}
        for place, name in enumerate(names):
            places[family_of(name)].append(place)
        self._places = list(places.values())
        self.in_order: Callable[[list[bytes]], tuple[bytes, ...]]
        self.in_order = itemgetter(*chain(*self._places)) if len(names) > 1 else tuple
        """Values of the samples in the order of their lines."""

    def template(self, lines: Sequence[bytes]) -> bytes:
        """The lines of the samples with room for their values, family by family."""
        return BETWEEN_FAMILIES.join(b"".join(lines[place] for place in of) for of in self._places)


@lru_cache(LAYOUTS_SHARED)
def _layout(names: tuple[str, ...], families: tuple[str, ...]) -> _Layout:
    return _Layout(names, families)


@lru_cache(LABELS_SHARED)
def _shared(labels: tuple[str, ...]) -> tuple[str, ...]:
    return labels


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


@lru_cache(LABELS_SHARED)
def _around(name: str, labels: tuple[str, ...], of_job: bool) -> tuple[bytes, bytes]:  # noqa: FBT001 - as above
    """What stands before the `job_id` of a sample, or its place, and after that with room for the value."""
    names = FAMILIES[family_of(name)].labels
    if name.endswith("_bucket"):
        names = (*names, "le")
    pairs = [f'{label}="{escaped(value)}"' for label, value in zip(names[of_job:], labels, strict=True)]
    if of_job:
        before, after = f'{name}{{{names[0]}="', ",".join(['"', *pairs]) + "} "
    else:
        before, after = name, f"{{{','.join(pairs)}}} " if pairs else " "
    return _of_template(before), _of_template(after) + b"%b\n"


def _of_template(text: str) -> bytes:
    """A text that is to stand in a template as it is."""
    return text.replace("%", "%%").encode()


def escaped(value: str) -> str:
    r"""A label value as it stands between its quotes; NUL, which no reader is sure of, is replaced.

    >>> escaped('a"b\\c\nd')
    'a\\"b\\\\c\\nd'
    """
    quoted = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return quoted.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _numbers(values: Sequence[float]) -> list[bytes]:
    """Values as Prometheus writes them; JSON's encoder writes floats fastest.

    >>> _numbers([1.5, 3, 1e22]), _numbers([float("inf"), float("nan")])
    ([b'1.5', b'3', b'1e22'], [b'+Inf', b'NaN'])
    """
    text = _encode_lines(values)
    if b"n" in text:
        return [_number(value).encode() for value in values]
    return text.splitlines()


_encode_lines = msgspec.json.Encoder().encode_lines


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
