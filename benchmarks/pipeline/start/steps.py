"""Milliseconds of a step in the loop: plain, and with parts of the optimised pipeline, in turns.

    python benchmarks/pipeline/start/steps.py --out results [--rounds 5] [--parts all,-standby ...]

The job of the headline benchmark (`../ett/job.toml`) without faults: its first steps, in which a start
still settles, are left out.
"""

from __future__ import annotations

from pathlib import Path
from statistics import quantiles

import jobs
import tomllib
import turns
from jobs import Start

from ett_cli.journals import read_journals
from ett_core.events import Progress

PLAIN = "plain"
SETTLED = 300
"""Steps that are left out."""
TURN_S = 1.0
"""Seconds over which steps are averaged, at least, for the quarter that was disturbed least."""


def main() -> None:
    parser = turns.arguments(__doc__)
    parser.add_argument("--parts", nargs="+", default=["all,-standby", "all"])
    parser.add_argument("--steps", type=int, default=2400)
    given = parser.parse_args()

    def measured(way: str, host: Path, lasting: Path) -> tuple[float, ...]:
        del lasting
        return steps_ms("" if way == PLAIN else way, host, given.steps)

    words = ("a step, ms", "the least disturbed quarter of the time, ms")
    columns = turns.Columns(words, "a step: % longer than the first", turns.percent_more)
    turns.run([turns.Comparison("steps", [PLAIN, *given.parts], measured)], columns, given)


def steps_ms(parts: str, host: Path, steps: int) -> tuple[float, float]:
    """Milliseconds of a step: of all that have settled, and of the quarter of the time with the shortest."""
    environ = jobs.new_host(host)
    settings = tomllib.loads((jobs.HERE.parent / "ett" / "job.toml").read_text())["trainer"]
    given = {**settings, "steps": steps, "data_warmup_s": 0}
    more = [str(word) for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
    options = ["--standby"] if parts == "all" else []
    words = [*jobs.command(Start(parts=parts), host, host / jobs.STORE, options=options), *more]
    with jobs.running(words, environ, host) as job:
        if job.wait(timeout=jobs.LIMIT_S):
            raise jobs.JobFailedError(jobs.last_words(host))
    told = sorted(
        (event.step, event.time)
        for part in read_journals([str(host / "journal")])
        for event in part.events
        if isinstance(event, Progress) and event.rank == 0 and event.step >= SETTLED
    )
    (first, began), (last, ended) = told[0], told[-1]
    each, (step, at) = [], told[0]
    for now, time in told[1:]:
        if time - at >= TURN_S:
            each.append(1000 * (time - at) / (now - step))
            step, at = now, time
    return 1000 * (ended - began) / (last - first), quantiles(each, n=8)[0]


if __name__ == "__main__":
    main()
