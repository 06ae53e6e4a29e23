"""How long a job takes to start: a plain trainer and the optimised one, in turns, each on a new host.

    python benchmarks/pipeline/start/run.py --out results [--rows tts-15 tts-60] [--rounds 5] [--minutes 60]

Every figure is read from the journals that the jobs themselves write, by the accounting of core.
"""

from __future__ import annotations

from pathlib import Path

import jobs
import turns
from rows import ROWS, Row

PLAIN, PARTS = "plain", "parts"


def main() -> None:
    parser = turns.arguments(__doc__)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    given = parser.parse_args()
    columns = turns.Columns(("s",), "more than plain, %", turns.percent_more)
    turns.run([comparison(ROWS[name]) for name in given.rows], columns, given)


def comparison(row: Row) -> turns.Comparison:
    """A row as turns of its two sides."""
    sides = {PLAIN: row.rival, PARTS: row.ours}

    def measure(way: str, host: Path, lasting: Path) -> tuple[float]:
        return (row.figure(jobs.started(sides[way], host, lasting)),)

    def prepare(way: str, lasting: Path) -> None:
        jobs.prime(sides[way], lasting)

    return turns.Comparison(row.words, list(sides), measure, prepare)


if __name__ == "__main__":
    main()
