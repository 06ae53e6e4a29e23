"""What `ett run` says when a job is over, by the journals of this node."""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path

READ_AT_END_BYTES = 100 << 20
"""Nobody waits at the end of a job until more than that is read."""


def prepare_last_sentences() -> None:
    """Load what the last sentences need while the command runs, so that nobody waits for it at the end."""
    for module in ("ett_cli.journals", "ett_cli.recorded", "ett_cli.report"):
        importlib.import_module(module)


def last_sentences(directory: Path, job_id: str, now: float) -> list[str]:
    """How a job failed, if it did, and what took most of its time besides training; each with what to do.

    By the journals of this node.
    """
    from ett_cli.failure_words import end_of
    from ett_cli.journals import collector_paused, read_journals
    from ett_cli.recorded import Recorded
    from ett_cli.report import what_to_do
    from ett_core.plain_text import one_line
    from ett_trainer_hooks.identity import sanitised_job_id

    if sum(path.stat().st_size for path in directory.glob("*.jsonl")) > READ_AT_END_BYTES:
        return [f"ett account {shlex.quote(str(directory))} tells where the time went"]
    job_id = sanitised_job_id(job_id)
    recorded = Recorded(job_id)
    with collector_paused():
        for part in read_journals([str(directory)]):
            recorded.add([event for event in part.events if event.job_id == job_id])
    job = recorded.as_json(now)
    if job is None:
        return []
    ended = end_of(job)
    more = f"{ended} More: ett account {shlex.quote(str(directory))}" if ended else ""
    return [one_line(sentence) for sentence in (more, what_to_do(job)) if sentence]
