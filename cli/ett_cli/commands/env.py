"""`ett env`: the variables with which a job is observed without a launcher, as lines for a shell."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

EPILOG = """\
For where `ett run` cannot start the job: eval "$(ett env --job-id dlrm)", then torchrun or python
as ever. Each rank writes its journal and tells its own end; what only a launcher sees (exit
statuses, killed ranks, lines of stderr, the end of the job) stays unknown. `ett ship DIR` sends
the journals, `ett account DIR` reads them.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett env`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--job-id", required=True, help="the logical run, the same across restarts")
    parser.add_argument(
        "--journal-dir",
        type=Path,
        metavar="DIR",
        help="where events go (default: $ETT_JOURNAL_DIR, else in the user's state)",
    )
    parser.add_argument(
        "--no-auto",
        action="store_true",
        help="only name the job: programs that have no recorder are not observed (as ETT_AUTO=0)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the lines."""
    from ett_cli.job_settings import default_journal_dir
    from ett_trainer_hooks.identity import sanitised_job_id

    job_id = sanitised_job_id(arguments.job_id)
    directory = (arguments.journal_dir or default_journal_dir(job_id, os.environ)).absolute()
    for name, text in variables(job_id, directory, os.environ, auto=not arguments.no_auto).items():
        line = f"export {name}={shlex.quote(text)}\n"
        sys.stdout.buffer.write(os.fsencode(line))  # a path is bytes, and a shell reads this
    return 0


def variables(job_id: str, directory: Path, environ: Mapping[str, str], *, auto: bool) -> dict[str, str]:
    """What a process of the job must find in its environment; `environ` is what it has already."""
    from ett_trainer_hooks.auto import observed

    job = {"ETT_JOB_ID": job_id, "ETT_JOURNAL_DIR": str(directory)}
    if not auto:
        return {**job, "ETT_AUTO": "0"}
    path = observed({"PYTHONPATH": environ.get("PYTHONPATH", "")})["PYTHONPATH"]
    return {**job, "ETT_AUTO": "1", "PYTHONPATH": path}
