"""The name of a job, the place of its journals and its grace time, where a person gives none."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

GRACE_S = 30.0
"""Seconds from a stop until everything is ended by force."""


def new_job_id(command: list[str], environ: Mapping[str, str]) -> str:
    """A job id for a run that was not given one: that of the scheduler, else of the rendezvous, else new."""
    from ett_trainer_hooks.identity.who import job_id_from_env

    if known := job_id_from_env(environ) or rendezvous_id(command):
        return known
    return f"{Path(command[0]).name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def rendezvous_id(command: list[str]) -> str:
    """A job id from the `--rdzv-id` of a torchrun command on several nodes, which is the same on all of them.

    On one node it is left alone: the same number often stands in the commands of many jobs.

    >>> rendezvous_id(["torchrun", "--nnodes=2", "--rdzv-id", "dlrm-7", "train.py", "--rdzv-id=x"])
    'torchrun-dlrm-7'
    >>> rendezvous_id(["torchrun", "--rdzv-id=100", "train.py"])
    ''
    """
    run_id = _option(command, "--rdzv-id")
    if run_id in ("", "none") or _option(command, "--nnodes") in ("", "1", "1:1"):
        return ""
    return f"torchrun-{run_id}"


def _option(command: list[str], name: str) -> str:
    """What an option of torchrun is set to, in any of its spellings; nothing where it is not set."""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option.replace("_", "-") == name:
            return value if equals else following
    return ""


def what_is_wrong(job_id: str) -> str:
    """Why a job id cannot be used as it is.

    >>> what_is_wrong("bad id!")
    'holds characters that it may not'
    """
    from ett_trainer_hooks.identity.who import MAX_JOB_ID

    if len(job_id) > MAX_JOB_ID:
        return f"is longer than {MAX_JOB_ID} characters"
    return "holds characters that it may not"


def default_journal_dir(job_id: str, environ: Mapping[str, str]) -> Path:
    """Where journals go that were not given a place."""
    if given := environ.get("ETT_JOURNAL_DIR"):
        return Path(given)
    state = environ.get("XDG_STATE_HOME")
    home = environ.get("HOME")
    root = Path(state) if state else Path(home, ".local/state") if home else Path(tempfile.gettempdir())
    return root / "ettwatch" / directory_name(job_id)


def directory_name(job_id: str) -> str:
    """The name of a directory for what belongs to a job.

    >>> directory_name("team/run-17")
    'team_run-17'
    """
    from ett_trainer_hooks.identity import sanitised_job_id

    return sanitised_job_id(job_id).replace("/", "_").lstrip(".")
