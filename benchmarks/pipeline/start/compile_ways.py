"""Compile seconds of a start on a new host: plain, with torch's own MegaCache, and with bundles, in turns.

    python benchmarks/pipeline/start/compile_ways.py --out results [--rounds 5] [--ways plain stock bundle]

`stock` and `bundle` have what one earlier start, on another host, has left; the others find nothing:
`first_bundle` makes such a bundle, `first_all` has all parts.
"""

from __future__ import annotations

from pathlib import Path

import jobs
import turns
from jobs import Start

WAYS = {
    "plain": Start(),
    "stock": Start(stock=True, primed=True),
    "bundle": Start(parts="bundle", primed=True),
    "first_bundle": Start(parts="bundle"),
    "first_all": Start(parts="all"),
    "one_compile": Start(parts="one_compile"),
}


def main() -> None:
    parser = turns.arguments(__doc__)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["plain", "stock", "bundle"])
    given = parser.parse_args()
    words = ("compile, s", "in the store, s", "time to start, s")
    columns = turns.Columns(words, "compile: times less than the first", turns.times_less)
    turns.run([turns.Comparison("a start on a new host", given.ways, measured, prepared)], columns, given)


def measured(way: str, host: Path, lasting: Path) -> tuple[float, ...]:
    """Seconds of compilation, of the store, and to start."""
    found = jobs.started(WAYS[way], host, lasting)
    return jobs.compile_s(found), jobs.cache_load_s(found), jobs.tts_s(found)


def prepared(way: str, lasting: Path) -> None:
    jobs.prime(WAYS[way], lasting)


if __name__ == "__main__":
    main()
