"""Questions to the exporter over HTTP. Each call is one request with a time limit."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

LIMIT_S = 5.0


def get_text(url: str, *, limit_s: float = LIMIT_S) -> str | None:
    """The body of a page; None where nobody answers, or not with success."""
    try:
        with urllib.request.urlopen(url, timeout=limit_s) as answer:  # noqa: S310 - loopback addresses of ours
            body: bytes = answer.read()
    except (urllib.error.URLError, OSError):
        return None
    return body.decode()


def get_job(exporter_url: str, job_id: str) -> Mapping[str, Any] | None:
    """The job as the query API tells of it; None where it knows none by that name yet."""
    text = get_text(f"{exporter_url}/api/v1/jobs/{urllib.parse.quote(job_id)}")
    if text is None:
        return None
    job: Mapping[str, Any] = json.loads(text)
    return job
