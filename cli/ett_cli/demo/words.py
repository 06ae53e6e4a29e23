"""What the demo says while it runs. Pure: from what the exporter tells to one line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ett_cli.demo.stage import Stage

_STATES: Mapping[str, str] = {
    "starting": "starting: imports, model, compilation",
    "compiling": "compiling the dense parts",
    "training": "training",
    "checkpointing": "saving a checkpoint",
    "recovering": "recovering from the kill: restart, warm compile, resume",
    "succeeded": "done",
}


def line(elapsed_s: float, text: str, where: str) -> str:
    """One line: seconds so far, what goes on, where to look."""
    return f"[{elapsed_s:5.0f} s] {text} · {where}"


def doing(job: Mapping[str, Any] | None, steps: int) -> str:
    """What the job does, from the answer of the query API.

    >>> doing(None, 900)
    'the trainer starts, nothing heard yet'
    """
    if job is None:
        return "the trainer starts, nothing heard yet"
    state = str(job["state"])
    parts = [_STATES.get(state, state.replace("_", " "))]
    if job.get("step"):
        parts.append(f"step {job['step']} of {steps}")
    if job.get("last_durable_step"):
        parts.append(f"saved up to {job['last_durable_step']}")
    if job.get("unsaved_exposure_s"):
        parts.append(f"{job['unsaved_exposure_s']:.1f} s unsaved")
    if job.get("ett_percent") is not None:
        parts.append(f"ETT {job['ett_percent']:.0f} %")
    return ", ".join(parts)


def places(stage: Stage) -> list[str]:
    """Where to look, one after the other."""
    exporter = [f"{stage.exporter_url}/metrics", f"log {stage.log('trainer')}"]
    return [f"job {stage.job_url}", f"fleet {stage.app_url}/", *exporter] if stage.app else exporter


def where_to_go_on(stage: Stage, *, stays: bool, ett: str = "ett") -> str:
    """The last lines: what is still served, if anything, and the command that accounts anew.

    `ett` is the command as whoever reads it can start it.
    """
    again = f"The same account from the journals: {ett} account {shlex.quote(str(stage.journal_dir))}"
    if not stays:
        return again
    pages = f"{stage.job_url} and " if stage.app else ""
    return f"Still serving {pages}{stage.exporter_url}/metrics; Ctrl-C stops everything.\n{again}"
