"""What a job's pipeline decided, and what it compiled again, for its page. Pure: rows to strings.

Every word of a job is inert.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import tzinfo
from html import escape

import msgspec

from ett_core.compile_log import CompileLine
from ett_core.decision_log import DecisionLine
from ett_core.shapes import advise, compilations_of
from ett_core.shapes.reasons import parse
from ett_core.shapes.sources import shell_line
from ett_dashboard.markup import heads
from ett_dashboard.words import many, moment, plain

WHY_CHARACTERS = 600
NAME_CHARACTERS = 120
MOST_FIGURES = 8
DECISIONS = (
    ("When", "When it was decided, in your time zone."),
    ("Who", "The rank that told of it, and how many others told the same."),
    ("What", "What was decided."),
    ("Why", "Its reason; the figures behind it show on the row."),
)
AGAIN = (
    ("Code", "What was compiled again."),
    ("What differed", "What the graphs there were did not fit, and the values that came."),
    ("Times", "How often, on one rank of the latest attempt that compiled."),
)
"""Columns: title and definition."""


class Again(msgspec.Struct, frozen=True):
    """A piece of code that was compiled again for one reason: what differed, with what came, how often."""

    code: str
    what: str
    values: tuple[int, ...]
    times: int


def who(line: DecisionLine) -> str:
    """Who told a decision, and how many others the same."""
    first = "launcher" if line.rank < 0 else f"rank {line.rank}"
    others = "" if line.ranks == 1 else f" and {line.ranks - 1:,} more"
    return f"{first}{others}"


def decisions_table(lines: Sequence[DecisionLine], zone: tzinfo) -> str:
    """A row a decision: when, who, what, why; its figures come up over the row."""
    return _table("Decisions", DECISIONS, [_decision(line, zone) for line in lines])


def again(lines: Sequence[CompileLine]) -> list[Again]:
    """What was compiled again in the latest attempt, by code and what differed, most often first."""
    told = [line for line in latest(lines) if line.recompile_reason is not None]
    counts: Counter[tuple[str, str]] = Counter()
    values: dict[tuple[str, str], set[int]] = {}
    for line in told:
        reason = parse(line.recompile_reason or "")
        what = f"{reason.source}, dimension {reason.dim}" if reason.kind == "size" else reason.text
        key = (line.code or line.graph, what)
        counts[key] += 1
        values.setdefault(key, set()).update(reason.values)
    return [
        Again(code, what, tuple(sorted(values[code, what])), times)
        for (code, what), times in counts.most_common()
    ]


def again_table(rows: Sequence[Again]) -> str:
    """A row a reason."""
    return _table("Compiled again", AGAIN, [_again(row) for row in rows], " ett-wraps")


def setting(lines: Sequence[CompileLine], torch_version: str) -> tuple[str, str]:
    """What sizes that varied cost, and the line of a shell that spares it; both empty where nothing does."""
    advice = advise(compilations_of(latest(lines)), torch_version=torch_version)
    if not advice.value:
        return "", ""
    expected = f"{advice.expected}" if advice.counted else f"at least {advice.expected}"
    said = f"{many(advice.graphs, 'graph')} there; {expected} where what varied is left open from the start:"
    return said, shell_line(advice.value)


def latest(lines: Sequence[CompileLine]) -> list[CompileLine]:
    """The lines of the latest attempt that compiled."""
    attempt = max((line.attempt for line in lines), default=0)
    return [line for line in lines if line.attempt == attempt]


def _decision(line: DecisionLine, zone: tzinfo) -> tuple[str, Sequence[str]]:
    figures = ", ".join(f"{name} {value:g}" for name, value in list(line.values.items())[:MOST_FIGURES])
    return figures, (
        moment(line.time, zone),
        who(line),
        plain(line.what, NAME_CHARACTERS),
        plain(line.why, WHY_CHARACTERS),
    )


def _again(row: Again) -> tuple[str, Sequence[str]]:
    came = f": {', '.join(map(str, row.values))}" if row.values else ""
    return "", (plain(row.code, NAME_CHARACTERS), plain(row.what + came, WHY_CHARACTERS), f"{row.times:,}")


def _table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[str, Sequence[str]]], more: str = ""
) -> str:
    body = "".join(f'<tr title="{escape(hint)}">{"".join(map(_cell, cells))}</tr>' for hint, cells in rows)
    return (
        f'<table class="ett-list ett-told{more}" aria-label="{escape(title)}">'
        f"<thead><tr>{heads(columns)}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(text: str) -> str:
    return f"<td><bdi>{escape(text)}</bdi></td>"
