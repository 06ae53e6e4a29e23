"""Fill an exporter with one very long job: 200 attempts whose loops report 500 times each.

    python benchmarks/app/long_job.py --exporter http://127.0.0.1:9410

The job is called bench/long. Its timeline has about 100,000 stretches.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import httpx
from feed import Job, send

JOB_ID = "bench/long"
REPORT_S = 10.0
SAVE_EVERY = 50
START_S, PAUSE_S = 250.0, 60.0


def attempt(job: Job, number: int, at: float, reports: int) -> Iterator[bytes]:
    """An attempt that begins at a moment (Unix seconds), reports, saves and fails."""
    job.attempt = number
    yield from job.start(at, is_warm=number > 0)
    begin = at + START_S
    for report in range(1, reports + 1):
        moment = begin + report * REPORT_S
        yield job.report(moment, 10)
        if report % SAVE_EVERY == 0:
            yield from job.save(moment)
    yield from job.fail(begin + reports * REPORT_S + 3.0)


def main() -> None:
    """Fill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--exporter", default="http://127.0.0.1:9410")
    parser.add_argument("--attempts", type=int, default=200)
    parser.add_argument("--reports", type=int, default=500, help="in the loop of each attempt")
    chosen = parser.parse_args()
    each_s = START_S + chosen.reports * REPORT_S + PAUSE_S
    job = Job(1, time.time())
    job.job_id = JOB_ID
    begin = time.time() - chosen.attempts * each_s
    with httpx.Client(base_url=chosen.exporter, timeout=120.0, trust_env=False) as http:
        for number in range(chosen.attempts):
            send(http, b"".join(attempt(job, number, begin + number * each_s, chosen.reports)))
        job.attempt = chosen.attempts
        send(http, b"".join(job.start(time.time() - START_S, is_warm=True)))
        answer = http.get(f"/api/v1/jobs/{JOB_ID}/timeline", params={"limit": 1}).raise_for_status().json()
    sys.stdout.write(f"{JOB_ID}: {job.seq:,} events, one stretch: {answer['stretches'][0]['components']}\n")


if __name__ == "__main__":
    main()
