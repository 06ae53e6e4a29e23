"""The option that describes a job, the same for all commands that start one."""

from __future__ import annotations

import argparse


def add_label(parser: argparse.ArgumentParser) -> None:
    """Declare `--label`, which may be given again and again; the pairs are in `label`."""
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        type=_label,
        metavar="NAME=TEXT",
        help="describe the job: job_name, team, model, cluster, scheduler, ... (repeatable)",
    )


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=TEXT")
    return name, value
