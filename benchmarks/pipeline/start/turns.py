"""Ways of doing one thing in turns, round after round; what is known so far is on the disk after each round.

A round is each way once, in an order that turns. One in which a way fails does not count: why it failed is
kept, the next one begins. No round begins that would end after the minutes that were given, going by the
longest one so far. Called again with the same directory, the rounds in it count.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psutil

PATIENCE_S = 1800.0
"""Longest wait for the load to fall below what was given."""
ROUNDS, TABLE = "rounds.jsonl", "table.md"


class Comparison(NamedTuple):
    """What is done in ways; the first way is what the others are compared with."""

    words: str
    ways: Sequence[str]
    measure: Callable[[str, Path, Path], Sequence[float]]
    """Figures of a way, for a host (a folder that is not there yet) and a folder that outlasts the rounds."""
    prepare: Callable[[str, Path], None] = lambda way, lasting: None  # noqa: ARG005
    """Called before the first turn of a way, for the folder that outlasts the rounds."""


class Columns(NamedTuple):
    """What the table says of each way."""

    figures: Sequence[str]
    compared: str
    """What the first figure is compared in, round by round."""
    compare: Callable[[float, float], float]
    """The first way's figure beside this way's."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round as it is kept; `company` is the processors that others used meanwhile, on average."""

    words: str
    began: str
    took_s: float
    figures: Mapping[str, Sequence[float]]
    company: Mapping[str, float]


def times_less(first: float, own: float) -> float:
    return first / own if own else math.inf


def percent_more(first: float, own: float) -> float:
    return 100 * (own / first - 1)


def arguments(about: str) -> argparse.ArgumentParser:
    """What all programs are told."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a directory for rounds and table")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no round that ends later")
    parser.add_argument("--load", type=float, default=math.inf, help="begin a turn when the load is below")
    return parser


def run(comparisons: Sequence[Comparison], columns: Columns, given: argparse.Namespace) -> None:
    """Round after round of all comparisons, as far as the minutes go; prints the table."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    given.out.mkdir(parents=True, exist_ok=True)
    until_s = time.monotonic() + 60 * given.minutes
    rounds = kept(given.out)
    with tempfile.TemporaryDirectory(prefix="turns-") as name:
        places = [Path(name) / str(number) for number in range(len(comparisons))]
        for number in range(given.rounds):
            for comparison, place in zip(comparisons, places, strict=True):
                mine = of(comparison, rounds)
                longest_s = max((each.took_s for each in mine), default=0.0)
                if len(mine) > number or time.monotonic() + longest_s >= until_s:
                    continue
                if (made := attempted(comparison, number, place, given)) is not None:
                    rounds.append(made)
                    keep(given.out, rounds, comparisons, columns)
    print(table(rounds, comparisons, columns), end="")


def attempted(comparison: Comparison, number: int, place: Path, given: argparse.Namespace) -> Round | None:
    """One round; None where a way failed, why is then in a file of the directory."""
    began, began_s = datetime.now(UTC), time.monotonic()
    figures: dict[str, Sequence[float]] = {}
    company: dict[str, float] = {}
    for way in in_turn(comparison.ways, number):
        try:
            (lasting := place / "lasting" / way).mkdir(parents=True, exist_ok=True)
            comparison.prepare(way, lasting)
            wait_for(given.load)
            before = clocks()
            figures[way] = comparison.measure(way, place / f"{number}-{way}", lasting)
            company[way] = company_since(before)
        except Exception:  # noqa: BLE001 - the next round may do
            failed = given.out / f"failed-{began:%Y%m%dT%H%M%S}-{way}.txt"
            failed.write_text(f"{comparison.words}\n{traceback.format_exc()}")
            tell(f"{comparison.words}: {way} failed in round {number}, see {failed}")
            return None
        tell(f"{comparison.words}: {way} of round {number}: {figures[way][0]:.1f}, others {company[way]:.2f}")
    return Round(
        words=comparison.words,
        began=began.isoformat(timespec="seconds"),
        took_s=time.monotonic() - began_s,
        figures=figures,
        company=company,
    )


def in_turn(ways: Sequence[str], number: int) -> list[str]:
    """The order of a round: each way comes first as often, and follows each other one.

    >>> [" ".join(in_turn("abc", number)) for number in range(4)]
    ['a b c', 'c b a', 'b c a', 'a c b']
    """
    start = number // 2 % len(ways)
    order = [*ways[start:], *ways[:start]]
    return order if number % 2 == 0 else order[::-1]


def wait_for(load: float) -> None:
    """Wait until the machine is quiet enough, or for half an hour."""
    until = time.monotonic() + PATIENCE_S
    while os.getloadavg()[0] > load and time.monotonic() < until:
        time.sleep(2.0)


class Clocks(NamedTuple):
    """Seconds so far: of the clock, of all processors at work, and of those for this program's children."""

    now: float
    all: float
    own: float


def clocks() -> Clocks:
    used, times = resource.getrusage(resource.RUSAGE_CHILDREN), psutil.cpu_times()
    busy = times.user + times.nice + times.system + times.irq + times.softirq + times.steal
    return Clocks(time.monotonic(), busy, used.ru_utime + used.ru_stime)


def company_since(before: Clocks) -> float:
    """Processors that others used since then, on average."""
    now = clocks()
    return max(0.0, (now.all - before.all - (now.own - before.own)) / (now.now - before.now))


def kept(out: Path) -> list[Round]:
    """The rounds that a directory holds."""
    path = out / ROUNDS
    lines = path.read_text().splitlines() if path.exists() else []
    return [Round(**json.loads(line)) for line in lines]


def of(comparison: Comparison, rounds: Sequence[Round]) -> list[Round]:
    """The rounds of a comparison that have all of its ways."""
    return [
        each
        for each in rounds
        if each.words == comparison.words and {*comparison.ways} <= each.figures.keys()
    ]


def keep(out: Path, rounds: Sequence[Round], comparisons: Sequence[Comparison], columns: Columns) -> None:
    """Add the latest round, then write the table anew."""
    with (out / ROUNDS).open("a") as lines:
        lines.write(json.dumps(asdict(rounds[-1])) + "\n")
    (out / TABLE).write_text(table(rounds, comparisons, columns))


def table(rounds: Sequence[Round], comparisons: Sequence[Comparison], columns: Columns) -> str:
    """Medians and ranges of the rounds so far."""
    titles = ["", "way", "rounds", *columns.figures, columns.compared, "others, processors"]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for comparison in comparisons:
        mine = of(comparison, rounds)
        lines += [line(comparison, way, mine, columns) for way in comparison.ways if mine]
    return "\n".join(lines) + "\n"


def line(comparison: Comparison, way: str, mine: Sequence[Round], columns: Columns) -> str:
    """What is known of one way."""
    figures = [spread([each.figures[way][place] for each in mine]) for place in range(len(columns.figures))]
    compared = [columns.compare(each.figures[comparison.ways[0]][0], each.figures[way][0]) for each in mine]
    first = way == comparison.ways[0]
    cells = [comparison.words, way, str(len(mine)), *figures, "" if first else spread(compared)]
    return f"| {' | '.join(cells)} | {spread([each.company[way] for each in mine], '.2f')} |"


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """Median and range.

    >>> spread([3.0, 1.0, 2.0]), spread([2.5])
    ('2.0 (1.0 to 3.0)', '2.5')
    """
    middle = f"{statistics.median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}} to {max(values):{form}})"


def tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
