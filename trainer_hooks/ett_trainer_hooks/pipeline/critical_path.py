"""Which stages of a start decided how long it took, and what was hidden behind them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Ran(NamedTuple):
    """One stage as it ran: `after` names the stages that it had to wait for. Times are monotonic seconds."""

    name: str
    after: tuple[str, ...]
    began_s: float
    ended_s: float


def critical_path(ran: Sequence[Ran]) -> tuple[str, ...]:
    """The stages that each waited for the one before, up to the last to end, first ones first.

    >>> imports = Ran("imports", (), 0.0, 5.0)
    >>> source, model = Ran("source", (), 0.0, 1.0), Ran("model", ("imports",), 5.0, 6.0)
    >>> data = Ran("data", ("source", "imports"), 5.0, 20.0)
    >>> critical_path([imports, source, model, data])
    ('imports', 'data')
    """
    by_name = {one.name: one for one in ran}
    path: list[str] = []
    at = max(ran, key=_end, default=None)
    while at is not None:
        path.append(at.name)
        at = max((by_name[name] for name in at.after), key=_end, default=None)
    return tuple(reversed(path))


def worked_s(ran: Sequence[Ran]) -> float:
    """Seconds of all stages, one after another."""
    return sum(one.ended_s - one.began_s for one in ran)


def hidden_s(ran: Sequence[Ran]) -> float:
    """Seconds of stages that passed while another one ran, too.

    >>> hidden_s([Ran("imports", (), 0.0, 5.0), Ran("source", (), 0.0, 1.0), Ran("data", (), 4.0, 7.0)])
    2.0
    """
    covered, until = 0.0, float("-inf")
    for one in sorted(ran, key=lambda one: one.began_s):
        covered += max(0.0, one.ended_s - max(one.began_s, until))
        until = max(until, one.ended_s)
    return worked_s(ran) - covered


def _end(one: Ran) -> float:
    return one.ended_s
