"""The end of the demo: gather the evidence, judge it, say what held.

Imported before the first process starts, so that nothing is found missing only at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ett_cli.demo.evidence import account_of_journals, component_series
from ett_cli.demo.exporter import get_text
from ett_cli.demo.stage import Stage
from ett_cli.demo.verdict import failed, verdict


def judge(
    stage: Stage,
    job: Mapping[str, Any],
    *,
    say: Callable[[str], object],
    clock: Callable[[], float] = time.time,
) -> int:
    """Say of each check whether it holds; 0 if all do, else 1."""
    recomputed = account_of_journals(stage.journal_dir, stage.job_id, clock())
    try:
        series = component_series(get_text(f"{stage.exporter_url}/metrics") or "", stage.job_id)
    except ValueError as error:
        say(f"  FAIL /metrics cannot be parsed: {error}")
        series = {}
    checks = verdict(job, recomputed, series)
    for holds, sentence in checks:
        say(f"  {'ok  ' if holds else 'FAIL'} {sentence}")
    return 1 if failed(checks) else 0
