"""The failures of a fleet as text: what they cost, suspect nodes, outbreaks, slower components.

Pure: from the JSON objects of the query API to lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeAlias

from ett_cli.amounts import duration, many
from ett_core.failures.words import chance_words
from ett_core.plain_text import one_line

Json: TypeAlias = Mapping[str, Any]

HOUR_S = 3600.0
GROUPS_SHOWN = 15
NODES_SHOWN = 10
LONGEST_NAME = 60


def report(answers: Mapping[str, Json], window: str) -> str:
    """The whole report; it ends without a newline."""
    failures = answers["failures"]
    parts = (
        [_headline(failures, window)],
        _missing(max(int(answer.get("missing", 0)) for answer in answers.values())),
        _groups(failures),
        _nodes(answers["nodes"]["nodes"]),
        _outbreaks(answers["regressions"]["outbreaks"]),
        _components(answers["regressions"]["components"]),
    )
    return "\n\n".join(text for part in parts if (text := "\n".join(map(one_line, part))))


def _headline(failures: Json, window: str) -> str:
    if not failures["total"]:
        return f"No failures in the last {window}."
    cost = "" if failures["cost"] is None else f", {failures['cost']:,.2f} in money"
    lost = f"{failures['lost_accelerator_s'] / HOUR_S:,.1f} accelerator-hours lost{cost}"
    return f"Failures of the last {window}: {failures['total']:,}, {lost}"


def _missing(jobs: int) -> Iterator[str]:
    if jobs:
        them = "it" if jobs == 1 else "them"
        yield f"Without {many(jobs, 'job')}: the exporter is still reading {them}; ask again in a minute."


def _groups(failures: Json) -> Iterator[str]:
    groups: Sequence[Json] = failures["groups"]
    if not groups:
        return
    names = [_name(group["key"]) for group in groups[:GROUPS_SHOWN]]
    width = max(24, *map(len, names))
    head = f"{'failures':>9} {'jobs':>6} {'lost h':>10} {'share':>8} {'together':>9}"
    yield f"{'By ' + failures['group_by']:<{width}} {head}"
    for name, group in zip(names, groups, strict=False):
        hours = f"{group['lost_accelerator_s'] / HOUR_S:,.1f}"
        shares = f"{_percent(group['lost_ratio']):>8} {_percent(group['cumulative_ratio']):>9}"
        counts = f"{group['count']:>9,} {group['jobs']:>6,}"
        yield f"{name:<{width}} {counts} {hours:>10} {shares}"
    if len(groups) > GROUPS_SHOWN:
        smaller = len(groups) - GROUPS_SHOWN
        yield f"... and {smaller:,} smaller {'one' if smaller == 1 else 'ones'}"


def _name(key: str) -> str:
    """A word from a job, in a table.

    >>> _name(""), len(_name("x" * 1000))
    ('(unknown)', 60)
    """
    name = one_line(key) or "(unknown)"
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _percent(ratio: float | None) -> str:
    """A share in percent.

    >>> _percent(0.1234), _percent(None)
    ('12.3 %', '-')
    """
    return "-" if ratio is None else f"{100 * ratio:.1f} %"


def _nodes(nodes: Sequence[Json]) -> Iterator[str]:
    suspects = [node for node in nodes if node["suspect"]]
    if suspects:
        yield "Suspect nodes"
    for node in suspects[:NODES_SHOWN]:
        classes = ", ".join(f"{name} {count}" for name, count in node["classes"].items())
        seen = f"{node['counted']} in {node['node_hours']:,.0f} h of use"
        usual = f"{node['expected']:.2f} to be expected ({chance_words(node['probability'])})"
        yield f"  {_name(node['node'])}: {seen}, {usual}: {classes}"


def _outbreaks(outbreaks: Sequence[Json]) -> Iterator[str]:
    if outbreaks:
        yield "Failures that struck many"
    for each in outbreaks:
        until = "and goes on" if each["until"] is None else f"for {duration(each['until'] - each['since'])}"
        owners = f" of {len(each['owners'])} teams" if each["owners"] else ""
        usual = "never before" if each["factor"] is None else f"{each['factor']:,.0f} times the usual rate"
        when = f"since {_moment(each['since'])} {until}"
        struck = f"{each['jobs']} jobs{owners}, {usual} ({chance_words(each['probability'])})"
        yield f"  {_name(each['failure_class'])} {when}: {struck}"


def _components(components: Sequence[Json]) -> Iterator[str]:
    if components:
        yield "Slower in new runs"
    for each in components:
        family = _name(each["family"] or "all families")
        before, after = (_amount(each[name], each["unit"]) for name in ("before", "after"))
        yield (
            f"  {each['figure']} of {family} since {_moment(each['since'])}: {before} before, {after} since "
            f"({each['factor']:.1f} times; {each['jobs_after']} jobs against {each['jobs_before']}, "
            f"{chance_words(each['probability'])})"
        )
        for change in each["changed"]:
            values = f"{_values(change['before'])} before, {_values(change['after'])} since"
            yield f"    beside it {_name(change['what'])}: {values}"


def _amount(value: float, unit: str) -> str:
    """A figure with its unit.

    >>> _amount(0.034, "ratio"), _amount(75.0, "s")
    ('3.4 % of the loop', '1 m 15.0 s')
    """
    return f"{100 * value:.1f} % of the loop" if unit == "ratio" else duration(value)


def _values(values: Sequence[str]) -> str:
    return ", ".join(map(_name, values)) or "nothing"


def _moment(unix_s: float) -> str:
    """A moment in UTC.

    >>> _moment(1764000000.0)
    '2025-11-24 16:00 UTC'
    """
    return datetime.fromtimestamp(unix_s, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
