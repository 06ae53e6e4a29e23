"""The exporter that both trainers send to, and what it tells of a job."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0


@contextmanager
def exporter(database: Path) -> Iterator[str]:
    """The address of an exporter that ends with the block."""
    ett = str(Path(sys.executable).with_name("ett"))
    command = [ett, "exporter", "--database", str(database), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - for the type checker
        words = process.stdout.readline().split()
        try:
            yield next(word for word in words if word.startswith("http://"))
        finally:
            process.terminate()


def finished(url: str, job_id: str) -> dict[str, Any]:
    """The job as the query API tells of it, once it is over.

    Raises:
        RuntimeError: it does not end as a success.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        with urllib.request.urlopen(f"{url}/api/v1/jobs/{urllib.parse.quote(job_id)}") as answer:  # noqa: S310
            job: dict[str, Any] = json.loads(answer.read())
        if job["finished"]:
            break
        if time.monotonic() > until:
            raise RuntimeError(f"{job_id} is {job['state']}, and was to be over")
        time.sleep(0.2)
    if job["state"] != "succeeded":
        raise RuntimeError(f"{job_id} ended as {job['state']}")
    return job
