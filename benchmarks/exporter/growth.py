"""How do memory and time grow with the number of jobs in one exporter process?

Short jobs of 8 ranks are folded, viewed, put into the fleet's sums and written as lines of
/metrics, as the exporter does with them; for each number of jobs a fresh process measures what it
grew by, the time an event takes, a view (the first, and a newer one with all that follows from
it), and an answer about the whole fleet.

    python benchmarks/exporter/growth.py --jobs 1000 10000 [100000] [--minutes 3]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from functools import partial

from memory import NoPast, Told

from ett_exporter.archive import FileArchive
from ett_exporter.collecting import Collector
from ett_exporter.fleet import Window, groups_of
from ett_exporter.live import LiveJob
from ett_exporter.places import Kept, Place
from ett_exporter.queries import FleetQuery
from ett_exporter.roster import Roster
from ett_exporter.shown import Shown
from ett_exporter.taking import take_together

RENEW_FOR_S = 1.0
LOOK_EVERY = 50
DAY_S = 86_400.0


def _same(kept: Kept) -> list[list[Kept]]:
    return [[kept]]


def measure(jobs: int, minutes: float) -> str:
    """One row of the table."""
    archive, roster, shown, collector = FileArchive(), Roster(lambda _job_id: None), Shown(10**9), Collector()
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    events, fold_s, view_s, now = 0, 0.0, 0.0, 0.0
    for number in range(jobs):
        job = LiveJob(f"job-{number}", 0.0, NoPast(), archive)
        roster.add(job, is_old=False)
        for part in Told(f"job-{number}").minutes(1, minutes / 1440):
            began_s = time.process_time()
            kept = Kept(part, Place(0, events + 1))
            take_together([job], partial(_same, kept), 0.0)
            fold_s += time.process_time() - began_s
            events += len(part)
            now = part[-1].time
        began_s = time.process_time()
        seen, _ = roster.since(2**60)
        roster.renew(now, 0.0)
        _show(roster, shown, seen)
        view_s += time.process_time() - began_s
        if number % LOOK_EVERY == 0:
            collector.look()
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    renewed_s = _renewed_s(roster, shown, now + 60.0)
    window = Window(now - DAY_S, now, "24h")
    began_s = time.process_time()
    with roster.sums() as ledger:
        ((whole, _),) = groups_of(ledger.windows, FleetQuery(), [window], {})
    fleet_s = time.process_time() - began_s
    assert whole.jobs == jobs  # noqa: S101 - every job is in the sums
    return (
        f"| {jobs:,} | {events:,} | {grown_kb / jobs:.1f} | {fold_s / events * 1e6:.1f} "
        f"| {view_s / jobs * 1e3:.2f} | {renewed_s * 1e3:.2f} | {fleet_s * 1e3:.1f} |"
    )


def _show(roster: Roster, shown: Shown, seen: int) -> None:
    _, views = roster.since(seen)
    for view in views:
        shown.put(view)


def _renewed_s(roster: Roster, shown: Shown, now: float) -> float:
    """Seconds that it takes to make the view of one job new, with its sums and its lines."""
    seen, _ = roster.since(2**60)
    began_s = time.process_time()
    roster.renew(now, RENEW_FOR_S)
    _show(roster, shown, seen)
    return (time.process_time() - began_s) / len(roster.since(seen)[1])


def main() -> None:
    """Measure each number in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--minutes", type=float, default=12, help="how long each job has been there")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    chosen = parser.parse_args()
    if chosen.here:
        sys.stdout.write(measure(chosen.jobs[0], chosen.minutes) + "\n")
        return
    print("| jobs | events | memory a job, kB | an event, us | first view, ms | newer, ms | the fleet, ms |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for jobs in chosen.jobs:
        here = ["--jobs", str(jobs), "--minutes", str(chosen.minutes), "--here"]
        subprocess.run([sys.executable, __file__, *here], check=True)


if __name__ == "__main__":
    main()
