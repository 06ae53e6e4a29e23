"""How do memory and time grow with the number of jobs in one exporter process?

Short jobs of 8 ranks are folded, viewed and put into the fleet's sums, as the exporter does with
them; for each number of jobs a fresh process measures what it grew by, the time an event takes,
a view, and an answer about the whole fleet.

    python benchmarks/exporter/growth.py --jobs 100 1000 [10000 100000]
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
from ett_exporter.fleet_series import fleet_samples
from ett_exporter.ledger import Ledger
from ett_exporter.live import LiveJob
from ett_exporter.places import Kept, Place

MINUTES = 12


def _same(kept: Kept) -> Kept:
    return kept


def measure(jobs: int) -> str:
    """One row of the table."""
    archive, ledger = FileArchive(), Ledger()
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    held: list[LiveJob] = []
    events, fold_s, view_s = 0, 0.0, 0.0
    for number in range(jobs):
        job = LiveJob(f"job-{number}", 0.0, NoPast(), archive)
        held.append(job)
        for part in Told(f"job-{number}").minutes(1, MINUTES / 1440):
            began_s = time.process_time()
            kept = Kept(part, Place(0, events + 1))
            job.take(partial(_same, kept), 0.0)
            fold_s += time.process_time() - began_s
            events += len(part)
        now = part[-1].time
        began_s = time.process_time()
        view = job.view(now)
        assert view is not None  # noqa: S101 - it was told events
        ledger.put(view)
        view_s += time.process_time() - began_s
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    began_s = time.perf_counter()
    count = len(list(fleet_samples(ledger)))
    fleet_s = time.perf_counter() - began_s
    return (
        f"| {jobs:,} | {events:,} | {grown_kb / jobs:.1f} | {fold_s / events * 1e6:.1f} "
        f"| {view_s / jobs * 1e3:.2f} | {fleet_s * 1e3:.1f} ({count} samples) |"
    )


def main() -> None:
    """Measure each number in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--here", action="store_true", help="measure in this process")
    chosen = parser.parse_args()
    if chosen.here:
        sys.stdout.write(measure(chosen.jobs[0]) + "\n")
        return
    print("| jobs | events | memory a job, kB | an event, us | a view, ms | the fleet, ms |")
    print("|---|---|---|---|---|---|")
    for jobs in chosen.jobs:
        subprocess.run([sys.executable, __file__, "--jobs", str(jobs), "--here"], check=True)


if __name__ == "__main__":
    main()
