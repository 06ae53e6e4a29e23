"""Steps: what would be done to one thing in Grafana, why, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from json import dumps
from typing import Any

CREATE, CHANGE, DELETE, KEEP, REFUSE = "create", "change", "delete", "keep", "refuse"
CHANGES = (CREATE, CHANGE, DELETE)


def _nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing and what becomes of it. `take` does it; `differences` are lines of a unified diff."""

    kind: str
    thing: str
    why: str = ""
    differences: tuple[str, ...] = ()
    take: Callable[[], object] = field(default=_nothing, repr=False, compare=False)


def differences(before: object, after: object) -> tuple[str, ...]:
    """A unified diff of two values as JSON, keys in order.

    >>> differences({"a": 1, "b": 2}, {"a": 1, "b": 3})[2:]
    ('@@ -1,4 +1,4 @@', ' {', '   "a": 1,', '-  "b": 2', '+  "b": 3', ' }')
    """
    old, new = (dumps(each, indent=2, sort_keys=True).splitlines() for each in (before, after))
    return tuple(unified_diff(old, new, "in Grafana", "here", lineterm=""))


def lacks(there: object, wanted: object) -> bool:
    """Whether something that is wanted is not there; what else is there does not matter.

    >>> lacks({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}), lacks({"a": [1, 2]}, {"a": [1]}), lacks(1, 1.0)
    (False, True, False)
    """
    if isinstance(wanted, Mapping):
        return not isinstance(there, Mapping) or any(
            name not in there or lacks(there[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return not isinstance(there, list) or len(there) != len(wanted) or any(map(lacks, there, wanted))
    return there != wanted


def wanted_part(there: Any, wanted: Any) -> Any:  # noqa: ANN401 - any JSON
    """Of what is there only what is also wanted, for a diff that shows no defaults of Grafana.

    >>> wanted_part({"a": 1, "version": 3, "b": [{"x": 1, "y": 2}]}, {"a": 2, "b": [{"x": 1}]})
    {'a': 1, 'b': [{'x': 1}]}
    """
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        return {name: wanted_part(there[name], value) for name, value in wanted.items() if name in there}
    if isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        return list(map(wanted_part, there, wanted))
    return there


def told(step: Step, *, lines: int) -> Iterable[str]:
    """A step as lines to read; of a long diff the first `lines`, none at all for 0."""
    yield f"{step.kind:<7} {step.thing}{f': {step.why}' if step.why else ''}"
    yield from (f"    {line}" for line in step.differences[:lines])
    if 0 < lines < len(step.differences):
        yield f"    ... {len(step.differences) - lines} more lines"
